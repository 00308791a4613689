import AtRest
@testable import Delivery
import PushModel
import PushTesting
import Synchronization
import Testing

@Suite("Several processes on one store", .timeLimit(.minutes(30)))
struct SharedStoreTests {
    /// A lease that no machine is so slow as to outlast: a server's clock goes on while the test's stands.
    private static var limits: DeliveryLimits {
        let limits = changing(DeliveryLimits()) { $0.aliveFor = .seconds(600) }
        return limits
    }

    @Test(
        "What a process that dies owes is sent by those that live, each push once",
        arguments: SharedEngine.allCases)
    func death(_ engine: SharedEngine) async throws {
        let depot = try await Depot.shared(engine)
        let providers = (0..<4).map { number in
            // The first owes, and sends nothing.
            ScriptedProvider(Names.fcm, slots: number == 0 ? 0 : 2) { _ in .accepted }
        }
        try await Fleet.run(depot, providers.map { .of($0) }, limits: Self.limits) { rigs in
            try await rigs[0].owe((1...300).map { push($0) })
            try await rigs[1].owe((301...400).map { push($0) })
            rigs[0].outbox.cut()
            await rigs[1].outbox.ended.wait(for: 100)
            await rigs.pass(.seconds(50), step: .seconds(2))
            // By the store's clock it lives, and what it owes is its own.
            #expect(providers.map(\.sent.count) == [0, 100, 0, 0])
            await rigs.pass(.seconds(560), step: .seconds(2))
            try await rigs.pass(untilEnded: 400)
            #expect(providers[0].sent.isEmpty)
            let sent = providers.flatMap(\.addresses)
            #expect(sent.count == 400 && Set(sent).count == 400)
            try await rigs.pass(untilOwed: 0)
        }
    }

    @Test("Processes look about every ten seconds, and not all in the same moments")
    func looks() async throws {
        let depot = Depot()
        let start = depot.clock.now
        let seen = Mutex<[[Duration]]>([[], [], [], []])
        let plans = (0..<4).map { _ in
            DeliveryService.Setup.of(ScriptedProvider(Names.fcm) { _ in .accepted })
        }
        try await Fleet.run(depot, plans) { rigs in
            for (number, rig) in rigs.enumerated() {
                rig.outbox.looking.withLock {
                    $0.call = { seen.withLock { $0[number].append(depot.clock.now.since(start)) } }
                }
            }
            await rigs.pass(.seconds(120), step: .milliseconds(250))
        }
        let looks = seen.withLock { $0 }
        for own in looks {
            let gaps = zip(own, own.dropFirst()).map { $1 - $0 }
            #expect(gaps.allSatisfy { $0 >= .milliseconds(7_500) && $0 <= .milliseconds(12_750) })
            #expect(own.count >= 8)
        }
        #expect(Set(looks).count == 4, "each has moments of its own")
    }

    @Test("Pushes of a lane that a process lacks are left to one that has it")
    func missingLane() async throws {
        let depot = Depot()
        let silent = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        let other = ScriptedProvider(Names.otherAPNs) { _ in .accepted }
        try await Fleet.run(depot, [.of(silent), .of(other)]) { rigs in
            try await rigs[0].owe((1...20).map { push($0) })
            rigs[0].outbox.cut()
            await rigs.pass(.seconds(90))
            try await rigs[1].expectRows(20)
            #expect(rigs[1].outbox.claims.count == 0, "its lane asks for nothing of another lane's")
            let heir = ScriptedProvider(Names.fcm) { _ in .accepted }
            try await Rig.run(depot, .of(heir)) { third in
                try await [rigs[0], rigs[1], third].pass(untilEnded: 20)
                #expect(Set(heir.addresses).count == 20 && heir.sent.count == 20)
            }
        }
    }

    @Test("A lane that one process loses in a reload is served by another, though the first lives on")
    func removedLane() async throws {
        let depot = Depot()
        let gone = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        let stays = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Fleet.run(depot, [.of(gone), .of(stays)]) { rigs in
            try await rigs[0].owe((1...20).map { push($0) })
            rigs[0].service.adopt(.of([]))
            await rigs[0].outbox.parked.wait(for: 20)
            try await rigs.pass(untilEnded: 20)
            #expect(Set(stays.addresses).count == 20 && stays.sent.count == 20)
        }
    }

    @Test("Parked pushes of a living process make nobody else ask the store again and again")
    func foreignBacklog() async throws {
        let depot = Depot()
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 16 }
        let stuck = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        let idle = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Fleet.run(depot, [.of(stuck), .of(idle)], limits: limits) { rigs in
            try await rigs[0].owe((1...200).map { push($0) })
            await rigs.pass(.seconds(60))
            #expect(rigs[1].outbox.claims.count <= 1)
            #expect(idle.sent.isEmpty)
            try await rigs[1].expect([.accepted], of: [push(500)])
        }
    }

    @Test(
        "A process stopped for longer than its lease sends nothing of what it held when it goes on",
        arguments: SharedEngine.allCases)
    func stopped(_ engine: SharedEngine) async throws {
        let depot = try await Depot.shared(engine)
        let mine = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        let theirs = ScriptedProvider(Names.fcm, slots: 4) { _ in .accepted }
        // Its clock counts the stop, and its timers fire only afterwards.
        let own = ManualClock()
        try await Rig.run(depot, .of(mine), limits: Self.limits, own: own) { rig in
            try await rig.owe((1...100).map { push($0) })
            try await Rig.run(depot, .of(theirs), limits: Self.limits) { other in
                await other.pass(.seconds(612), step: .seconds(2))
                try await [other].pass(untilEnded: 100)
                // SIGCONT, with a push service that takes everything at once.
                own.suspend(for: .seconds(640))
                mine.grant(100)
                await rig.outbox.foreign.wait(for: 100)
                #expect(mine.sent.isEmpty)
                // Its timers fire, and it takes part again.
                await rig.pass(.seconds(10), step: .seconds(5))
                try await rig.expect([.accepted], of: [push(101)])
                #expect(mine.addresses == ["t101"])
            }
        }
        #expect(Set(theirs.addresses).count == 100 && theirs.sent.count == 100)
    }

    @Test("What was put off here and is another's by now hides nothing that waits here")
    func putOffElsewhere() async throws {
        let depot = Depot()
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 2 }
        let gate = AwaitedCount()
        let mine = ScriptedProvider(Names.fcm, slots: 1) { push in
            if push.address != "t1" { await gate.wait(for: 1) }
            return .accepted
        }
        let theirs = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(depot, .of(mine), limits: limits, own: ManualClock()) { rig in
            // One leaves at once, five are put off by one to five minutes.
            _ = try await rig.admit((1...6).map { push($0) }, perMinute: 1)
            depot.clock.advance(by: .seconds(30))
            try await Rig.run(depot, .of(theirs)) { other in
                // Awake again, it owes five others: one under way, two in memory, two in the store.
                await rig.pass(.seconds(6))
                try await rig.owe((11...15).map { push($0) })
                await mine.waitForSent(2)
                let asked = rig.outbox.counts.count
                await rig.pass(until: rig.outbox.counts, reaches: asked + 2)
                gate.add()
                await rig.pass(.seconds(20))
                #expect(Set(mine.addresses) == ["t1", "t11", "t12", "t13", "t14", "t15"])
                #expect(try await other.store.load().lanes == [Names.fcm: 5])
            }
        }
    }

    @Test("A push that comes back to the process that had its answer is settled and not sent again")
    func comesBack() async throws {
        let depot = Depot()
        let mine = ScriptedProvider(Names.fcm) { _ in .accepted }
        let theirs = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Fleet.run(depot, [.of(mine), .of(theirs)]) { rigs in
            // It has the answer, and cannot reach the store with it until the push is the other's.
            rigs[0].outbox.set { ($0.settle, $0.renew) = (.unavailable, .unavailable) }
            try await rigs[0].owe([push(1)])
            await rigs[0].pass(until: rigs[1].outbox.claims, reaches: 1)
            rigs[1].outbox.cut()
            rigs[0].outbox.set { ($0.settle, $0.renew) = (nil, nil) }
            await rigs[0].pass(until: rigs[0].outbox.foreign, reaches: 1)
            await rigs[0].pass(until: rigs[0].outbox.ended, reaches: 1)
            try await rigs[0].expectRows(0)
            #expect(mine.addresses == ["t1"])
        }
    }
}
