import PushModel
import PushTesting
import SessionPush
import Simulators
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

extension Sandbox {
    /// Session's network that stands beside every sandbox.
    var session: SessionNetworkSimulator {
        guard let peer = peer(SessionSandboxPeer.self) else { fatalError("a sandbox without a swarm") }
        return peer.network
    }
}

extension SessionNetworkSimulator {
    /// The numbers of its storage nodes.
    static let nodes = 0..<3

    /// Stores a message for a phone's account.
    ///
    /// - Returns: the message's hash.
    @discardableResult
    func store(
        _ text: String, for phone: SessionPhone, namespace: Int16 = 0, hash: String? = nil
    ) -> String {
        let push = StorageNotice.written(
            Secret(text.utf8), to: phone.account, namespace: namespace, hash: hash, .live)
        store(push)
        return push.hash.reveal { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns when all storage nodes watch as many accounts.
    func watch(_ count: Int, file: String = #fileID, line: Int = #line) async throws {
        for node in Self.nodes {
            try await asked(for: "\(count) watches at node \(node)", file: file, line: line) {
                await watches(at: node) >= count
            }
        }
    }
}

extension SessionNetworkSimulator {
    /// Returns when storage nodes have taken as many watches as that, all together.
    func taken(
        _ count: Int, in notes: AsyncStream<SessionNote>, file: String = #fileID, line: Int = #line
    ) async throws {
        var sum = 0
        while sum < count {
            let note = try await notes.next("a watch that was taken", file: file, line: line) { note in
                if case .watched = note { true } else { false }
            }
            if case .watched(_, let taken, _) = note { sum += taken }
        }
    }
}

extension RunningRelay {
    /// Returns when a figure of the instance's statistics has reached a value.
    func until(_ name: String, reaches least: Int64, file: String = #fileID, line: Int = #line) async throws {
        try await asked(for: "\(least) of \(name)", file: file, line: line) {
            try await statistic(name)?.int64 ?? 0 >= least
        }
    }

    /// A figure of the instance's statistics.
    func statistic(_ name: String) async throws -> JSONValue? {
        let answer = try await admin("/session/statistics?instance=main")
        return try JSONValue.parse(answer.body)[name]
    }
}
