@testable import Delivery
import PushModel
import Testing

@Suite("What follows from an answer")
struct JudgementTests {
    let now = UnixTime(seconds: 10_000)
    let sent = UnixTime(seconds: 9_999)
    let limits = DeliveryLimits()

    private func judge(
        _ push: OwedPush, _ outcome: Outcome, _ reason: Reason, spares: Bool = false,
        halt: Judgement.Halt = .none, fate: Answer.Fate = .answered,
        random: UInt64 = .max, unreached: Int = 0
    ) -> Judgement {
        Judgement.of(
            push, answer: Answer(outcome, reason, sentAt: sent, fate: fate), outcome: outcome, spares: spares,
            halt: halt, now: now, limits: limits, random: random, unreached: unreached)
    }

    /// The state of the registration that ends, if one does.
    private func ended(_ judged: Judgement) -> Condition? {
        guard case .expireStored(_, now, let condition)? = judged.feedback.first else { return nil }
        return condition
    }

    @Test("Acceptance, refusal and a wrong target end the push and leave the registration alone")
    func ends() {
        for (outcome, reason, first) in [
            (Outcome.accepted, Reason.ok, OutcomeKind.accepted),
            (.rejected, .payloadTooLarge, .rejected),
            (.misconfigured(.target), .topicDisallowed, .misconfigured)
        ] {
            let judged = judge(samplePush(1), outcome, reason)
            #expect(judged.step == .settle)
            #expect(judged.first == first)
            #expect(judged.feedback.isEmpty)
        }
    }

    @Test(
        "A probe that meets the credential's fault keeps its place; any other push is tried again by itself")
    func credential() {
        let fault = Outcome.misconfigured(.credential)
        let probe = judge(samplePush(1), fault, .invalidProviderToken, halt: .probe)
        #expect(probe.step == nil && probe.first == .misconfigured)
        for halt in [Judgement.Halt.none, .halted] {
            let stray = judge(samplePush(1), fault, .invalidProviderToken, halt: halt)
            #expect(
                stray.step
                    == .retry(
                        notBefore: now + .milliseconds(999), attempt: 1, lane: sampleLane, parked: false))
            #expect(stray.first == (halt == .halted ? .misconfigured : .retry))
        }
    }

    @Test(
        "A dead token ends the registration that the push was made from, whenever the service knew it dead",
        arguments: [nil, 8_000, 9_000, 99_000])
    func unregistered(_ seconds: Int64?) {
        let touched = UnixTime(seconds: 8_000)
        let judged = judge(
            samplePush(1, touchedAt: touched),
            .unregistered(since: seconds.map { UnixTime(seconds: $0) }), .unregisteredAPNs)
        #expect(judged.step == .settle)
        #expect(judged.first == .unregistered)
        #expect(ended(judged) == .madeFrom(touchedAt: touched, address: sampleAddress))
    }

    @Test("A 410 from before the registration was renewed expires nothing, and is tried again a few times")
    func renewed() {
        for attempt in 0..<5 {
            let judged = judge(
                samplePush(1, touchedAt: UnixTime(seconds: 9_500), attempt: attempt),
                .unregistered(since: UnixTime(seconds: 9_000)),
                .unregisteredAPNs)
            #expect(judged.feedback.isEmpty)
            #expect(judged.first == (attempt < 4 ? .retry : .rejected))
            guard attempt < 4 else {
                #expect(judged.step == .settle)
                continue
            }
            let wait = Duration.milliseconds((1_000 << attempt) - 1)
            let isParked = wait > limits.keepRetryWithin
            #expect(
                judged.step
                    == .retry(notBefore: now + wait, attempt: attempt + 1, lane: sampleLane, parked: isParked)
            )
        }
    }

    @Test("What was refused here blames its registration, whatever a lane meets")
    func local() {
        let judged = judge(
            samplePush(1), .unregistered(since: nil), .badDeviceToken, spares: true, fate: .local)
        #expect(judged.first == .unregistered && ended(judged) != nil)
    }

    @Test("A call whose fate is unknown has ended; one that nobody looked at, and a message, have not")
    func calls() {
        let call = samplePush(1, pushClass: .urgent)
        for reason in [Reason.deadlineExceeded, .connectionLost] {
            let judged = judge(call, .retry(after: nil), reason, fate: .unknown)
            #expect(judged.step == .settle && judged.first == .retry && judged.isSpentCall)
            #expect(judge(samplePush(2), .retry(after: nil), reason, fate: .unknown).step != .settle)
        }
        #expect(judge(call, .retry(after: nil), .notReached, fate: .unprocessed).step != .settle)
        #expect(judge(call, .retry(after: nil), .serviceUnavailable).step != .settle)
    }

    @Test("A push that nobody looks at waits longer each time, but not so long that it leaves memory")
    func unreached() {
        for (unreached, wait) in [(0, 999), (1, 1_999), (2, 3_999), (3, 4_999), (1_000, 4_999)] {
            let judged = judge(
                samplePush(1), .retry(after: nil), .notReached, fate: .unprocessed, unreached: unreached)
            let notBefore = now + .milliseconds(wait)
            #expect(
                judged.step == .retry(notBefore: notBefore, attempt: 0, lane: sampleLane, parked: false))
        }
    }

    @Test(
        "While a lane meets target faults only, they blame no registration, but a true 410 still counts"
    )
    func spares() {
        let bad = judge(samplePush(1), .unregistered(since: nil), .badDeviceToken, spares: true)
        #expect(bad.feedback.isEmpty)
        #expect(bad.first == .misconfigured)
        let gone = judge(samplePush(1), .unregistered(since: now), .unregisteredAPNs, spares: true)
        #expect(gone.first == .unregistered)
    }

    @Test("A retry waits, counts its attempt, and is parked only when it is far away")
    func retry() {
        let near = judge(samplePush(1), .retry(after: nil), .serviceUnavailable)
        #expect(
            near.step
                == .retry(
                    notBefore: now + .milliseconds(999), attempt: 1, lane: sampleLane, parked: false))
        let far = judge(samplePush(1), .retry(after: .seconds(60)), .quotaExceeded, random: 0)
        #expect(far.step == .retry(notBefore: now + .seconds(60), attempt: 1, lane: sampleLane, parked: true))
        #expect(far.first == .retry)
    }

    @Test("A request that was never processed is no attempt")
    func unprocessed() {
        let judged = judge(
            samplePush(1, attempt: 3), .retry(after: nil), .notReached, fate: .unprocessed, random: 0)
        #expect(judged.step == .retry(notBefore: now, attempt: 3, lane: sampleLane, parked: false))
    }

    @Test("A retry that would come after custody ends ends the push now")
    func custody() {
        let push = samplePush(1, custodyEnds: now + .seconds(30))
        #expect(judge(push, .retry(after: .seconds(31)), .quotaExceeded).step == .settle)
    }
}
