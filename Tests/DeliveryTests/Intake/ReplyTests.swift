import AtRest
import Delivery
import PushModel
import PushTesting
import Testing

@Suite("When a sender hears back", .timeLimit(.minutes(30)))
struct ReplyTests {
    @Test(
        "A push is committed before it is sent, and sent before its sender hears back",
        arguments: EngineKind.allCases)
    func order(_ kind: EngineKind) async throws {
        let trace = Trace()
        let depot = Depot(kind)
        let provider = ScriptedProvider(Names.fcm) { _ in
            trace.add("sent")
            return .accepted
        }
        try await Rig.run(depot, .of(provider), trace: trace) { rig in
            try await rig.expect([.accepted], of: [push(1)])
            trace.add("replied")
            #expect(trace.text.filter { $0 != "settled" } == ["accepted", "sent", "replied"])
            await rig.outbox.ended.wait(for: 1)
            try await rig.expectRows(0)
        }
    }

    @Test("When all first outcomes are known the reply leaves at once, in the order of its pushes")
    func allKnown() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 4) { push in
            switch push.address {
            case "t1": .accepted
            case "t2": .rejected
            case "t3": .badTopic
            default: .busy()
            }
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            let outcomes = try await rig.admit([push(1), push(2), push(3), push(4)])
            #expect(outcomes == [.accepted, .known(.rejected), .known(.misconfigured), .known(.retry)])
            // The clock never moved.
            #expect(rig.depot.clock.now == UnixTime(seconds: 1_800_000_000))
        }
    }

    @Test("At the deadline the reply leaves, and what has no answer yet counts as pending")
    func deadline() async throws {
        let answers = AwaitedCount()
        let provider = ScriptedProvider(Names.fcm, slots: 2) { push in
            if push.address == "t2" { await answers.wait(for: 1) }
            return .accepted
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            async let reply = rig.admit([push(1), push(2)])
            await provider.waitForSent(2)
            await rig.outbox.ended.wait(for: 1)
            await rig.pass(.milliseconds(2_900))
            #expect(rig.service.snapshot()[0].inFlight == 1)
            await rig.pass(.milliseconds(200))
            let outcomes = try await reply
            #expect(outcomes == [.accepted, .pending])
            try await rig.expectRows(1)
            answers.add()
            await rig.outbox.ended.wait(for: 2)
        }
    }

    @Test("Nobody waits for a halted lane")
    func halted() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .badCredential }
        try await Rig.run(Depot(), .of(provider), limits: .haltsAtOnce) { rig in
            try await rig.expect([.known(.misconfigured)], of: [push(1)])
            // No time passes here: who waited would wait for ever.
            let unanswered = try await rig.admit([push(2), push(3)])
            #expect(unanswered == [.pending, .pending])
            #expect(provider.addresses == ["t1"], "and nothing more is sent")
            try await rig.expectRows(3)
        }
    }

    @Test("Nobody waits for a lane whose backlog exceeds the deadline")
    func backlog() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe((1...1_001).map { push($0) })
            // No time passes here: who waited would wait for ever.
            let unanswered = try await rig.admit([push(2_000)])
            #expect(unanswered == [.pending])
            #expect(provider.sent.isEmpty)
            provider.grant(1)
            await rig.outbox.ended.wait(for: 1_002)
            #expect(Set(provider.addresses).count == 1_002, "each is sent, and once")
            #expect(provider.sent.count == 1_002)
        }
    }

    @Test("Nobody waits for a lane that is known to be too slow for its backlog")
    func slowLane() async throws {
        let (asked, goesOn) = (Noted(0), AwaitedCount())
        let provider = ScriptedProvider(Names.fcm) { _ in
            let number = asked.change { count in
                count += 1
                return count
            }
            if number > 1 { await goesOn.wait(for: 1) }
            return .accepted
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe((1...3_000).map { push($0) })
            // One answer within a tick: at that pace the rest takes minutes.
            await rig.outbox.ended.wait(for: 1)
            await rig.pass(.milliseconds(100))
            // No more time passes: who waited would wait for ever.
            let unanswered = try await rig.admit([push(4_000)])
            #expect(unanswered == [.pending])
            #expect(provider.sent.count <= 2)
            goesOn.add()
            await rig.outbox.ended.wait(for: 3_001)
            #expect(Set(provider.addresses).count == 3_001 && provider.sent.count == 3_001)
        }
    }

    @Test("A dead registration is expired when the reply leaves", arguments: EngineKind.allCases)
    func feedback(_ kind: EngineKind) async throws {
        let trace = Trace()
        let depot = Depot(kind)
        let provider = ScriptedProvider(Names.fcm) { _ in .gone(at: depot.clock.now) }
        try await Rig.run(depot, .of(provider), trace: trace) { rig in
            let key = Names.phone
            let touched = depot.clock.now - .seconds(60)
            try await rig.register(key, touchedAt: touched)
            let reply = try await rig.admit([push(1, record: key, touchedAt: touched)])
            trace.add("replied")
            #expect(reply == [.known(.unregistered)])
            #expect(trace.text == ["accepted", "settled", "replied"])
            let record = try #require(try await rig.store.find([key])[0])
            #expect(record.state == .expired(at: depot.clock.now))
        }
    }

    @Test("While the store cannot settle, nobody hears of a dead registration")
    func feedbackWaits() async throws {
        let depot = Depot()
        let provider = ScriptedProvider(Names.fcm) { _ in .gone(at: depot.clock.now) }
        try await Rig.run(depot, .of(provider)) { rig in
            let key = Names.phone
            let touched = depot.clock.now - .seconds(60)
            try await rig.register(key, touchedAt: touched)
            rig.outbox.set { $0.settle = .unavailable }
            async let reply = rig.admit([push(1, record: key, touchedAt: touched)])
            await provider.waitForSent(1)
            await depot.clock.sleepers(atLeast: 4)
            rig.outbox.set { $0.settle = nil }
            await rig.pass(.milliseconds(200))
            let outcomes = try await reply
            #expect(outcomes == [.known(.unregistered)])
            #expect(
                try await rig.store.find([key])[0]?.state
                    == .expired(at: depot.clock.now - .milliseconds(200)))
        }
    }

    @Test("A push that no app serves is dropped, the reply says so, and nothing is owed")
    func dropped() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            let reply = try await rig.admit([push(1, bundle: "org.nobody"), push(2)])
            #expect(reply == [.dropped, .accepted])
            await rig.outbox.ended.wait(for: 1)
            try await rig.expectRows(0)
            #expect(provider.addresses == ["t2"])
        }
    }
}
