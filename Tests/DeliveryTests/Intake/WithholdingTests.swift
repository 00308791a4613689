import AtRest
import Delivery
import PushModel
import PushTesting
import Testing

@Suite("Calls of which a part is withheld", .timeLimit(.minutes(30)))
struct WithholdingTests {
    private struct Answer: Sendable, Equatable {
        var outcomes: [FirstOutcome]
        var withheld: [Int] = []
    }

    private let record = Names.phone

    /// One push of each origin, numbered from there on.
    private func pushes(_ origins: [String], from first: Int) -> [Push] {
        origins.enumerated().map { push(first + $0.offset, origin: $0.element) }
    }

    private func verdict(
        _ pushes: [Push], changes: [Change] = []
    ) -> Verdict<Answer, SampleError> {
        let deadline = Duration.seconds(3)
        var verdict = Verdict<Answer, SampleError>(
            pushes: pushes, changes: changes,
            reply: .afterFirstAttempt(deadline: deadline) { Answer(outcomes: $0) })
        verdict.withheld = { withheld in
            .afterFirstAttempt(deadline: deadline) { Answer(outcomes: $0, withheld: withheld) }
        }
        return verdict
    }

    private func admit(_ rig: Rig, _ verdict: Verdict<Answer, SampleError>) async throws -> Answer {
        try await rig.service.intake.admit(verdict, instance: Names.instance, perMinute: 4)
    }

    /// Brings an origin four minutes beyond the bound.
    private func exceed(_ origin: String, of rig: Rig) async throws {
        let pushes = (1...60).map { push($0, origin: origin) }
        _ = try await rig.admit(pushes, perMinute: 4)
        await rig.outbox.ended.wait(for: 4)
    }

    @Test(
        "One origin's excess is withheld; others' pushes and the changes are taken, and told in order",
        arguments: EngineKind.allCases)
    func part(_ kind: EngineKind) async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 8) { push in
            push.address == "t102" ? .rejected : .accepted
        }
        try await Rig.run(Depot(kind), .of(provider)) { rig in
            try await exceed("loud", of: rig)
            let change = Change.put(
                Record(key: record, touchedAt: rig.clock.now, body: Secret([1])), if: .absent)
            let mixed = pushes(["loud", "one", "two", "loud", "three"], from: 100)
            let answer = try await admit(rig, verdict(mixed, changes: [change]))
            #expect(
                answer
                    == Answer(outcomes: [.accepted, .known(.rejected), .accepted], withheld: [0, 3]))
            await rig.outbox.ended.wait(for: 7)
            #expect(Set(provider.addresses.suffix(3)) == ["t101", "t102", "t104"])
            #expect(try await rig.registry.find([record])[0] != nil)
            try await rig.expectRows(56)
            // What was withheld left no mark: later the same call sends it, and repeats nothing else.
            await rig.pass(.seconds(240))
            let again = try await admit(rig, verdict(mixed))
            #expect(again.withheld == [] && again.outcomes[0] == .pending && again.outcomes[3] == .pending)
            #expect(
                [1, 2, 4].map { again.outcomes[$0] } == [.accepted, .known(.rejected), .accepted])
        }
    }

    @Test("A call of which nothing can be taken is refused with the time to come back, and changes nothing")
    func all() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 8) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await exceed("loud", of: rig)
            let change = Change.put(
                Record(key: record, touchedAt: rig.clock.now, body: Secret([1])), if: .absent)
            do {
                _ = try await admit(rig, verdict(pushes(["loud", "loud"], from: 100), changes: [change]))
                Issue.record("it was let in")
            } catch {
                guard case .tooFarAhead(let after)? = error as? IntakeRefusal<SampleError> else {
                    Issue.record("another refusal")
                    return
                }
                #expect(after == .seconds(240))
            }
            #expect(try await rig.registry.find([record])[0] == nil)
            try await rig.expectRows(56)
        }
    }

    @Test("Where a role says nothing of it, one origin's excess refuses the call")
    func whole() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 8) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await exceed("loud", of: rig)
            var verdict = verdict(pushes(["one", "loud"], from: 100))
            verdict.withheld = nil
            await #expect(throws: (any Error).self) { _ = try await admit(rig, verdict) }
            try await rig.expectRows(56)
        }
    }

    @Test("The rest of a call is held while the store is out, and judged by its pace once")
    func held() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 8) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider), holds: true) { rig in
            try await exceed("loud", of: rig)
            rig.outbox.set { $0.accept = .unavailable }
            let answer = try await rig.passing {
                try await admit(rig, verdict(pushes(["loud", "one"], from: 100)))
            } meanwhile: {
                await rig.outbox.refusals.wait(for: 1)
                rig.outbox.set { $0.accept = nil }
            }
            #expect(answer == Answer(outcomes: [.accepted], withheld: [0]))
            #expect(provider.addresses.last == "t101")
        }
    }

    @Test("When the answer of the rest's commit was lost, asking again doubles nothing and takes no more")
    func uncertain() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 8) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider), holds: true) { rig in
            try await exceed("loud", of: rig)
            rig.outbox.set { $0.lostAccepts = 1 }
            let answer = try await rig.passing {
                try await admit(rig, verdict(pushes(["loud", "one"], from: 100)))
            }
            #expect(answer == Answer(outcomes: [.accepted], withheld: [0]))
            await rig.outbox.ended.wait(for: 5)
            #expect(provider.addresses.filter { $0 == "t101" }.count == 1)
            #expect(!provider.addresses.contains("t100"))
        }
    }
}
