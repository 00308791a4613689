import PushModel
import SessionPush
import Simulators
import SwarmIngress
import PushTesting
import Testing

@Suite("Watches that storage nodes refuse, and what an operator hears of them", .timeLimit(.minutes(30)))
struct RefusedWatchTests {
    private static let start = ContinuousClock.now
    private static let nodes = (1...5).map { LinkRig.node($0).key }

    private static func refused(_ change: (inout SwarmLimits) -> Void = { _ in }) -> RefusedWatches {
        var limits = SwarmLimits()
        change(&limits)
        return RefusedWatches(limits)
    }

    /// As many nodes refuse a watch as decide.
    private static func refuse(
        _ revisions: ClosedRange<UInt64>, _ refused: inout RefusedWatches, at span: Duration = .zero
    ) {
        for revision in revisions {
            for node in nodes.prefix(3) {
                refused.add(revision, by: node, of: 5, at: start + span)
            }
        }
    }

    @Test("A watch counts once, when most of its swarm refuse it, and again once all begins anew")
    func majority() {
        var refused = Self.refused { $0.refusedLeast = 1 }
        func told() -> Int {
            refused.look(10, at: Self.start)
            return refused.told
        }
        for node in Self.nodes.prefix(2) { refused.add(1, by: node, of: 5, at: Self.start) }
        refused.add(1, by: Self.nodes[0], of: 5, at: Self.start)
        #expect(told() == 0, "two of five, one of them twice")
        for node in Self.nodes { refused.add(1, by: node, of: 5, at: Self.start) }
        #expect(told() == 1)
        Self.refuse(1...1, &refused)
        #expect(told() == 1)
        refused.forget()
        Self.refuse(1...1, &refused)
        #expect(told() == 2)
    }

    @Test(
        "Three are told of, or all where there are fewer, and one in a hundred where there are many",
        arguments: [(1, 1), (2, 2), (3, 3), (50, 3), (1_000, 10), (1_000_000, 8_192)])
    func enough(_ watches: Int, _ enough: Int) {
        var refused = Self.refused()
        if enough > 1 { Self.refuse(1...UInt64(enough - 1), &refused) }
        refused.look(watches, at: Self.start)
        #expect(refused.told == 0)
        Self.refuse(UInt64(enough)...UInt64(enough), &refused)
        refused.look(watches, at: Self.start)
        #expect(refused.told == enough)
    }

    @Test("Once told, it holds until fewer than half of that many are left")
    func hysteresis() {
        var refused = Self.refused()
        Self.refuse(1...3, &refused)
        Self.refuse(4...5, &refused, at: .seconds(20 * 60))
        Self.refuse(6...6, &refused, at: .seconds(40 * 60))
        func told(_ minutes: Int) -> Int {
            refused.look(100, at: Self.start + .seconds(minutes * 60))
            return refused.told
        }
        #expect(told(89) == 6)
        #expect(told(90) == 3)
        #expect(told(109) == 3)
        #expect(told(110) == 0, "one is left")
        Self.refuse(7...8, &refused, at: .seconds(111 * 60))
        #expect(told(111) == 3)
        #expect(told(130) == 2, "two of three are enough to hold")
        #expect(told(201) == 0)
        Self.refuse(9...10, &refused, at: .seconds(201 * 60))
        #expect(told(201) == 0, "and too few to begin")
    }

    @Test("Where so many are refused that votes are kept of a part alone, it is told all the same")
    func bounded() {
        var refused = Self.refused { $0.votes = 100 }
        Self.refuse(1...200, &refused)
        refused.look(1_000_000, at: Self.start)
        #expect((50...200).contains(refused.told))
    }

    @Test("The link counts what its nodes refuse, for good or not, over real sockets", arguments: [1, 5])
    func overSockets(_ number: Int) async throws {
        let rig = try await SwarmRig()
        for node in 0..<2 { rig.network.turn(node) { $0.answers = .refusal(number) } }
        try await rig.register([try SwarmAccount().watch(), try SwarmAccount().watch()])
        let ingress = try rig.ingress()
        try await rig.run(ingress) {
            try await asked(for: "two refused watches") { ingress.statistics.refused == 2 }
            #expect(ingress.statistics.watches == (number == 5 ? 0 : 2))
        }
    }

    @Test(
        "The swarm's verdict takes half of its known nodes, and two where there are two",
        arguments: [(1, 1), (2, 2), (3, 2), (4, 2), (5, 3), (7, 4)])
    func verdict(nodes count: Int, needed: Int) throws {
        let rig = try LinkRig()
        let nodes = (1...count).map { LinkRig.node($0) }
        rig.take(.rows(LinkRig.entries(1...1)))
        try rig.begin(nodes)
        for node in nodes { rig.connect(node) }
        rig.read(try rig.wanted())
        for (number, node) in nodes.prefix(needed).enumerated() {
            #expect(rig.ended.isEmpty, "after \(number)")
            try rig.reply(node, 1, refusal: 5)
        }
        #expect(rig.ended == [1])
    }

    @Test("A row whose signature its swarm refuses ends, and with another reason it stays", arguments: [5, 4])
    func verdict(_ number: Int) async throws {
        let rig = try await SwarmRig()
        for node in 0..<3 { rig.network.turn(node) { $0.answers = .refusal(number) } }
        try await rig.register([try SwarmAccount().watch()])
        let ingress = try rig.ingress()
        try await rig.run(ingress) {
            try await asked(for: "a rotation without it") { ingress.statistics.watches == 0 }
            if number == 5 {
                try await asked(for: "the row's end") { try await rig.rows() == 0 }
            } else {
                #expect(try await rig.rows() == 1)
            }
        }
    }

    @Test("A node that alone refuses a signature ends nothing")
    func liar() async throws {
        let rig = try await SwarmRig()
        rig.network.turn(0) { $0.answers = .refusal(5) }
        try await rig.register([try SwarmAccount().watch()])
        let ingress = try rig.ingress()
        try await rig.run(ingress) {
            try await rig.shown(1, at: [1, 2])
            #expect(try await rig.rows() == 1 && ingress.statistics.watches == 1)
        }
    }

    @Test("A row that has changed since it was refused stays", arguments: [true, false])
    func changed(isChanged: Bool) async throws {
        let rig = try await SwarmRig(SessionNetworkConfiguration(swarms: [5]))
        let watch = try SwarmAccount().watch()
        try await rig.register([watch])
        let source = WatchSource(
            registry: rig.registry, space: rig.space, limits: SwarmLimits(), now: { World.live.now() },
            parse: { rig.parse($0) })
        let row = try #require(try await rig.registry.page(.space(rig.space), after: 0, limit: 1).first)
        if isChanged { #expect(try await rig.registry.apply([.put(row, if: .any)]) == .committed) }
        try await source.end([row.revision])
        #expect(try await rig.rows() == (isChanged ? 1 : 0))
        await rig.network.stop()
    }
}
