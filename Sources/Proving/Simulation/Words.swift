import Delivery
import PushModel
import Synchronization

/// What push services have said to each lane, and of each push: what may follow from it, and what may not.
struct Words {
    /// One lane of one life.
    struct Heard {
        /// Answers that refused the credential, since it was last accepted.
        var faults = 0
        var acceptedAt: Duration?
        /// When a push service last said anything.
        var at: Duration?
        /// Devices whose quota was met since a push was last dealt with; `nil`: others were put off as well.
        var limited: Set<Int>? = []
        /// When each device last said that it has had enough.
        var quotas: [Int: [Duration]] = [:]
    }

    /// What one process knows of one push.
    struct Sent {
        /// What was last answered, until its lane has judged it.
        var meaning: WireAnswer.Meaning?
        /// When it came.
        var heardAt: Duration?
        /// How often its fate is unknown,
        var unknown = 0
        /// and whether it was for the last time, since the service spoke just before.
        var isSpent = false
        /// Its fate is unknown at all.
        var mayHaveArrived = false
        /// When it was last sent.
        var at = Duration.zero
        /// When an answer came after the request had been given up, and nobody had closed its stream,
        var cameLateAt: Duration?
        /// and when the lane was given one that ends the push.
        var endedLateAt: Duration?
    }

    var lanes: [Paces.Way: Heard] = [:]
    /// Requests of each lane in a row that had no answer.
    var unheard: [Paces.Way: Int] = [:]
    var sent: [PushLedger.Answered: Sent] = [:]

    /// Sends of unknown fate, once the service speaks: this often a phone may show the same thing at worst.
    static let mostUnknown = 4
    /// It speaks when it has answered something among the last four requests of the lane (decision 0077), and
    /// not when it has answered others since this one left: a burst may have gone unanswered after them.
    ///
    /// So many requests without an answer, and a lane may take its service for silent: one less than it does,
    /// because what comes at once may be heard in another order.
    static let manyUnheard = 3
    /// How long a lane may take to act on a late answer: what is in a socket's buffers leaves, and a repeat
    /// may have come from the store in between.
    static let digestion = Duration.seconds(1)
    /// How long it may take to read one: its machine may have stood still, or waited for its store.
    static let reading = Duration.seconds(60)
    /// How long a credential counts as one that is being accepted.
    static let fresh = Duration.seconds(60)
    /// A phone's wait is a minute at most.
    static let longestWait = Duration.seconds(60)
    /// Answers of one device in a minute that say that it has had enough: what its back-off makes, a call in
    /// five seconds, and what was under way when it began.
    static let mostOfDevice = 60
}

extension PushLedger {
    /// Bytes of a push leave: whether they may, after all that was said of it.
    func check(_ push: OwedPush, _ number: Int, by life: Life, at: Duration, in state: inout State) {
        let name = Answered(life: life, id: push.id)
        var sent = state.words.sent[name] ?? Words.Sent()
        if sent.isSpent { state.broke(.tooManyCopies, number) }
        if sent.mayHaveArrived, push.pushClass == .urgent { state.broke(.rangTwice, number) }
        let isTroubled = state.paces.troubles[life.process].map { at - $0 <= .seconds(6) } ?? false
        if let ended = sent.endedLateAt, at > ended + Words.digestion, !isTroubled {
            state.broke(.sentAfterLateAnswer, number)
        } else if let came = sent.cameLateAt, at > came + Words.reading {
            state.broke(.sentAfterLateAnswer, number)
        }
        if let gone = state.leavings.gone(push.id) {
            let span = gone.process == life.process ? Leavings.underWay : Leavings.elsewhere
            if at > gone.at + span { state.broke(.sentAfterEnd, number) }
        }
        sent.at = at
        state.words.sent[name] = sent
    }

    /// Something came back for a push, or the wait for it ended.
    func note(
        _ fate: SimulatedPushService.Fate, of push: OwedPush, _ target: Peers.Read, to life: Life,
        at: Duration, in state: inout State
    ) {
        let way = Paces.Way(lane: push.lane, life: life)
        let name = Answered(life: life, id: push.id)
        switch fate {
        case .answered(let answer):
            state.words.unheard[way, default: 0] = answer.meaning == .foreign ? Words.manyUnheard : 0
            state.words.sent[name, default: Words.Sent()].meaning = answer.meaning
            state.words.sent[name]?.heardAt = at
            guard answer.meaning == .quota else { return }
            var times = state.words.lanes[way]?.quotas[target.device] ?? []
            if Paces.note(at, in: &times, most: Words.mostOfDevice) {
                state.broke(.phoneAskedTooOften, target.number)
            }
            state.words.lanes[way, default: Words.Heard()].quotas[target.device] = times
        case .unprocessed: state.words.unheard[way, default: Words.manyUnheard] += 1
        case .unknown, .silence:
            let unheard = (state.words.unheard[way] ?? Words.manyUnheard) + 1
            state.words.unheard[way] = unheard
            guard push.custody == .durable else { return }
            var sent = state.words.sent[name] ?? Words.Sent()
            sent.mayHaveArrived = true
            sent.unknown += 1
            if sent.unknown >= Words.mostUnknown, unheard < Words.manyUnheard, state.isOfThisLane(name),
                state.words.lanes[way]?.at != nil
            {
                sent.isSpent = true
            }
            state.words.sent[name] = sent
        }
    }

    /// An answer came to a process that had given its request up, and that may listen to it yet.
    func cameLate(
        _ fate: SimulatedPushService.Fate, for push: OwedPush, _ target: Peers.Read, to life: Life
    ) {
        guard case .answered(let answer) = fate, answer.meaning == .accepted, push.custody == .durable else {
            return
        }
        let (at, name) = (scheduler.elapsed, Answered(life: life, id: push.id))
        tell(target.number, "the answer comes late to \(life)")
        state.withLock { $0.words.sent[name, default: Words.Sent()].cameLateAt = at }
    }

    /// A lane that listened has such an answer. When its breaker and its throttle hear of it nobody says, so
    /// it only excuses them.
    ///
    /// - Parameter ends: nothing is to be sent after it.
    func returnedLate(
        _ push: OwedPush, _ target: Peers.Read, _ answer: WireAnswer, ends: Bool, to life: Life
    ) {
        let at = scheduler.elapsed
        tell(target.number, "\(life) has the late answer: \(answer.meaning)")
        let way = Paces.Way(lane: push.lane, life: life)
        state.withLock { state in
            if ends, push.custody == .durable {
                state.words.sent[Answered(life: life, id: push.id), default: Words.Sent()].endedLateAt = at
            }
            let name = Answered(life: life, id: push.id)
            var heard = state.words.lanes[way] ?? Words.Heard()
            if answer.meaning != .foreign, state.isOfThisLane(name) { heard.at = at }
            switch answer.meaning {
            case .credential: heard.faults += 1
            case .quota: heard.limited?.insert(target.device)
            case .busy: heard.limited = nil
            case .accepted, .address, .foreign: break
            }
            state.words.lanes[way] = heard
        }
    }

    /// A lane has judged an answer: in the order in which its breaker and its throttle hear of them.
    func note(_ attempt: Attempt, of device: Int?, by life: Life, at: Duration, in state: inout State) {
        let way = Paces.Way(lane: attempt.lane, life: life)
        let name = Answered(life: life, id: attempt.id)
        guard let meaning = state.words.sent[name]?.meaning else { return }
        state.words.sent[name]?.meaning = nil
        var heard = state.words.lanes[way] ?? Words.Heard()
        let isOfThisLane = state.isOfThisLane(name)
        // The lane heard it when it came; what becomes of the push may wait for the store.
        if meaning != .foreign, isOfThisLane {
            heard.at = max(heard.at ?? .zero, state.words.sent[name]?.heardAt ?? at)
        }
        switch meaning {
        case .accepted where !isOfThisLane: break
        case .accepted:
            (heard.faults, heard.acceptedAt, heard.limited) = (0, at, [])
        case .credential: heard.faults += 1
        case .address: heard.limited = []
        case .quota: if let device { heard.limited?.insert(device) }
        case .busy: heard.limited = nil
        case .foreign: break
        }
        state.words.lanes[way] = heard
    }

    /// A lane stops for the sake of its credential: not by one word among acceptances, nor by another lane's.
    func haltedForCredential(_ lane: LaneName, by life: Life) {
        let at = scheduler.elapsed
        state.withLock { state in
            if lane.environment == .sandbox { state.leavings.isSandboxRefused = true }
            let own = state.words.lanes[Paces.Way(lane: lane, life: life)]
            guard let acceptedAt = own?.acceptedAt, at - acceptedAt < Words.fresh else { return }
            // Two lanes that say the same are two witnesses, but what one has not heard at all it cannot say.
            let others = state.words.lanes.filter { way, _ in
                way.life == life && way.lane != lane && way.lane.service == lane.service
            }
            let faults = own?.faults ?? 0
            guard faults == 0 || faults + others.values.reduce(0, { $0 + $1.faults }) < 2 else { return }
            state.broke(.haltedBesideAcceptance)
        }
    }

    /// An operator is told that a lane's service does not answer.
    ///
    /// - Parameter after: so long it must have said nothing.
    func calledSilent(_ lane: LaneName, by life: Life, after span: Duration) {
        let at = scheduler.elapsed
        state.withLock { state in
            guard let heard = state.words.lanes[Paces.Way(lane: lane, life: life)]?.at, at - heard < span
            else {
                return
            }
            state.broke(.calledSilent)
        }
    }

    /// A lane sends slowly from now on.
    func slowed(_ lane: LaneName, by life: Life) {
        state.withLock { state in
            let limited = state.words.lanes[Paces.Way(lane: lane, life: life)]?.limited
            if limited?.count == 1 { state.broke(.slowedByOne) }
        }
    }
}

extension PushLedger.State {
    /// Calls that wait for a phone which has had enough.
    func waitingForPhones(_ lane: LaneName, _ life: PushLedger.Life, at: Duration) -> Set<Int> {
        guard !paces.urgent.isEmpty, let heard = words.lanes[Paces.Way(lane: lane, life: life)] else {
            return []
        }
        let full = Set(heard.quotas.filter { at - ($0.value.last ?? .zero) < Words.longestWait }.keys)
        let waiting = paces.urgent.values.map(\.number)
        return Set(waiting.filter { pages[$0].map { full.contains($0.device) } ?? false })
    }

    /// Whether the lane that a reload put in the place of another sent it itself.
    fileprivate func isOfThisLane(_ name: PushLedger.Answered) -> Bool {
        (words.sent[name]?.at ?? .zero) >= paces.renewed[name.life.process] ?? .zero
    }
}
