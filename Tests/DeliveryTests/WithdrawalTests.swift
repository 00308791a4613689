import AtRest
import Delivery
import PushModel
import PushTesting
import Testing

@Suite("Pushes that are withdrawn before their sender hears that they failed", .timeLimit(.minutes(30)))
struct WithdrawalTests {
    private func admit(_ pushes: [Push], _ rig: Rig) async throws -> [FirstOutcome] {
        let verdict = Verdict<[FirstOutcome], SampleError>(
            pushes: pushes, reply: .withdrawingAfterFirstAttempt(deadline: .seconds(3)) { $0 },
            refusal: { _ in SampleError() })
        return try await rig.service.intake.admit(verdict, instance: Names.instance)
    }

    @Test(
        "Nothing is left of them when the reply leaves, and a repeat is sent anew",
        arguments: EngineKind.allCases)
    func withdrawn(_ kind: EngineKind) async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 3) { push in
            switch push.address {
            case "t1": .rejected
            case "t2": .badTopic
            default: .busy()
            }
        }
        try await Rig.run(Depot(kind), .of(provider)) { rig in
            let pushes = [push(1), push(2), push(3)]
            let failed: [FirstOutcome] = [.known(.rejected), .known(.misconfigured), .known(.retry)]
            let first = try await admit(pushes, rig)
            #expect(first == failed)
            try await rig.expectRows(0)
            let second = try await admit(pushes, rig)
            #expect(second == failed)
            #expect(provider.sent.count == 6)
            try await rig.expectRows(0)
        }
    }

    @Test("What was accepted keeps its mark", arguments: EngineKind.allCases)
    func accepted(_ kind: EngineKind) async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(kind), .of(provider)) { rig in
            for _ in 0..<2 {
                let outcomes = try await admit([push(1)], rig)
                #expect(outcomes == [.accepted])
            }
            #expect(provider.sent.count == 1)
        }
    }

    @Test("What has no answer by the deadline is pending, and goes on")
    func pending() async throws {
        let answers = Watch()
        let provider = ScriptedProvider(Names.fcm) { _ in
            await answers.wait(for: 1)
            return .busy()
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            async let outcomes = admit([push(1)], rig)
            await provider.waitForSent(1)
            await rig.pass(.seconds(4))
            let known = try await outcomes
            #expect(known == [.pending])
            answers.add()
            await rig.pass(untilSent: 2, by: provider)
        }
    }

    @Test("A push that another reply has told of already is not withdrawn")
    func shared() async throws {
        let answers = Watch()
        let trace = Trace()
        let provider = ScriptedProvider(Names.fcm) { _ in
            await answers.wait(for: 1)
            return .busy()
        }
        try await Rig.run(Depot(), .of(provider), trace: trace) { rig in
            async let plain = rig.admit([push(1)])
            await provider.waitForSent(1)
            async let withdrawing = admit([push(1)], rig)
            await trace.until { $0.count == 2 }
            answers.add()
            let outcomes = try await [plain, withdrawing]
            #expect(outcomes == [[.known(.retry)], [.pending]])
            await rig.pass(untilSent: 2, by: provider)
        }
    }
}
