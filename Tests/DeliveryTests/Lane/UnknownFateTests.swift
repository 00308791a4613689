import AtRest
import PushModel
import PushTesting
import Synchronization
import Testing

@testable import Delivery

@Suite("Pushes of unknown fate, and answers that come late", .timeLimit(.minutes(30)))
struct UnknownFateTests {
    /// The first send is given up, and answered once `word` has been rung; the repeat is accepted.
    private func late(_ answer: Answer = .accepted, after word: AwaitedCount) -> ScriptedProvider {
        ScriptedProvider(Names.fcm) { push in
            guard push.attempt == 0 else { return .accepted }
            return .silence {
                await word.wait(for: 1)
                return answer
            }
        }
    }

    @Test(
        "An acceptance that comes late settles the push whose repeat waits in the store",
        arguments: EngineKind.allCases)
    func parked(_ kind: EngineKind) async throws {
        let word = AwaitedCount()
        let provider = late(after: word)
        try await Rig.run(Depot(kind), .of(provider)) { rig in
            try await rig.expect([.known(.retry)], of: [push(1)])
            await rig.outbox.parked.wait(for: 1)
            word.add()
            await rig.outbox.ended.wait(for: 1)
            try await rig.expectRows(0)
            await rig.pass(.seconds(60), step: .seconds(1))
            #expect(provider.sent.count == 1)
            #expect(rig.answers.text.count == 2, "\(rig.answers.text)")
            let last = try #require(rig.attempts.all.last)
            #expect(last.outcome == .accepted && last.next == .ended && last.number == 1)
        }
    }

    @Test("The same where its repeat waits in memory: it is not sent again")
    func inMemory() async throws {
        let (word, gate) = (AwaitedCount(), AwaitedCount())
        let provider = ScriptedProvider(Names.fcm) { push in
            if push.address == "t2" { await gate.wait(for: 1) }
            guard push.address == "t1", push.attempt == 0 else { return .accepted }
            return .silence { await Answer.accepted.after(word) }
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.expect([.known(.retry)], of: [push(1)])
            await rig.outbox.parked.wait(for: 1)
            try await rig.owe([push(2)])
            await provider.waitForSent(2)
            // The one stream is taken: what comes from the store has to wait.
            await rig.pass(until: rig.outbox.claimed, reaches: 1)
            word.add()
            await rig.outbox.ended.wait(for: 1)
            gate.add()
            await rig.outbox.ended.wait(for: 2)
            try await rig.owe([push(3)])
            await rig.pass(until: rig.outbox.ended, reaches: 3)
            #expect(provider.addresses == ["t1", "t2", "t3"])
            try await rig.expectRows(0)
        }
    }

    @Test("The same where its repeat is under way: whatever that is answered, no other is made")
    func underWay() async throws {
        let (word, gate) = (AwaitedCount(), AwaitedCount())
        let provider = ScriptedProvider(Names.fcm) { push in
            if push.attempt > 0 { return await Answer.busy().after(gate) }
            return .silence { await Answer.accepted.after(word) }
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.expect([.known(.retry)], of: [push(1)])
            await rig.pass(untilSent: 2, by: provider)
            word.add()
            await rig.outbox.ended.wait(for: 1)
            gate.add()
            await rig.pass(.seconds(120), step: .seconds(1))
            #expect(provider.sent.count == 2)
            #expect(rig.outbox.foreign.count == 0 && rig.outbox.ended.count == 1)
            try await rig.expectRows(0)
        }
    }

    @Test("A late word about the device ends its registration, and a late refusal ends the push alone")
    func refusals() async throws {
        for (answer, state) in [
            (Answer.gone(at: .distantFuture), false), (.rejected, true), (.badTopic, true)
        ] {
            let (word, depot) = (AwaitedCount(), Depot())
            let provider = late(answer, after: word)
            try await Rig.run(depot, .of(provider)) { rig in
                let key = Names.phone
                let touched = depot.clock.now
                try await rig.register(key, touchedAt: touched)
                try await rig.owe([push(1, record: key, touchedAt: touched)])
                await rig.outbox.parked.wait(for: 1)
                word.add()
                await rig.outbox.ended.wait(for: 1)
                let isLive = try await rig.store.find([key])[0]?.state == .live
                #expect(isLive == state, "\(answer.reason)")
                await rig.pass(.seconds(30), step: .seconds(1))
                #expect(provider.sent.count == 1)
            }
        }
    }

    @Test("A late word that the service has no time, and none at all, leave the repeat as it was")
    func noEnd() async throws {
        for answer in [Answer.busy(), .badCredential, nil] {
            let provider = ScriptedProvider(Names.fcm) { push in
                push.attempt == 0 ? .silence { answer } : .accepted
            }
            try await Rig.run(Depot(), .of(provider)) { rig in
                try await rig.owe([push(1)])
                await rig.pass(until: rig.outbox.ended, reaches: 1)
                #expect(provider.sent.map(\.attempt) == [0, 1])
                #expect(provider.sent[0].id == provider.sent[1].id)
                try await rig.expectRows(0)
            }
        }
    }

    @Test("A late word is one of the service: it has been silent no longer")
    func endsSilence() async throws {
        let word = AwaitedCount()
        let isBack = Mutex(false)
        let provider = ScriptedProvider(Names.fcm, slots: 30) { _ in
            if isBack.withLock(\.self) { return .accepted }
            return .silence { await Answer.busy().after(word) }
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe((1...200).map { push($0) })
            await rig.pass(.seconds(62))
            #expect(rig.events.text == ["acme/fcm/production unanswered DeadlineExceeded"])
            // The twenty that tell of it, thirty under way beside them, and then one at a time: behind each a
            // random span of up to five seconds, which makes thirty in a minute, and a hundred hardly ever.
            #expect(provider.sent.count < 150)
            isBack.withLock { $0 = true }
            word.add()
            try await asked(for: "word that the lane is answered") { rig.events.text.count >= 2 }
            #expect(rig.events.text.last == "acme/fcm/production answered")
            await rig.pass(until: rig.outbox.ended, reaches: 200)
        }
    }

    @Test("A volatile push that was accepted late is owed no longer, and not sent again")
    func volatile() async throws {
        let word = AwaitedCount()
        let provider = late(after: word)
        try await Rig.run(Depot(), .of(provider)) { rig in
            rig.admitVolatile([1])
            await provider.waitForSent(1)
            await rig.pass(.milliseconds(200))
            word.add()
            try await asked(for: "the late word") { rig.attempts.all.count == 2 }
            await rig.passUntilNothingOwed()
            #expect(provider.sent.count == 1)
        }
    }

    @Test(
        "Four sends in all of a message that is never answered, while others are",
        arguments: [true, false])
    func four(_ isListened: Bool) async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 4) { push in
            guard push.address == "t1" else { return .accepted }
            return isListened ? .silence { nil } : .silence
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe([push(1)])
            var number = 1
            func retries() -> [Attempt] { rig.attempts.all.filter { $0.outcome == .retry } }
            // It takes five minutes and a quarter.
            while retries().last?.next != .ended, number < 200 {
                number += 1
                try await rig.owe([push(number)])
                await rig.pass(until: rig.outbox.ended, reaches: number - 1)
                await rig.pass(.seconds(10), step: .seconds(1))
            }
            #expect(provider.addresses.count { $0 == "t1" } == 4)
            #expect(retries().last?.next == .ended)
            let waits = retries().compactMap { attempt -> Duration? in
                guard case .again(let due) = attempt.next else { return nil }
                return due.since(attempt.answeredAt)
            }
            #expect(waits.count == 3)
            for (wait, ceiling) in zip(waits, isListened ? [15, 60, 240] : [2, 8, 32]) {
                #expect(wait * 2 >= .seconds(ceiling) && wait <= .seconds(ceiling), "\(waits)")
            }
            await rig.outbox.ended.wait(for: number)
            try await rig.expectRows(0)
        }
    }

    @Test("Nothing is given up because the service is silent, and behind it each push arrives")
    func silent() async throws {
        let isBack = Mutex(false)
        let provider = ScriptedProvider(Names.fcm) { _ in
            isBack.withLock(\.self) ? .accepted : .silence { nil }
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe([push(1), push(2)])
            await rig.pass(.seconds(7_200), step: .seconds(1))
            try await rig.expectRows(2)
            let sends = provider.addresses.count { $0 == "t1" }
            #expect(sends > 4 && sends < 20, "\(sends) sends in two hours")
            isBack.withLock { $0 = true }
            await rig.pass(until: rig.outbox.ended, reaches: 2)
        }
    }

    @Test("A process that begins anew has heard nothing yet: it gives nothing up either")
    func restarted() async throws {
        let depot = Depot()
        let silent = ScriptedProvider(Names.fcm) { _ in .silence }
        try await Rig.run(depot, .of(silent)) { rig in
            try await rig.owe([push(1)])
            await rig.pass(until: rig.outbox.parked, reaches: 3)
        }
        let next = ScriptedProvider(Names.fcm) { push in push.attempts.unknown < 6 ? .silence : .accepted }
        depot.clock.advance(by: .seconds(20))
        try await Rig.run(depot, .of(next)) { rig in
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            #expect(next.sent.first.map { $0.attempts.unknown > 0 } == true, "the row remembers")
            #expect(next.sent.last?.attempts.unknown == 6)
        }
    }

    @Test("A stop waits twelve seconds for what is under way; then its fate is unknown, and the row says so")
    func gracefulStop() async throws {
        let depot = Depot()
        let gate = AwaitedCount()
        let spans = Noted<[Duration]>([])
        let provider = ScriptedProvider(
            Names.fcm, slots: 2,
            windsDown: { span in
                spans.change { $0.append(span) }
                gate.add()
            }
        ) { _ in await Answer.silence.after(gate) }
        try await Rig.run(depot, .of(provider)) { rig in
            try await rig.owe([push(1, .urgent), push(2)])
            await provider.waitForSent(2)
            await rig.stop()
            await rig.outbox.ended.wait(for: 1)
            await rig.outbox.parked.wait(for: 1)
        }
        #expect(spans.value == [DeliveryLimits().drain])
        let next = ScriptedProvider(Names.fcm) { _ in .accepted }
        depot.clock.advance(by: .seconds(20))
        try await Rig.run(depot, .of(next)) { rig in
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            #expect(next.addresses == ["t2"], "the call may have rung")
            #expect(next.sent.first?.attempts.unknown == 1)
        }
    }

    @Test("A lane that a reload replaces waits for its answers as long as ever")
    func reload() async throws {
        let (gate, wound) = (AwaitedCount(), AwaitedCount())
        let old = ScriptedProvider(Names.fcm, windsDown: { _ in wound.add() }) { _ in
            await gate.wait(for: 1)
            return .accepted
        }
        let new = ScriptedProvider(Names.fcm) { _ in .accepted }
        let credential = Credential()
        try await Rig.run(Depot(), .of([(old, credential)])) { rig in
            try await rig.owe([push(1)])
            await old.waitForSent(1)
            rig.service.adopt(.of([(new, credential)], stamp: 1))
            try await rig.owe([push(2)])
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            #expect(wound.count == 0 && new.addresses == ["t2"])
            gate.add()
            await rig.outbox.ended.wait(for: 2)
        }
    }
}

@Suite("Pushes that a late answer has ended", .timeLimit(.minutes(30)))
struct LateEndsTests {
    @Test("Each is met once, and of those that nobody meets the longest known are forgotten")
    func bounded() {
        var ends = LateEnds(limit: 100)
        for number in 1...50 {
            ends.insert(samplePush(number))
            ends.insert(samplePush(number))
        }
        let met = (1...50).map { ends.take(samplePush($0)) }
        #expect(met.allSatisfy { $0 == .told })
        let again = ends.take(samplePush(1))
        #expect(again == nil)
        for number in 1_000..<1_250 { ends.insert(samplePush(number)) }
        let known = (1_000..<1_250).map { ends.take(samplePush($0)) }
        #expect(known.count { $0 == .told } == 100)
        #expect(known.suffix(100).allSatisfy { $0 == .told })
    }
}
