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
        random: UInt64 = .max, unreached: Int = 0, speaks: Bool = true, isListened: Bool = false,
        latest: UnixTime? = nil
    ) -> Judgement {
        var answer = Answer(outcome, reason, sentAt: sent, fate: fate)
        if isListened { answer.late = LateAnswer { nil } }
        return Judgement.of(
            push, answer: answer, outcome: outcome, spares: spares, halt: halt,
            now: now, latest: latest, limits: limits, random: random, unreached: unreached, speaks: speaks)
    }

    /// A push with its row's number as these answers left it.
    private func push(_ attempts: PushModel.Attempts) -> OwedPush { samplePush(1, attempt: attempts.stored) }

    /// The wait and the row's number of a push that is tried again.
    private func again(_ judged: Judgement) -> (wait: Duration, attempts: PushModel.Attempts)? {
        guard case .retry(let notBefore, let attempt, _, let isParked)? = judged.step else { return nil }
        let wait = notBefore.since(now)
        #expect(isParked == (wait > limits.keepRetryWithin))
        return (wait, PushModel.Attempts(stored: attempt))
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

    @Test("An origin's call waits as long as is asked for it, up to an hour, and a second more at most")
    func originCalls() throws {
        let lane = LaneName(app: ConfiguredName("acme")!, service: .uplink, environment: .production)
        for (asked, least) in [(1_800, 1_800), (3_600, 3_600), (86_400, 3_600)] {
            let outcome = Outcome.retry(after: .seconds(asked))
            for attempt in [0, 9] {
                let call = judge(samplePush(1, attempt: attempt, lane: lane), outcome, .serverAsksForTime)
                let (wait, _) = try #require(again(call))
                #expect(wait >= .seconds(least) && wait < .seconds(least + 1), "\(asked) \(attempt)")
                // A push service is asked again after a quarter of an hour.
                let push = judge(samplePush(1, attempt: attempt), outcome, .serverAsksForTime)
                #expect(try #require(again(push)).wait < .seconds(15 * 60 + 61))
            }
        }
        // Without a word the lane's own waits grow.
        let own = judge(samplePush(1, attempt: 9, lane: lane), .retry(after: .zero), .callPutOff)
        #expect(try #require(again(own)).wait > .seconds(59))
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

    @Test("A renewal that a clock far ahead has stamped keeps no dead token; clocks may differ by some hours")
    func renewedAhead() {
        let dead = Outcome.unregistered(since: UnixTime(seconds: 9_000))
        for (ahead, isEnded) in [(0, false), (6 * 3_600, false), (6 * 3_600 + 1, true), (86_400 * 999, true)]
        {
            let touched = now + .seconds(ahead)
            let judged = judge(samplePush(1, touchedAt: touched), dead, .unregisteredAPNs)
            #expect((ended(judged) != nil) == isEnded, "\(ahead) s")
            #expect(judged.first == (isEnded ? .unregistered : .retry))
        }
    }

    @Test("A renewal counts though our own clock is years behind the store's last time")
    func renewedBehind() {
        let dead = Outcome.unregistered(since: UnixTime(seconds: 9_000))
        let latest = now + .seconds(86_400 * 999)
        for (touched, isEnded) in [(latest, false), (latest + .seconds(6 * 3_600 + 1), true)] {
            let judged = judge(samplePush(1, touchedAt: touched), dead, .unregisteredAPNs, latest: latest)
            #expect((ended(judged) != nil) == isEnded)
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

    @Test(
        "Of unknown fate a message waits longer each time, and longer still while its answer may come",
        arguments: [(false, [2, 8, 32]), (true, [15, 60, 240])])
    func unknown(isListened: Bool, ceilings: [Int]) {
        for random in [UInt64(0), .max] {
            var attempts = PushModel.Attempts(stored: 0)
            for (index, ceiling) in ceilings.enumerated() {
                let judged = judge(
                    push(attempts), .retry(after: nil), .deadlineExceeded, fate: .unknown, random: random,
                    isListened: isListened)
                let half = Duration.seconds(ceiling) / 2
                #expect(again(judged)?.wait == (random == 0 ? half : half * 2 - .milliseconds(1)))
                #expect(judged.first == .retry)
                attempts = again(judged)?.attempts ?? attempts
                #expect(attempts.made == index + 1 && attempts.unknown == index + 1)
            }
            let last = judge(push(attempts), .retry(after: nil), .connectionLost, fate: .unknown)
            #expect(last.step == .settle && last.isGivenUp && last.first == .retry, "four sends in all")
        }
    }

    @Test("While the service says nothing to anybody nothing is given up, and waits grow to 15 minutes")
    func silent() {
        var attempts = PushModel.Attempts(stored: 0)
        for sends in 1...200 {
            let judged = judge(
                push(attempts), .retry(after: nil), .deadlineExceeded, fate: .unknown, speaks: false,
                isListened: true)
            let wait = Duration.seconds(min(15 << (2 * min(sends - 1, 10)), 900))
            #expect(again(judged)?.wait == wait - .milliseconds(1))
            attempts = again(judged)?.attempts ?? attempts
        }
        // Its first send behind the silence is the last.
        let last = judge(push(attempts), .retry(after: nil), .deadlineExceeded, fate: .unknown)
        #expect(last.step == .settle && last.isGivenUp)
    }

    @Test("Answers in between are no sends of unknown fate")
    func mixed() {
        var attempts = PushModel.Attempts(stored: 0)
        for _ in 0..<3 {
            let busy = judge(push(attempts), .retry(after: nil), .serviceUnavailable)
            attempts = again(busy)?.attempts ?? attempts
            let lost = judge(push(attempts), .retry(after: nil), .connectionLost, fate: .unknown)
            attempts = again(lost)?.attempts ?? attempts
        }
        #expect(attempts.made == 6 && attempts.unknown == 3 && attempts.unreadable == 0)
    }

    @Test("An answer that nobody can read is tried again five times, and then it is final")
    func unreadable() {
        // Ten honest refusals before it take nothing away.
        var attempts = (0..<10).reduce(PushModel.Attempts(stored: 0)) { attempts, _ in attempts.andOne() }
        for ceiling in [1, 4, 16, 64, 256] {
            let judged = judge(push(attempts), .retry(after: nil), .unreadable)
            #expect(again(judged)?.wait == .seconds(ceiling) - .milliseconds(1))
            attempts = again(judged)?.attempts ?? attempts
        }
        #expect(attempts.made == 15 && attempts.unreadable == 5)
        let last = judge(push(attempts), .retry(after: nil), .unreadable)
        #expect(last.step == .settle && last.first == .rejected && last.feedback.isEmpty)
        // One that blames nobody, such as 403 from a proxy, is never final.
        #expect(judge(push(attempts), .retry(after: nil), .unknown).step != .settle)
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
