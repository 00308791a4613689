import AtRest
@testable import Delivery
import PushModel
import PushTesting
import Testing

@Suite("An origin's pace", .timeLimit(.minutes(30)))
struct PaceTests {
    private let origin = Digest16(high: 1, low: 1)
    private let start = ContinuousClock.now

    private func pacer(_ change: (inout DeliveryLimits) -> Void = { _ in }) -> Pacer {
        var limits = DeliveryLimits()
        change(&limits)
        return Pacer(limits: limits, start: start)
    }

    private func take(
        _ pacer: Pacer, _ classes: [PushClass], _ perMinute: Int = 4, after seconds: Int = 0,
        of other: Digest16? = nil, custody: Duration = .seconds(86_400)
    ) -> Pacer.Decision {
        var promise = Pacer.Promise()
        return take(pacer, classes, perMinute, after: seconds, of: other, custody: custody, into: &promise)
    }

    private func take(
        _ pacer: Pacer, _ classes: [PushClass], _ perMinute: Int = 4, after seconds: Int = 0,
        of other: Digest16? = nil, custody: Duration = .seconds(86_400), into promise: inout Pacer.Promise
    ) -> Pacer.Decision {
        pacer.take(
            classes.map { ($0, custody) }, of: other ?? origin, perMinute: perMinute,
            now: start + .seconds(seconds), &promise)
    }

    private func normal(_ count: Int) -> [PushClass] { Array(repeating: .normal, count: count) }
    private func seconds(_ seconds: Int...) -> Pacer.Decision { .slots(seconds.map { .seconds($0) }) }

    @Test("A minute's worth leaves at once, what exceeds it in turn at the pace, and a quiet minute is room")
    func slots() {
        let pacer = pacer()
        #expect(take(pacer, normal(6)) == seconds(0, 0, 0, 0, 15, 30))
        #expect(take(pacer, normal(2)) == seconds(45, 60))
        #expect(take(pacer, normal(1), after: 60) == seconds(15))
        #expect(take(pacer, normal(5), after: 200) == seconds(0, 0, 0, 0, 15))
        #expect(take(pacer, normal(1), of: Digest16(high: 2, low: 2)) == seconds(0), "another's is another's")
    }

    @Test("An urgent push waits for urgent ones only, and puts off what comes later of a lower class")
    func classes() {
        let pacer = pacer()
        #expect(take(pacer, Array(repeating: .background, count: 6)) == seconds(0, 0, 0, 0, 15, 30))
        #expect(take(pacer, [.urgent, .normal]) == seconds(0, 0))
        #expect(take(pacer, [.background]) == seconds(75))
        #expect(take(pacer, [.urgent, .urgent, .urgent, .urgent]) == seconds(0, 0, 0, 15))
        #expect(take(pacer, [.normal]) == seconds(45))
    }

    @Test("Who is further ahead than its bound is refused, whole, until it is not")
    func bound() {
        let pacer = pacer()
        // A single call may pass the bound: else it could never be made. Nothing is put off for longer.
        guard case .slots(let slots, _) = take(pacer, normal(100)) else {
            Issue.record("a call of its own was refused")
            return
        }
        #expect(slots.last == .seconds(600) && slots[43] == .seconds(600))
        #expect(take(pacer, normal(1)) == .refused(retryAfter: .seconds(840)))
        #expect(take(pacer, [.urgent]) == seconds(0), "messages are no reason to refuse a call")
        #expect(take(pacer, normal(1), after: 854) == .refused(retryAfter: .seconds(1)))
        #expect(take(pacer, normal(1), after: 855) == .slots([.seconds(600)]))
    }

    @Test("The bound is of pushes too, and what would leave after its custody's end is refused")
    func otherBounds() {
        let few = pacer { $0.pacedPushes = 2 }
        #expect(take(few, normal(6), 60) == seconds(0, 0, 0, 0, 0, 0))
        #expect(take(few, normal(57), 60) != .refused(retryAfter: .seconds(1)))
        #expect(take(few, normal(1), 60) == .refused(retryAfter: .seconds(1)))
        let brief = pacer()
        #expect(take(brief, normal(4)) == seconds(0, 0, 0, 0))
        #expect(take(brief, normal(1), custody: .seconds(15)) == .refused(retryAfter: .seconds(1)))
        #expect(take(brief, normal(1), custody: .seconds(16)) == seconds(15), "nothing was promised before")
    }

    @Test("Newcomers share one schedule where there is no room for theirs; those who are known keep theirs")
    func capacity() {
        let pacer = pacer { $0.pacedOrigins = 1 }
        #expect(take(pacer, normal(5)) == seconds(0, 0, 0, 0, 15))
        #expect(take(pacer, normal(4), of: Digest16(high: 2, low: 2)) == seconds(0, 0, 0, 0))
        #expect(take(pacer, normal(1), of: Digest16(high: 3, low: 3)) == seconds(15))
        #expect(take(pacer, normal(1)) == seconds(30))
    }

    private func take(
        _ pacer: Pacer, _ pushes: [(UInt64, PushClass)], after seconds: Int = 0,
        custody: Duration = .seconds(86_400), excess: Pacer.Excess = .refusesCall
    ) -> Pacer.Decision {
        var promise = Pacer.Promise()
        return take(pacer, pushes, after: seconds, custody: custody, excess: excess, into: &promise)
    }

    private func take(
        _ pacer: Pacer, _ pushes: [(UInt64, PushClass)], after seconds: Int = 0,
        custody: Duration = .seconds(86_400), excess: Pacer.Excess = .refusesCall,
        into promise: inout Pacer.Promise
    ) -> Pacer.Decision {
        pacer.take(
            pushes.map { ($0.1, custody) }, of: pushes.map { Digest16(high: $0.0, low: $0.0) },
            perMinute: 4, now: start + .seconds(seconds), excess: excess, &promise)
    }

    @Test("In a call of several origins each has its own pace, in whatever order they stand")
    func severalOrigins() {
        let pacer = pacer()
        #expect(take(pacer, normal(3), of: Digest16(high: 2, low: 2)) == seconds(0, 0, 0))
        let mixed: [(UInt64, PushClass)] = [
            (1, .normal), (2, .normal), (1, .normal), (2, .normal), (1, .normal), (3, .urgent), (1, .normal),
            (1, .normal), (2, .urgent)
        ]
        #expect(take(pacer, mixed) == seconds(0, 0, 0, 15, 0, 0, 0, 15, 0))
        #expect(take(pacer, normal(1)) == seconds(30), "what the call promised stands")
        #expect(take(pacer, [.background], of: Digest16(high: 2, low: 2)) == seconds(45))
        #expect(take(pacer, []) == seconds())
    }

    @Test("One that is too far ahead, or out of its custody, refuses the call, and nothing of it is promised")
    func severalRefused() {
        let pacer = pacer()
        guard case .slots = take(pacer, normal(60)) else {
            Issue.record("a call of its own was refused")
            return
        }
        #expect(take(pacer, [(2, .normal), (1, .normal)]) == .refused(retryAfter: .seconds(240)))
        let late: [(UInt64, PushClass)] =
            Array(repeating: (2, .normal), count: 4) + [(3, .normal), (2, .normal)]
        #expect(take(pacer, late, custody: .seconds(10)) == .refused(retryAfter: .seconds(6)))
        #expect(take(pacer, late) == seconds(0, 0, 0, 0, 0, 15), "neither left a trace")
    }

    @Test("Where a protocol has it so, what is too far ahead is withheld alone, and costs its origin nothing")
    func withheld() {
        let pacer = pacer()
        guard case .slots(_, withheld: []) = take(pacer, normal(60)) else {
            Issue.record("a call of its own was refused")
            return
        }
        let mixed: [(UInt64, PushClass)] = [
            (2, .normal), (1, .normal), (2, .normal), (1, .urgent), (1, .background), (2, .urgent)
        ]
        #expect(
            take(pacer, mixed, excess: .isWithheld)
                == .slots(Array(repeating: .zero, count: 4), withheld: [1, 4]))
        // 240 s, and the slot that the urgent one has taken.
        #expect(take(pacer, normal(1)) == .refused(retryAfter: .seconds(255)))
        #expect(take(pacer, normal(2), of: Digest16(high: 2, low: 2)) == seconds(0, 15))
        #expect(
            take(pacer, [(1, .normal), (1, .urgent)], excess: .isWithheld)
                == .slots([.zero], withheld: [0]), "of one origin too")
    }

    @Test("A call of which nothing could be promised is refused, until all of it could be")
    func allWithheld() {
        let pacer = pacer()
        _ = take(pacer, normal(60))
        _ = take(pacer, normal(58), of: Digest16(high: 2, low: 2))
        let both: [(UInt64, PushClass)] = [(2, .normal), (1, .normal)]
        #expect(take(pacer, both, excess: .isWithheld) == .refused(retryAfter: .seconds(240)))
        #expect(take(pacer, [(1, .normal)], excess: .isWithheld) == .refused(retryAfter: .seconds(240)))
        #expect(take(pacer, [], excess: .isWithheld) == seconds())
        let later = take(pacer, both, after: 210, excess: .isWithheld)
        #expect(later == .slots([.seconds(600)], withheld: [1]))
    }

    @Test("What would leave after its custody's end is withheld, and another takes its slot")
    func withheldForCustody() {
        let pacer = pacer()
        _ = take(pacer, normal(4))
        let pushes: [Pacer.Item] = [10, 86_400, 15, 86_400].map { (.normal, .seconds($0)) }
        var promise = Pacer.Promise()
        let decision = pacer.take(
            pushes, of: origin, perMinute: 4, now: start, excess: .isWithheld, &promise)
        #expect(decision == .slots([.seconds(15), .seconds(30)], withheld: [0, 2]))
        #expect(take(pacer, normal(1)) == seconds(45))
    }

    @Test("Of newcomers without room for schedules of their own those are withheld for whom all are too far")
    func withheldTogether() {
        let pacer = pacer { $0.pacedOrigins = 1 }
        #expect(take(pacer, normal(1)) == seconds(0))
        _ = take(pacer, normal(60), of: Digest16(high: 2, low: 2))
        #expect(
            take(pacer, [(1, .normal), (3, .normal), (1, .normal)], excess: .isWithheld)
                == .slots([.zero, .zero], withheld: [1]))
    }

    @Test("Newcomers of one call share a schedule where there is room for one of them")
    func severalNewcomers() {
        let pacer = pacer { $0.pacedOrigins = 2 }
        #expect(take(pacer, normal(1)) == seconds(0))
        let mixed: [(UInt64, PushClass)] = [
            (2, .normal), (3, .normal), (4, .normal), (3, .normal), (4, .normal), (3, .normal), (2, .normal)
        ]
        #expect(take(pacer, mixed) == seconds(0, 0, 0, 0, 0, 15, 0))
        #expect(take(pacer, normal(1), of: Digest16(high: 5, low: 5)) == seconds(30))
        #expect(take(pacer, normal(3), of: Digest16(high: 2, low: 2)) == seconds(0, 0, 15))
    }

    @Test("What nothing came of is given back, once; what was promised behind it keeps its slots")
    func givenBack() {
        let pacer = pacer()
        var lost = Pacer.Promise()
        let asked = take(pacer, normal(4) + [.urgent], into: &lost)
        #expect(asked == seconds(0, 0, 0, 0, 0))
        #expect(take(pacer, normal(1)) == seconds(30), "behind five")
        pacer.giveBack(&lost)
        #expect(take(pacer, normal(4)) == seconds(0, 0, 0, 15), "as if the five had never been asked for")
        pacer.giveBack(&lost)
        #expect(take(pacer, normal(1)) == seconds(30), "and no more than these")
        #expect(take(pacer, Array(repeating: .urgent, count: 5)) == seconds(0, 0, 0, 0, 15))
    }

    @Test("A charge is given back too, and a schedule that was dropped and begun anew owes nothing for it")
    func chargeGivenBack() {
        let pacer = pacer { $0.pacedOrigins = 1 }
        var lost = Pacer.Promise()
        let first = pacer.charge(5, of: origin, perMinute: 4, now: start, &lost)
        #expect(take(pacer, [.background]) == seconds(30))
        pacer.giveBack(&lost)
        #expect(take(pacer, [.background]) == seconds(0))
        let second = pacer.charge(4, of: origin, perMinute: 4, now: start, &lost)
        #expect(first == nil && second == nil)
        // By then its schedule is empty, and makes room for another's.
        #expect(take(pacer, normal(1), after: 400, of: Digest16(high: 2, low: 2)) == seconds(0))
        #expect(take(pacer, normal(4), after: 1_000) == seconds(0, 0, 0, 0))
        pacer.giveBack(&lost)
        #expect(take(pacer, normal(1), after: 1_000) == seconds(15))
    }

    @Test("Of several origins' call each has its own back, and newcomers what they share")
    func severalGivenBack() {
        let pacer = pacer { $0.pacedOrigins = 1 }
        #expect(take(pacer, normal(1)) == seconds(0))
        var lost = Pacer.Promise()
        let mixed: [(UInt64, PushClass)] = [
            (1, .normal), (2, .normal), (3, .urgent), (1, .normal), (1, .normal), (1, .normal), (3, .normal)
        ]
        let asked = take(pacer, mixed, into: &lost)
        #expect(asked == seconds(0, 0, 0, 0, 0, 15, 0))
        #expect(take(pacer, [(1, .normal), (2, .normal), (3, .normal)]) == seconds(30, 0, 15))
        pacer.giveBack(&lost)
        #expect(take(pacer, [(1, .normal), (1, .normal), (1, .normal)]) == seconds(0, 0, 15))
        #expect(take(pacer, [(2, .normal), (2, .normal), (3, .normal)]) == seconds(0, 0, 15))
    }

    @Test("What a clock put off that has been set back since is due")
    func clock() {
        var putOff = PutOff()
        let now = UnixTime(seconds: 1_800_000_000)
        for seconds in [0, 5, 900, 901] { putOff.add(.normal, due: now + .seconds(seconds)) }
        putOff.add(.urgent, due: now)
        #expect(putOff.take(upTo: now, within: .seconds(900)) == [.normal: 2, .urgent: 1])
        #expect(putOff.total == 2)
        #expect(putOff.take(upTo: now + .seconds(4), within: .seconds(900)).isEmpty)
        #expect(putOff.take(upTo: now + .seconds(900), within: .seconds(900)) == [.normal: 2])
        #expect(putOff.total == 0 && putOff.take(upTo: now, within: .zero).isEmpty)
    }

    @Test(
        "Above its pace an origin's pushes are owed and leave in turn, and its replies wait for none of them",
        arguments: EngineKind.allCases)
    func owed(_ kind: EngineKind) async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 8) { _ in .accepted }
        try await Rig.run(Depot(kind), .of(provider)) { rig in
            let began = rig.clock.now
            let outcomes = try await rig.admit((1...6).map { push($0) }, perMinute: 4)
            #expect(outcomes == Array(repeating: .accepted, count: 4) + [.pending, .pending])
            #expect(rig.clock.now == began, "the clock never moved")
            // The same call again: what was sent is known, and what waits is not waited for.
            #expect(try await rig.admit((1...6).map { push($0) }, perMinute: 4) == outcomes)
            await rig.pass(.seconds(14))
            #expect(provider.sent.count == 4)
            #expect(try rig.lane().parked == 0, "nobody waits behind what the pace puts off")
            #expect(try await rig.admit([push(7)]) == [.accepted], "nor does another call")
            await rig.pass(until: rig.outbox.ended, reaches: 6)
            #expect(provider.addresses.contains("t5") && !provider.addresses.contains("t6"))
            #expect(rig.clock.now.since(began) >= .seconds(15))
            await rig.pass(until: rig.outbox.ended, reaches: 7)
            #expect(rig.clock.now.since(began) >= .seconds(30))
            #expect(provider.sent.count == 7)
            try await rig.expectRows(0)
        }
    }

    @Test(
        "Of a call of two origins only what exceeds its own pace is put off", arguments: EngineKind.allCases)
    func owedToTwo(_ kind: EngineKind) async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 8) { _ in .accepted }
        try await Rig.run(Depot(kind), .of(provider)) { rig in
            let pushes = (1...6).map { number in
                var push = push(number)
                push.origin = Secret([number == 3 ? 1 : 2])
                return push
            }
            let outcomes = try await rig.admit(pushes, perMinute: 4)
            #expect(outcomes == Array(repeating: .accepted, count: 5) + [.pending])
            await rig.pass(until: rig.outbox.ended, reaches: 6)
            #expect(provider.sent.count == 6)
            try await rig.expectRows(0)
        }
    }

    @Test("What was put off leaves after a restart, not before its time", arguments: EngineKind.allCases)
    func restart(_ kind: EngineKind) async throws {
        let depot = Depot(kind)
        let provider = ScriptedProvider(Names.fcm, slots: 8) { _ in .accepted }
        try await Rig.run(depot, .of(provider)) { rig in
            _ = try await rig.admit((1...5).map { push($0) }, perMinute: 4)
            await rig.outbox.ended.wait(for: 4)
        }
        let next = ScriptedProvider(Names.fcm, slots: 8) { _ in .accepted }
        let began = depot.clock.now
        try await Rig.run(depot, .of(next)) { rig in
            await rig.pass(.seconds(10))
            #expect(next.sent.isEmpty)
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            #expect(rig.clock.now.since(began) >= .seconds(14))
            #expect(next.addresses == ["t5"])
        }
    }

    /// A call that alone is more than its origin may be ahead, and that the store does not take.
    private func refused(_ rig: Rig, isHeld: Bool, isCancelled: Bool) async {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                do {
                    _ = try await rig.admit((1...60).map { push($0) }, perMinute: 4)
                    return false
                } catch { return true }
            }
            if isHeld { await rig.clock.sleepers(atLeast: 4) }
            if isCancelled { group.cancelAll() }
            if isHeld { await rig.pass(.seconds(13)) }
            let isRefused = await group.next()
            #expect(isRefused == true)
        }
    }

    @Test("Calls that the store did not take cost their origin nothing, whether they were held or refused")
    func outage() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 8) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider), holds: true) { rig in
            for code in [StoreError.Code.unavailable, .corrupt, .uncertain] {
                rig.outbox.set { $0.accept = code }
                for isCancelled in [false, true] {
                    await refused(rig, isHeld: code.retry == .later, isCancelled: isCancelled)
                }
            }
            rig.outbox.set { $0.accept = nil }
            let key = Names.phone
            let change = Change.put(
                Record(key: key, touchedAt: rig.clock.now, body: Secret([1])), if: .revision(77))
            await #expect(throws: (any Error).self) {
                _ = try await rig.admit((1...60).map { push($0) }, changes: [change], perMinute: 4)
            }
            let outcomes = try await rig.admit((1...5).map { push($0) }, perMinute: 4)
            #expect(outcomes == Array(repeating: .accepted, count: 4) + [.pending])
            await rig.pass(until: rig.outbox.ended, reaches: 5)
        }
    }

    @Test("An origin that is too far ahead is told when to come back, and nothing of its call is written")
    func tooFar() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 8) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            _ = try await rig.admit((1...60).map { push($0) }, perMinute: 4)
            do {
                _ = try await rig.admit([push(61)], perMinute: 4)
                Issue.record("it was let in")
            } catch {
                guard case .tooFarAhead(let after)? = error as? IntakeRefusal<SampleError> else {
                    Issue.record("another refusal")
                    return
                }
                #expect(after == .seconds(240))
            }
            #expect(try await rig.admit([push(62)], perMinute: 0) == [.accepted], "no quota, no pace")
        }
    }
}
