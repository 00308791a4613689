import AtRest
import Delivery
import PushModel
import PushTesting
import Synchronization
import Testing

@Suite("In which order pushes leave", .timeLimit(.minutes(30)))
struct SendOrderTests {
    @Test(
        "A call leaves next, with twenty thousand parked and the memory full", arguments: EngineKind.allCases)
    func urgent(_ kind: EngineKind) async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 512 }
        // SQLite in a debug build: a tenth of it shows the same.
        let count = kind == .memory ? 20_000 : 2_000
        let other = ScriptedProvider(Names.otherAPNs) { _ in .accepted }
        try await Rig.run(Depot(kind), .of(provider, other), limits: limits) { rig in
            try await rig.owe((1...count).map { push($0, origin: "o\($0 % 3)") })
            // What a call brought beyond the room counts as parked once the store has it so. The settler
            // counts one batch before it takes the next: behind two more, all that was owed is counted.
            for number in 1...2 {
                try await rig.expect([.accepted], of: [push(100_000 + number, bundle: "org.other")])
                await rig.outbox.ended.wait(for: number)
            }
            let before = try rig.lane()
            #expect(before.inMemory == 512)
            #expect(before.parked == count - 512)
            try await rig.owe([push(count + 1, .urgent)])
            provider.grant(1)
            await provider.waitForSent(1)
            #expect(provider.addresses[0] == "t\(count + 1)")
        }
    }

    /// SQLite in a debug build: less shows the same, and a test of its claims has the hundred thousand.
    private static func backlog(_ kind: EngineKind) -> Int { kind == .memory ? 100_000 : 6_000 }

    @Test(
        "With one origin owing a hundred thousand, another's push leaves second",
        arguments: EngineKind.allCases)
    func second(_ kind: EngineKind) async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        let count = Self.backlog(kind)
        try await Rig.run(Depot(kind, rows: 200_000), .of(provider)) { rig in
            try await rig.owe((1...count).map { push($0, origin: "noisy") })
            try await rig.owe([push(500_000, origin: "quiet")])
            provider.grant(1)
            await provider.waitForSent(2)
            #expect(provider.addresses[0..<2].contains("t500000"))
        }
    }

    @Test(
        "In the midst of a drain a call leaves next, and another origin's push after one turn of the others",
        arguments: EngineKind.allCases)
    func amidst(_ kind: EngineKind) async throws {
        let count = Self.backlog(kind)
        // The n-th request is answered once so many answers are allowed; one is under way at a time.
        let allowed = AwaitedCount()
        let asked = Mutex(0)
        let provider = ScriptedProvider(Names.fcm, slots: 1) { _ in
            let number = asked.withLock { asked in
                asked += 1
                return asked
            }
            await allowed.wait(for: number)
            return .accepted
        }
        try await Rig.run(Depot(kind, rows: 200_000), .of(provider)) { rig in
            try await rig.owe((1...count).map { push($0, origin: "o\($0 % 3)") })
            // Past the first claims from the store.
            allowed.add(4_500)
            await provider.waitForSent(4_501)
            for call in 0..<20 {
                let sent = 4_501 + call * 10
                try await rig.owe([push(500_000 + call, .urgent), push(600_000 + call, origin: "quiet")])
                allowed.add(10)
                await provider.waitForSent(sent + 10)
                let next = provider.addresses[sent..<sent + 10]
                #expect(next.first == "t\(500_000 + call)")
                #expect(next.prefix(5).contains("t\(600_000 + call)"), "\(next)")
            }
            allowed.add(count)
        }
    }

    @Test("A lane whose service is dead leaves the others' sends as they were")
    func deadLane() async throws {
        let dead = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        let alive = ScriptedProvider(Names.apns) { _ in .accepted }
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 64 }
        try await Rig.run(Depot(), .of(dead, alive), limits: limits) { rig in
            try await rig.owe((1...500).map { push($0) })
            for number in 1_000..<1_050 {
                try await rig.expect([.accepted], of: [push(number, bundle: "org.acme")])
            }
            #expect(alive.addresses == (1_000..<1_050).map { "t\($0)" })
            #expect(dead.sent.isEmpty)
        }
    }

    @Test(
        "Parked pushes come back by class, then by origins in turn, and each is sent exactly once",
        arguments: EngineKind.allCases)
    func parkedOrder(_ kind: EngineKind) async throws {
        let depot = Depot(kind)
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 64 }
        let still = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(depot, .of(still), limits: limits) { rig in
            var pushes: [Push] = []
            for (level, pushClass) in [PushClass.background, .normal, .urgent].enumerated() {
                for origin in 0..<5 {
                    for number in 0..<40 {
                        pushes.append(
                            push(level * 1_000 + origin * 100 + number, origin: "o\(origin)", pushClass))
                    }
                }
            }
            try await rig.owe(pushes)
        }
        depot.clock.advance(by: .seconds(30))
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(depot, .of(provider), limits: limits) { rig in
            await rig.pass(.milliseconds(100))
            await rig.pass(until: rig.outbox.claims, reaches: 1)
            provider.grant(1)
            await rig.pass(.seconds(3))
            await rig.pass(until: rig.outbox.ended, reaches: 600)
            try await rig.expectRows(0)
        }
        let sent = provider.sent
        #expect(Set(sent.map(\.id)).count == 600)
        #expect(sent.count == 600)
        for (pushClass, part) in zip(
            [PushClass.urgent, .normal, .background], [0..<200, 200..<400, 400..<600])
        {
            #expect(sent[part].allSatisfy { $0.pushClass == pushClass })
            // Nobody waits behind another's row: half way each has had its half, but for a turn.
            let half = Dictionary(grouping: sent[part].prefix(100), by: \.origin).mapValues(\.count)
            #expect(half.count == 5)
            #expect(half.values.allSatisfy { (16...24).contains($0) }, "\(half.values)")
            #expect(Set(sent[part].prefix(5).map(\.origin)).count == 5)
        }
    }

    @Test("Retries that sleep give way to a call when the memory is full of them")
    func sleepersYield() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 8) { push in
            push.pushClass == .urgent ? .accepted : .busy(.seconds(3))
        }
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 8 }
        try await Rig.run(Depot(), .of(provider), limits: limits) { rig in
            try await rig.owe((1...8).map { push($0) })
            await rig.outbox.retried.wait(for: 8)
            let before = try rig.lane().inMemory
            #expect(before == 8)
            try await rig.expect([.accepted], of: [push(9, .urgent)])
            let inMemory = try rig.lane().inMemory
            #expect(inMemory <= 8)
        }
    }
}
