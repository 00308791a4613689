#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation
import NIOCore
import NIOPosix
package import PushModel
import Simulators

/// One swarm of simulated storage servers, and what is known of it: either in this process, or told by
/// another one in the lines that it writes.
package final class StandingSwarm: Sendable {
    private static let id: UInt64 = 1 << 62

    private let network: SessionNetworkSimulator
    private let notes: AsyncStream<SessionNote>
    private let nodes: Int
    package let daemon: String

    package init(nodes: Int, world: World) async throws {
        self.nodes = nodes
        network = SessionNetworkSimulator(
            SessionNetworkConfiguration(swarms: Array(repeating: Self.id, count: nodes)), world: world)
        notes = network.notes()
        try await network.start()
        daemon = network.daemonEndpoint ?? ""
    }

    /// Returns when each storage server watches so many accounts.
    package func untilShown(_ accounts: Int) async {
        var taken = Array(repeating: 0, count: nodes)
        for await note in notes {
            guard case .watched(let node, let count, _) = note, taken.indices.contains(node) else { continue }
            taken[node] += count
            guard taken.allSatisfy({ $0 >= accounts }) else { continue }
            // One that was shown twice is one.
            var watched = Int.max
            for node in 0..<nodes { watched = min(watched, await network.watches(at: node)) }
            if watched >= accounts { return }
        }
    }

    package func stop() async { await network.stop() }

    // MARK: Another process

    private static let daemonWord = "daemon "
    private static let shownWord = "shown"

    /// What the process of a swarm does: it tells where its daemon listens, then that all were shown, and
    /// ends with its standard input.
    package static func serve(
        _ plan: SessionBenchPlan, world: World, say: @escaping @Sendable (String) -> Void
    ) async throws {
        let swarm = try await StandingSwarm(nodes: plan.nodes, world: world)
        say(daemonWord + swarm.daemon)
        // A descriptor of its own, because the channel closes what it is given.
        let input = dup(STDIN_FILENO)
        guard input >= 0 else { throw BenchError(.processFault) }
        let channel = try await NIOPipeBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .takingOwnershipOfDescriptor(input: input).get()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                await swarm.untilShown(plan.accounts)
                say(shownWord)
            }
            try await channel.closeFuture.get()
            group.cancelAll()
            try await group.waitForAll()
        }
        await swarm.stop()
    }

    /// Waits for a line of such a process.
    ///
    /// - Returns: what stands behind the word.
    /// - Throws: `.processFault` when it has ended, or says nothing for the span.
    private static func line(
        _ word: String, of child: ChildProcess, _ log: String, within span: Duration, _ world: World
    ) async throws -> String {
        let until = world.instant() + span
        while !child.hasEnded, world.instant() < until {
            // Not there yet, or not whole yet: it is read again.
            let text = FileManager.default.contents(atPath: log).map { String(decoding: $0, as: UTF8.self) }
            for line in (text ?? "").split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            where line.hasPrefix(word) {
                return String(line.dropFirst(word.count))
            }
            try await world.sleep(world.instant() + .milliseconds(20))
        }
        throw BenchError(.processFault)
    }

    /// - Returns: where its daemon listens.
    static func daemon(of child: ChildProcess, log: String, _ world: World) async throws -> String {
        try await line(daemonWord, of: child, log, within: .seconds(60), world)
    }

    /// Returns when it says that all accounts were shown. Each costs each storage server a verification.
    static func untilShown(by child: ChildProcess, log: String, _ world: World) async throws {
        _ = try await line(shownWord, of: child, log, within: .seconds(3_600), world)
    }
}
