import AtRest
import PushModel
import PushTesting
import Synchronization
import Testing

@testable import Delivery

/// A lane keeps its books of every answer, whatever becomes of the push (decision 0079).
@Suite("A lane's books", .timeLimit(.minutes(30)))
struct BooksTests {
    /// All ways by which a push that left comes to an end, or goes on.
    enum Exit: CaseIterable, Sendable {
        case accepted, rejected, wrongTarget, unregistered, busy, busyForLong, limited, foreignElsewhere
        case strayFault, elsewhere, endsByFirstWord, withdrawn, outOfTime

        var answer: Answer {
            switch self {
            case .accepted: .accepted
            case .rejected: .rejected
            case .wrongTarget: .badTopic
            case .unregistered: .gone(at: UnixTime(seconds: 1_800_000_100))
            case .busy, .withdrawn: .busy()
            case .busyForLong: .busy(.seconds(60))
            case .outOfTime: .busy(.seconds(900))
            case .limited: Answer(.retry(after: nil), .tooManyRequests, sentAt: Answer.sent)
            case .strayFault, .endsByFirstWord: .badCredential
            case .elsewhere: .badDeviceToken
            case .foreignElsewhere: Answer(.rejected, .otherCoast, sentAt: Answer.sent)
            }
        }

        var goesOn: Bool { self == .elsewhere || self == .foreignElsewhere }
        var isDealtWith: Bool {
            switch self {
            case .accepted, .rejected, .wrongTarget, .unregistered, .elsewhere, .foreignElsewhere: true
            case .busy, .busyForLong, .limited, .strayFault, .endsByFirstWord, .withdrawn, .outOfTime: false
            }
        }
    }

    @Test("Whatever becomes of a push, an answer ends a silence, and tells so", arguments: Exit.allCases)
    func silence(_ exit: Exit) throws {
        var stage = LaneStage()
        stage.admit(1...200)
        for _ in 0..<20 {
            let sent = try stage.sent()
            stage.answer(.silence, sent, random: .max)
        }
        var told: [Reach.News] = []
        for _ in 0..<70 where told.isEmpty {
            let news = stage.tick(after: .seconds(1)).reach
            if news != .none { told.append(news) }
        }
        #expect(told == [.unanswered])
        let sent = try stage.sent()
        let second = stage.next().entry
        #expect(second == nil, "one push at a time is tried")
        let actions = stage.leave(sent, by: exit)
        #expect(actions.reach == .over)
        let lane = stage.lane.snapshot(of: sampleLane, [])
        #expect(!lane.isUnanswered && lane.inFlight == 0)
        for _ in 0..<10 { _ = try stage.sent() }
    }

    @Test("What is put off for less than wall time can tell is not due at once")
    func leastWait() throws {
        let now = UnixTime(seconds: 1_800_000_000)
        var memory = LaneMemory(limits: DeliveryLimits(), longestWait: .seconds(900))
        var actions = LaneState.Actions()
        memory.admit([entry(samplePush(1))], now: now, &actions)
        let taken = memory.take(isTurn: false)
        memory.holdBack(try #require(taken), for: .microseconds(400), now: now, &actions)
        #expect(!memory.hasDue(now))
        #expect(memory.hasDue(now + .milliseconds(1)))
    }

    @Test("Whatever becomes of a push, its request is under way no more", arguments: Exit.allCases)
    func underWay(_ exit: Exit) throws {
        var stage = LaneStage()
        let window = stage.limits.addressWindow
        stage.admit(1...100, to: "phone")
        var sent: [LaneQueue.Entry] = []
        for _ in 0..<window { sent.append(try stage.sent()) }
        let next = stage.next().entry
        #expect(next == nil, "no more to one address")
        #expect(stage.lane.snapshot(of: sampleLane, []).inFlight == window)
        // Two alone: as many faults of a credential as halt no lane.
        for entry in sent.prefix(2) { stage.leave(entry, by: exit) }
        #expect(stage.lane.snapshot(of: sampleLane, []).inFlight == window - 2)
        // Nor may what the first two were answered keep the others from having been asked.
        for entry in sent.dropFirst(2) { stage.leave(entry, by: .accepted) }
        #expect(stage.lane.snapshot(of: sampleLane, []).inFlight == 0)
        stage.tick(after: .seconds(61))
        _ = try stage.sent()
    }

    @Test(
        "Whatever becomes of a push that the service has looked at, a slowed lane goes on",
        arguments: Exit.allCases)
    func slowed(_ exit: Exit) throws {
        var stage = LaneStage(changing(DeliveryLimits()) { $0.throttleRefusals = 3 })
        stage.admit(1...500)
        var pace: [LaneState.PaceChange] = []
        for _ in 0..<3 { pace.append(stage.leave(try stage.sent(), by: .busy).pace) }
        #expect(pace.last == .slowed)
        for _ in 0..<3 {
            stage.tick(after: .milliseconds(100))
            stage.leave(try stage.sent(), by: exit)
            if exit == .strayFault || exit == .endsByFirstWord { break }
        }
        stage.tick(after: .milliseconds(100))
        var leave = 0
        while leave < 100, stage.next().entry != nil { leave += 1 }
        #expect(leave == (exit.isDealtWith ? 8 : 1))
    }

    @Test("Until it is known that a push does not go on, it blames no target; then it does")
    func undecided() throws {
        let limits = changing(DeliveryLimits()) { $0.breakerAddresses = 5 }
        var stage = LaneStage(limits)
        stage.admit(1...100)
        for _ in 0..<20 {
            let actions = stage.leave(try stage.sent(), by: .elsewhere)
            #expect(actions.breaker == .none)
        }
        var changes: [Breaker.Change] = []
        for _ in 0..<5 {
            let sent = try stage.sent()
            var (heard, actions) = stage.lane.heard(
                sent, .badDeviceToken, mayGoOn: true, at: stage.moment, random: 0)
            #expect(actions.breaker == .none)
            actions =
                stage.lane.answered(
                    heard, outcome: heard.answer.outcome, at: stage.moment, limits: limits
                ).actions
            changes.append(actions.breaker)
        }
        #expect(changes == [.none, .none, .none, .none, .halted(.targets)])
    }

    @Test(
        "A lane once silent whose answers send pushes elsewhere is silent no more", arguments: [true, false])
    func silentAndElsewhere(_ isVolatile: Bool) async throws {
        let isBack = Mutex(false)
        let production = ScriptedProvider(Names.apns, slots: 4) { _ in
            isBack.withLock(\.self) ? .badDeviceToken : .notReached
        }
        let sandbox = ScriptedProvider(Names.sandbox, slots: 4) { _ in .accepted }
        try await Rig.run(Depot(), .of(production, sandbox, environment: .learn)) { rig in
            if isVolatile {
                rig.admitVolatile(1...40, bundle: "org.acme")
            } else {
                try await rig.owe((1...40).map { push($0, origin: "o\($0 % 5)", bundle: "org.acme") })
            }
            await production.waitForSent(20)
            await rig.pass(.seconds(65), step: .milliseconds(500))
            #expect(rig.events.text == ["acme/apns/production unanswered NotReached"])
            isBack.withLock { $0 = true }
            // The next try, and then all of them at once.
            await rig.pass(.seconds(6))
            try await asked(for: "forty pushes in the sandbox") { sandbox.sent.count == 40 }
            #expect(rig.events.text.last == "acme/apns/production answered")
        }
    }

    @Test("An operator's trial is no push of the lane's, and tells it nothing")
    func trial() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 2) { push in
            push.address == "trial" ? .accepted : .badCredential
        }
        try await Rig.run(Depot(), .of(provider), limits: .haltsAtOnce) { rig in
            try await rig.expect([.known(.misconfigured)], of: [push(1)])
            _ = await rig.service.testPush(Names.fcm, push(2, address: "trial").message)
            let lane = try rig.lane()
            #expect(lane.isHalted && lane.inFlight == 0)
        }
    }
}

extension LaneStage {
    @discardableResult
    fileprivate mutating func tick(after span: Duration) -> LaneState.Actions {
        pass(span)
        return lane.tick(at: moment, seconds: 0.1, isLeased: true)
    }

    fileprivate mutating func admit(_ numbers: ClosedRange<Int>, to address: String? = nil) {
        let entries = numbers.map { number in
            var push = samplePush(
                number, origin: UInt64(number % 5), custodyEnds: UnixTime(seconds: 1_800_000_800))
            if let address {
                push = push.addressed(to: address)
            }
            var made = entry(push)
            made.firstWord = LaneQueue.FirstWord(.badDeviceToken, in: Names.apns)
            return made
        }
        admit(entries)
    }

    /// Takes an answer by the lane's way back, and the push by that exit.
    @discardableResult
    fileprivate mutating func leave(_ sent: LaneQueue.Entry, by exit: BooksTests.Exit) -> LaneState.Actions {
        var (heard, actions) = lane.heard(
            sent, exit.answer, mayGoOn: exit.goesOn, at: moment, random: 0)
        if exit.goesOn || exit == .endsByFirstWord {
            actions.join(lane.left(heard))
        } else {
            actions.join(
                lane.answered(
                    heard, outcome: exit.answer.outcome, at: moment, limits: limits,
                    withdrawal: { _ in exit == .withdrawn ? [] : nil }
                ).actions)
            lane.land(&actions, at: moment)
        }
        return actions
    }
}
