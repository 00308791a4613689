import PushModel
import PushTesting
import SessionPush
import Simulators
import SwarmIngress
import Testing

@Suite("The link to the swarm, over real sockets", .timeLimit(.minutes(30)))
struct SwarmLinkTests {
    @Test("Every node of the swarm is shown what was registered, and each tells of a message")
    func shownAndTold() async throws {
        let rig = try await SwarmRig()
        let account = try await rig.account()
        try await rig.run(try rig.ingress()) {
            try await rig.shown(1, at: [0, 1, 2])
            rig.network.store(account.message(7))
            let pushes = try await rig.told(3)
            #expect(pushes.allSatisfy { $0.hashText == account.message(7).hashText })
            #expect(pushes.allSatisfy { $0.account == account.id && $0.data?.count == 40 })
        }
    }

    @Test("A registration is shown at once while the link runs, to the nodes of its swarm alone")
    func freshRegistration() async throws {
        let swarms: [UInt64] = [1 << 62, 3 << 62]
        let rig = try await SwarmRig(SessionNetworkConfiguration(swarms: swarms))
        let map = SwarmMap(swarms)
        try await rig.register([try SwarmAccount(in: map, swarm: swarms[0]).watch()])
        try await rig.run(try rig.ingress()) {
            try await rig.shown(1, at: [0])
            try await rig.register([try SwarmAccount(in: map, swarm: swarms[1]).watch()])
            try await rig.shown(1, at: [1])
            #expect(await rig.network.watches(at: 0) == 1)
            #expect(await rig.network.watches(at: 1) == 1)
        }
    }

    @Test("Many are shown in batches, each node one after the other's reply")
    func batches() async throws {
        let rig = try await SwarmRig()
        var limits = SwarmRig.limits
        limits.rowsPerBatch = 7
        limits.bytesPerBatch = 900
        let watches = try (0..<60).map { _ in try SwarmAccount().watch() }
        try await rig.register(watches)
        try await rig.run(try rig.ingress(limits)) {
            try await rig.shown(60, at: [0, 1, 2])
            for node in 0..<3 { #expect(await rig.network.watches(at: node) == 60) }
        }
    }

    @Test("A node that was restarted has lost its watches, and is shown them again")
    func restart() async throws {
        let rig = try await SwarmRig(SessionNetworkConfiguration(swarms: [5]))
        let account = try await rig.account()
        try await rig.run(try rig.ingress()) {
            try await rig.shown(1, at: [0])
            rig.network.restart(0)
            try await rig.shown(1, at: [0])
            rig.network.store(account.message(1))
            #expect(try await rig.told(1)[0].hashText == account.message(1).hashText)
        }
    }

    @Test("A connection that is cut comes back under the same name, and everything is shown again")
    func cut() async throws {
        let rig = try await SwarmRig(SessionNetworkConfiguration(swarms: [5]))
        try await rig.register([try SwarmAccount().watch()])
        try await rig.run(try rig.ingress()) {
            try await rig.shown(1, at: [0])
            rig.network.cut(0)
            try await rig.shown(1, at: [0])
            #expect(await rig.network.watches(at: 0) == 1, "one watch for each account and connection")
        }
    }

    @Test("Nodes for which there is no socket are told of once and tried again; the others stay")
    func noRoom() async throws {
        let rig = try await SwarmRig()
        try await rig.register([try SwarmAccount().watch()])
        var limits = SwarmRig.limits
        // The daemon has three, and a node three: two are too few for another.
        limits.sockets = 8
        let ingress = try rig.ingress(limits)
        try await rig.run(ingress) {
            _ = try await rig.notes.next("no room") { $0 == "no-room" }
            try await asked(for: "a connected node") { ingress.statistics.connected > 0 }
            #expect(ingress.statistics.isDaemonConnected && ingress.statistics.connected < 3)
        }
    }

    @Test("A watch is renewed after its span")
    func renewal() async throws {
        let rig = try await SwarmRig(SessionNetworkConfiguration(swarms: [5]))
        try await rig.register([try SwarmAccount().watch()])
        let limits = changing(SwarmRig.limits) { $0.renewal = .milliseconds(50)...(.milliseconds(100)) }
        try await rig.run(try rig.ingress(limits)) {
            for _ in 0..<3 { try await rig.shown(1, at: [0]) }
        }
    }

    @Test("A signature past its fourteen days is not shown")
    func expired() async throws {
        let rig = try await SwarmRig(SessionNetworkConfiguration(swarms: [5]))
        let now = World.live.now().seconds
        try await rig.register([
            try SwarmAccount().watch(at: now - 14 * 86_400 - 5), try SwarmAccount().watch(at: now)
        ])
        try await rig.run(try rig.ingress()) {
            let note = try await rig.seen.next("a request") { $0.isWatched }
            #expect(note == .watched(node: 0, taken: 1, refused: 0))
        }
    }

    @Test("A node that leaves the list is left, and one that changes its swarm is shown the new one")
    func changes() async throws {
        let swarms: [UInt64] = [1 << 62, 3 << 62, 3 << 62]
        let rig = try await SwarmRig(SessionNetworkConfiguration(swarms: swarms))
        let map = SwarmMap(swarms)
        try await rig.register([
            try SwarmAccount(in: map, swarm: swarms[0]).watch(),
            try SwarmAccount(in: map, swarm: swarms[1]).watch(),
            try SwarmAccount(in: map, swarm: swarms[1]).watch()
        ])
        let ingress = try rig.ingress()
        try await rig.run(ingress) {
            try await rig.shown(2, at: [1, 2])
            rig.network.block(swarms: [1 << 62, nil, 1 << 62])
            try await rig.shown(3, at: [0, 2])
            try await asked(for: "two connected nodes") { ingress.statistics.connected == 2 }
            #expect(ingress.statistics.nodes == 2)
            #expect(ingress.statistics.swarms == 1)
        }
    }
}
