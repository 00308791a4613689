import AtRest
import Foundation
import PushModel
import PushTesting
import SessionPush
import Simulators
import SwarmIngress
import Synchronization
import Testing
import WireFormats

@testable import RelayProgram

@Suite("Session on PostgreSQL", .timeLimit(.minutes(30)))
struct SharedSessionTests {
    @Test("Two relays share the storage nodes out; what either subscribes wakes a phone once")
    func shared() async throws {
        let cluster = try await PostgresCluster.shared
        let url = try await cluster.freshDatabase()
        try await RelayStage.with(RelayStage.session() + "store: { url: \"\(url)\" }\n") { stage in
            _ = try KeyFile.create(stage.state + "/storage.keys", .live)
            let network = stage.sandbox.session
            try await stage.run { first in
                // Each process has a state directory, and with it a key, of its own.
                unlink(SessionKeyFile.corePath(configured("main"), state: stage.state))
                try await stage.run { second in
                    let phones = (try SessionPhone(.apns), try SessionPhone(.apns))
                    let arrivals = (
                        stage.apns.subscribe(token: phones.0.token),
                        stage.apns.subscribe(token: phones.1.token)
                    )
                    #expect(try await phones.0.subscribe(at: first) == [.added])
                    #expect(try await phones.1.subscribe(at: second, by: .xchacha20) == [.added])
                    #expect(try await first.statistic("core_key") != second.statistic("core_key"))
                    try await network.watch(2)
                    try await asked(for: "three nodes, shared out") {
                        let ours = try await (first.statistic("snodes_ours"), second.statistic("snodes_ours"))
                        return (ours.0?.int64 ?? 0) + (ours.1?.int64 ?? 0) == 3
                    }
                    network.store("one", for: phones.0)
                    network.store("two", for: phones.1)
                    #expect(try phones.0.message(try await arrivals.0.next("a push")).text == "one")
                    #expect(try phones.1.message(try await arrivals.1.next("a push")).text == "two")
                    try await first.drained()
                }
            }
            #expect(stage.apns.deliveries().count == 2)
        }
    }

    @Test("A relay that is stopped hands its storage nodes over, and no message is lost or doubled meanwhile")
    func handover() async throws {
        // Each node is the only one of its swarm: who hears it not has nobody else who does.
        let network = SessionNetworkSimulator(
            SessionNetworkConfiguration(swarms: (0..<8).map { $0 << 61 }), world: .live)
        try await network.start()
        let url = try await PostgresCluster.shared.freshDatabase()
        let oxend = try #require(network.daemonEndpoint)
        let text = RelayStage.session(", oxend: \"\(oxend)\"") + "store: { url: \"\(url)\" }\n"
        func spans(_ around: inout Surroundings) {
            around.spans.swarm.handover = SwarmLimits().handover
        }
        do {
            try await RelayStage.with(text) { stage in
                _ = try KeyFile.create(stage.state + "/storage.keys", .live)
                try await stage.run(spans: spans) { first in
                    unlink(SessionKeyFile.corePath(configured("main"), state: stage.state))
                    let phones = try (0..<16).map { _ in try SessionPhone(.apns) }
                    for phone in phones { #expect(try await phone.subscribe(at: first) == [.added]) }
                    let writer = Writer(network, phones, stage.apns)
                    try await withThrowingTaskGroup(of: Void.self) { tasks in
                        try await stage.run(spans: spans) { second in
                            try await second.until("snodes_ours", reaches: 1)
                            // For a moment both have what changes hands.
                            try await asked(for: "nodes that are shared out, and all connected") {
                                let connected = try await (
                                    first.statistic("connections"), second.statistic("connections")
                                )
                                let ours = try await (
                                    first.statistic("snodes_ours"), second.statistic("snodes_ours")
                                )
                                return (ours.0?.int64 ?? 0) + (ours.1?.int64 ?? 0) == 8
                                    && (connected.0?.int64 ?? 0) + (connected.1?.int64 ?? 0) == 8
                            }
                            tasks.addTask { try await writer.write() }
                            try await asked(for: "some messages") { writer.written >= 2 * phones.count }
                        }
                        // On and on until the first has all nodes, whenever the second ended.
                        try await first.until("connections", reaches: 8)
                        let written = writer.written
                        try await asked(for: "more messages") { writer.written >= written + phones.count }
                        writer.stop()
                        try await tasks.waitForAll()
                    }
                    #expect(try await first.statistic("snodes_ours")?.int64 == 8)
                    try await first.drained()
                    #expect(stage.apns.counters.accepted == writer.written)
                }
            }
        } catch {
            await network.stop()
            throw error
        }
        await network.stop()
    }

    @Test(
        "A relay that is killed takes no message with it of swarms of which the other one has a node",
        .enabled(if: Program.path != nil))
    func killed() async throws {
        let ids = (0..<8).map { UInt64($0) << 61 }
        let network = SessionNetworkSimulator(SessionNetworkConfiguration(swarms: ids + ids), world: .live)
        try await network.start()
        let url = try await PostgresCluster.shared.freshDatabase()
        let oxend = try #require(network.daemonEndpoint)
        let text = RelayStage.session(", oxend: \"\(oxend)\"") + "store: { url: \"\(url)\" }\n"
        do {
            try await RelayStage.with(text) { stage in
                let keys = stage.state + "/storage.keys"
                _ = try KeyFile.create(keys, .live)
                try await stage.run { staying in
                    let phones = try (0..<32).map { _ in try SessionPhone(.apns) }
                    for phone in phones { #expect(try await phone.subscribe(at: staying) == [.added]) }
                    let path = stage.folder.path
                    let store = "{ url: \"\(url)\", keys: \"\(keys)\" }"
                    let configuration = try ServedProgram.configuration(
                        RelayStage.session(", oxend: \"\(oxend)\""), at: stage, store: store)
                    try writeFile(path + "/sealbell.yaml", Array(configuration.utf8), replacing: true)
                    let dying = try Program(
                        ["serve", "--config", "sealbell.yaml", "--state", "own"], in: path)
                    do {
                        try await kill(dying, beside: staying, phones, network)
                    } catch {
                        dying.signal(SIGKILL)
                        throw error
                    }
                }
            }
        } catch {
            await network.stop()
            throw error
        }
        await network.stop()
    }

    /// Kills a relay that has its share of the nodes, which the other one does not know for a while.
    private func kill(
        _ dying: Program, beside staying: RunningRelay, _ phones: [SessionPhone],
        _ network: SessionNetworkSimulator
    ) async throws {
        guard await dying.says("\"event\":\"started\"") else {
            Issue.record("the relay does not start: \(dying.text)")
            return
        }
        try await asked(for: "one node of each swarm at this relay") {
            let (ours, connected) = try await (
                staying.statistic("snodes_ours"), staying.statistic("connections")
            )
            return ours?.int64 == 8 && connected?.int64 == 8
        }
        let arrivals = phones.map { staying.stage.apns.subscribe(token: $0.token) }
        func write(_ text: String) async throws {
            for phone in phones { network.store(text, for: phone) }
            for (phone, pushes) in zip(phones, arrivals) {
                #expect(try phone.message(try await pushes.next("“\(text)”")).text == text)
            }
        }
        try await write("before")
        try await staying.drained()
        dying.signal(SIGKILL)
        try await write("after")
        #expect(await dying.status() == -SIGKILL)
        try await staying.drained()
        #expect(staying.stage.apns.counters.accepted == 2 * phones.count)
    }
}

/// Writes a message to each of the phones, waits for all of them to arrive, and writes the next: one that is
/// lost is waited for in vain.
private final class Writer: Sendable {
    private let network: SessionNetworkSimulator
    private let phones: [(phone: SessionPhone, arrivals: AsyncStream<Delivery>)]
    private let state = Mutex((written: 0, isStopping: false))

    init(_ network: SessionNetworkSimulator, _ phones: [SessionPhone], _ apns: APNsSimulator) {
        self.network = network
        self.phones = phones.map { ($0, apns.subscribe(token: $0.token)) }
    }

    var written: Int { state.withLock(\.written) }
    func stop() { state.withLock { $0.isStopping = true } }

    func write() async throws {
        while !state.withLock(\.isStopping) {
            // Equal messages to one account are one message.
            for (phone, _) in phones { network.store("message \(written)", for: phone) }
            state.withLock { $0.written += phones.count }
            for (_, arrivals) in phones { _ = try await arrivals.next("a message amid a hand-over") }
        }
    }
}
