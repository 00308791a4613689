import Delivery
import PushModel
import PushTesting
import Synchronization
import Testing

@Suite("The way in, whatever the protocol", .timeLimit(.minutes(30)))
struct ReceptionTests {
    private func reception(
        _ rig: Rig, _ role: EchoRole = EchoRole(), tolls: Tolls? = nil, pushesPerMinute: Int = 0,
        note: @escaping @Sendable (NoteCode) -> Void = { _ in }
    ) -> Reception<EchoRole> {
        Reception(
            role, of: Names.instance, intake: rig.service.intake, pushesPerMinute: pushesPerMinute,
            tolls: tolls ?? Tolls(world: rig.clock.world(seed: 3)), note: note)
    }

    /// What a call is refused with; `nil`: it is answered.
    private func refusal(
        _ reception: Reception<EchoRole>, _ call: EchoRole.Call, from client: UInt64 = 1,
        by: ContinuousClock.Instant? = nil
    ) async -> EchoRefusal? {
        do throws(EchoRefusal) {
            _ = try await reception.receive(call, from: ClientKey(client), bytes: 1, by: by)
            return nil
        } catch {
            return error
        }
    }

    @Test("A toll is the payer's own, and another reception with the same tolls goes on from there")
    func tolls() async throws {
        try await Rig.run(Depot(), .of(ScriptedProvider(Names.fcm) { _ in .accepted })) { rig in
            let tolls = Tolls(world: rig.clock.world(seed: 3))
            let first = reception(rig, tolls: tolls)
            let call = EchoRole.Call(allowance: Allowance("visits", perMinute: 2))
            #expect(await refusal(first, call) == nil)
            #expect(await refusal(first, call) == nil)
            #expect(await refusal(first, call) == .rateLimited(.seconds(30)))
            #expect(await refusal(first, call, from: 2) == nil)
            #expect(await refusal(first, EchoRole.Call(allowance: Allowance("others", perMinute: 1))) == nil)
            #expect(await refusal(first, EchoRole.Call()) == nil)
            var free = call
            free.isFree = true
            #expect(await refusal(first, free) == nil, "who may cost nothing is not asked for a toll")
            let second = reception(rig, tolls: tolls)
            #expect(await refusal(second, call) == .rateLimited(.seconds(30)))
        }
    }

    @Test("Where turns go by client, the second call of another one goes before the second of the first")
    func clientTurns() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            let reception = reception(rig)
            for (number, client) in [(1, 1), (2, 1), (3, 2)] as [(Int, UInt64)] {
                let call = EchoRole.Call(pushes: [push(number, origin: "o\(number)")], turns: .byClient)
                #expect(await refusal(reception, call, from: client) == nil)
            }
            provider.grant(1)
            await provider.waitForSent(3)
            #expect(provider.addresses == ["t1", "t3", "t2"])
        }
    }

    @Test("Every process allows its part of an allowance")
    func dividedTolls() {
        let clock = ManualClock()
        let tolls = Tolls(world: clock.world(seed: 1), relays: { 4 })
        let toll = Toll(Allowance("visits", perMinute: 8), of: .everybody)
        #expect((0..<3).map { _ in tolls.take(toll) != nil } == [false, false, true])
        // All of its units, or none.
        let large = Toll(Allowance("loads", perMinute: 8), of: .everybody, units: 2)
        #expect((0..<2).map { _ in tolls.take(large) != nil } == [false, true])
    }

    @Test("A call that is asked once waits while the role cannot judge it; another is refused at once")
    func heldJudgement() async throws {
        try await Rig.run(Depot(), .of(ScriptedProvider(Names.fcm) { _ in .accepted }), holds: true) { rig in
            let role = EchoRole(overloads: 1)
            let reception = reception(rig, role)
            #expect(await refusal(reception, EchoRole.Call()) == .overloaded(nil))
            #expect(role.asked == 1)
            role.overloadsNext(2)
            let held = try await rig.passing { await refusal(reception, EchoRole.Call(isOnce: true)) }
            #expect(held == nil)
            #expect(role.asked == 4)
        }
    }

    @Test("A store without room, an origin too far ahead, an unmet condition: each in the protocol's words")
    func wording() async throws {
        let idle = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(Depot(rows: 2), .of(idle)) { rig in
            let open = reception(rig)
            #expect(await refusal(open, EchoRole.Call(pushes: [push(1), push(2)])) == nil)
            guard case .overloaded(.some) = await refusal(open, EchoRole.Call(pushes: [push(3)])) else {
                Issue.record("a store without room took a push in, or said no time")
                return
            }
            let key = Names.phone
            let record = Record(key: key, touchedAt: rig.clock.now, body: Secret([1]))
            let unmet = EchoRole.Call(changes: [.put(record, if: .revision(9))])
            let page = EchoRole.Call(pages: [unmet.changes])
            for var call in [unmet, page] {
                #expect(await refusal(open, call) == .refused)
                call.isMute = true
                guard case .overloaded(.some) = await refusal(open, call) else {
                    Issue.record("what the role has no words for was taken, or told without a time")
                    return
                }
            }
        }
        try await Rig.run(Depot(), .of(idle)) { rig in
            let paced = reception(rig, pushesPerMinute: 4)
            #expect(await refusal(paced, EchoRole.Call(pushes: (1...60).map { push($0) })) == nil)
            guard case .rateLimited = await refusal(paced, EchoRole.Call(pushes: [push(61)])) else {
                Issue.record("an origin that is too far ahead was let in")
                return
            }
        }
    }

    @Test("A call that is answered by somebody else at an instant has its own answer before")
    func answeredElsewhere() async throws {
        try await Rig.run(Depot(), .of(ScriptedProvider(Names.fcm) { _ in .accepted }), holds: true) { rig in
            rig.outbox.set { $0.accept = .unavailable }
            let reception = reception(rig)
            let by = rig.clock.instant + .seconds(5)
            let call = EchoRole.Call(pushes: [push(1)])
            let refused = try await rig.passing { await refusal(reception, call, by: by) }
            #expect(refused?.isOverloaded == true)
            #expect(rig.clock.instant < by && rig.clock.instant > by - .seconds(1))
        }
    }

    @Test("What the role notes is counted, and what the face sees")
    func notes() async throws {
        let codes = Mutex<[String]>([])
        try await Rig.run(Depot(), .of(ScriptedProvider(Names.fcm) { _ in .accepted })) { rig in
            let reception = reception(rig, note: { code in codes.withLock { $0.append(code.text) } })
            #expect(await refusal(reception, EchoRole.Call(notes: [NoteCode("seen")])) == nil)
            reception.count(NoteCode("face"))
            #expect(codes.withLock(\.self) == ["seen", "face"])
        }
    }

    @Test("What undoes a call that failed elsewhere is tried again while the reply may wait, and no longer")
    func undoes() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider), holds: true) { rig in
            let reception = reception(rig)
            let key = RecordKey(Space(Names.instance, "call"), Secret("one".utf8))
            let undoing: [Change] = [.delete(key, if: .any)]
            let taken = Record(key: key, touchedAt: .distantPast, body: Secret([1]))
            _ = try await rig.registry.apply([.put(taken, if: .any)])

            rig.registry.failDeletion(.unavailable)
            await reception.undo(undoing, bytes: 1, until: rig.clock.instant)
            #expect(try await rig.registry.find([key])[0] != nil)

            rig.registry.failDeletion(.unavailable)
            let undone = AwaitedCount()
            let end = rig.clock.instant + .seconds(11)
            async let work: Void = {
                await reception.undo(undoing, bytes: 1, until: end)
                undone.add()
            }()
            // No time passes before it has failed.
            await rig.registry.refusals.wait(for: 2)
            await rig.pass(until: undone, reaches: 1)
            await work
            #expect(try await rig.registry.find([key])[0] == nil)
        }
    }

    @Test("A volatile inbound is given back when nothing of it has room, and not else")
    func givenBack() async throws {
        let limits = changing(DeliveryLimits()) { $0.volatilePushes = 2 }
        let idle = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(Depot(), .of(idle), limits: limits) { rig in
            let role = MuteRole(now: rig.clock.now)
            let reception = VolatileReception(
                role, of: Names.instance, intake: rig.service.volatileIntake)
            var outcomes: [String] = []
            for number in 1...4 {
                switch await reception.receive(number) {
                case .taken: outcomes.append("taken")
                case .withoutRoom: outcomes.append("without room")
                case .refused: outcomes.append("refused")
                }
            }
            #expect(outcomes == ["taken", "taken", "without room", "refused"])
            #expect(role.released.withLock(\.self) == [3])
            // A stop sends what is volatile.
            idle.grant(2)
            await rig.passUntilNothingOwed()
        }
    }
}

/// Answers with what became of the call's pushes.
private final class EchoRole: AnsweringRole {
    struct Call: Sendable {
        var pushes: [Push] = []
        var changes: [Change] = []
        var pages: [[Change]] = []
        /// Says nothing of a change that does not meet its condition.
        var isMute = false
        var notes: [NoteCode] = []
        var allowance: Allowance?
        var isFree = false
        var isOnce = false
        var turns = Turns.byAddress
    }

    typealias Inbound = Call
    typealias Reply = [FirstOutcome]
    typealias Failure = EchoRefusal

    private let state: Mutex<(overloads: Int, asked: Int)>

    /// - Parameter overloads: askings that are refused at first.
    init(overloads: Int = 0) { state = Mutex((overloads, 0)) }

    var asked: Int { state.withLock(\.asked) }
    func overloadsNext(_ count: Int) { state.withLock { $0.overloads = count } }

    static func override(_ answer: Answer) -> Outcome? { nil }
    static func isAskedOnce(_ inbound: Call) -> Bool { inbound.isOnce }

    func mayCost(_ inbound: Call) -> Bool { !inbound.isFree }

    func toll(of inbound: Call, from client: ClientKey) async throws(EchoRefusal) -> Toll? {
        inbound.allowance.map { Toll($0, of: .client(client)) }
    }

    func receive(_ inbound: Call) async throws(EchoRefusal) -> Verdict<[FirstOutcome], EchoRefusal> {
        let isOverloaded = state.withLock { state in
            state.asked += 1
            state.overloads -= 1
            return state.overloads >= 0
        }
        if isOverloaded { throw .overloaded(nil) }
        var verdict = Verdict<[FirstOutcome], EchoRefusal>(
            pushes: inbound.pushes, changes: inbound.changes, reply: .now([]), refusal: { _ in .refused },
            notes: inbound.notes)
        if inbound.isMute { verdict.refusal = nil }
        verdict.pages = inbound.pages
        verdict.turns = inbound.turns
        return verdict
    }
}

private enum EchoRefusal: DeferringError {
    case refused
    case overloaded(Duration?)
    case rateLimited(Duration)

    static func overloaded(retryAfter: Duration?) -> EchoRefusal { .overloaded(retryAfter) }
    static func rateLimited(retryAfter: Duration) -> EchoRefusal { .rateLimited(retryAfter) }
    var isOverloaded: Bool { if case .overloaded = self { true } else { false } }

    var codeText: String {
        switch self {
        case .refused: "refused"
        case .overloaded(let span): "overloaded \(span.map { "\($0)" } ?? "")"
        case .rateLimited(let span): "rate limited \(span)"
        }
    }
    var sentence: String { "The call was refused." }
}

/// Makes one push of every number up to three, and refuses what comes then.
private final class MuteRole: SilentRole {
    typealias Inbound = Int
    typealias Reply = Never
    typealias Failure = SampleError
    typealias Judged = VolatileVerdict<Int>

    let released = Mutex<[Int]>([])
    private let now: UnixTime

    init(now: UnixTime) { self.now = now }

    static func override(_ answer: Answer) -> Outcome? { nil }

    func receive(_ inbound: Int) async throws(SampleError) -> VolatileVerdict<Int> {
        guard inbound <= 3 else { throw SampleError() }
        return VolatileVerdict(pushes: [volatilePush(inbound, at: now)], held: inbound)
    }

    func release(_ held: Int) { released.withLock { $0.append(held) } }
}
