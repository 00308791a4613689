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
    var sent: [Book.Answered: Sent] = [:]

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

extension Book {
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
        if let gone = state.leavings.gone[push.id] {
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

extension Book.State {
    /// Calls that wait for a phone which has had enough.
    func waitingForPhones(_ lane: LaneName, _ life: Book.Life, at: Duration) -> Set<Int> {
        guard !paces.urgent.isEmpty, let heard = words.lanes[Paces.Way(lane: lane, life: life)] else {
            return []
        }
        let full = Set(heard.quotas.filter { at - ($0.value.last ?? .zero) < Words.longestWait }.keys)
        let waiting = paces.urgent.values.map(\.number)
        return Set(waiting.filter { pages[$0].map { full.contains($0.device) } ?? false })
    }

    /// Whether the lane that a reload put in the place of another sent it itself.
    fileprivate func isOfThisLane(_ name: Book.Answered) -> Bool {
        (words.sent[name]?.at ?? .zero) >= paces.renewed[name.life.process] ?? .zero
    }
}

// MARK: Registrations that end

/// What is owed to devices whose registrations end, or change their address: it may go with them.
struct Leavings {
    /// When pushes have gone with a registration, and whose commit it was. What a sender asks for again has
    /// another name, and is another registration's.
    struct Gone {
        let at: Duration
        let process: Int
    }

    /// The end of a registration.
    struct End {
        let process: Int
        /// When its commit stood; `nil`: nobody has heard.
        var at: Duration?
    }

    /// Registrations that a push service's word may have ended, and what was owed to them with them.
    var byWord: [Int: End] = [:]
    /// When a device last heard that its registration has ended, or changed its address.
    var last: [Int: End] = [:]
    /// The tokens under which devices have heard that they are registered.
    var tokens: [Int: Int] = [:]
    /// Devices whose registrations may have ended or not.
    var adrift: Set<Int> = []
    /// How often each device's registration has ended, or changed its address.
    var counts: [Int: Int] = [:]
    var gone: [PushID: Gone] = [:]
    /// The sandbox has refused a credential for long enough to halt a lane: what was sent on to it ends by
    /// production's word, which knows none of its devices (decision 0079).
    var isSandboxRefused = false

    /// What its own process has on its way to a socket by then may arrive there.
    static let underWay = Duration.seconds(1)
    /// Another process hears of it with its next renewal, or has no lease any more.
    static let elsewhere = DeliveryLimits().aliveFor + underWay
}

extension Book.State {
    /// Whether a push may end with its registration.
    func mayGo(_ page: Book.Page) -> Bool {
        dead.contains(page.device) || leavings.adrift.contains(page.device)
            || page.leaving < leavings.counts[page.device] ?? 0 || isCutOff(page.device)
    }

    /// Calls to a device whose registration ended do not wait any more.
    mutating func letGo(of device: Int) {
        for (id, one) in paces.urgent where pages[one.number]?.device == device { paces.urgent[id] = nil }
    }

    /// Whether nobody can be asked about a device now.
    func isCutOff(_ device: Int) -> Bool {
        leavings.isSandboxRefused && SimulatedPushService.isInSandbox(device)
    }
}

extension Book {
    /// A push service's word is about to end a registration.
    func ends(_ device: Int, by process: Int) {
        state.withLock { $0.leavings.byWord[device] = Leavings.End(process: process) }
    }

    func ended(_ device: Int) {
        tell(device: device, "a word about a push may have ended the registration")
        let at = scheduler.elapsed
        state.withLock { state in
            state.leavings.byWord[device]?.at = at
            state.letGo(of: device)
        }
    }

    /// A push service takes up what the store does not owe any more. What was on its way when a late answer
    /// ended it, or its registration, arrives all the same (decisions 0077 and 0081).
    func takenUnowed(_ push: OwedPush, _ number: Int, by life: Life) {
        state.withLock { state in
            let sent = state.words.sent[Answered(life: life, id: push.id)] ?? Words.Sent()
            if let ended = sent.endedLateAt, ended >= sent.at { return }
            guard let page = state.pages[number] else { return }
            let leavings = state.leavings
            if leavings.adrift.contains(page.device) { return }
            for end in [leavings.byWord[page.device], leavings.last[page.device]] {
                guard let end else { continue }
                let span = end.process == life.process ? Leavings.underWay : Leavings.elsewhere
                if end.at.map({ sent.at <= $0 + span }) ?? true { return }
            }
            state.broke(.sentByStranger, number)
        }
    }

    /// A registration is about to end, or to have that token.
    ///
    /// - Parameter token: `nil`: it ends.
    /// - Returns: pushes of it that the store has; `nil`: it stays as it is.
    func leaves(_ device: Int, for token: Int?) -> [PushID]? {
        state.withLock { state in
            if let token, state.leavings.tokens[device] ?? token == token { return nil }
            state.leavings.adrift.insert(device)
            if token == nil { state.registrations[device] = nil }
            return state.numbers.compactMap { id, number in
                let page = state.pages[number]
                guard let page, page.device == device, page.isWritten, !page.ended else { return nil }
                return id
            }
        }
    }

    /// It has: those pushes are not sent any more.
    ///
    /// - Parameter version: what it had heard of below this one has ended; `nil`: it goes on.
    func left(_ device: Int, _ pushes: [PushID]?, by process: Int, below version: UInt64? = nil) {
        guard let pushes else { return }
        tell(device: device, "the device hears that its registration has ended, or has another address")
        let at = scheduler.elapsed
        state.withLock { state in
            state.leavings.adrift.remove(device)
            // A version that was put before and heard of meanwhile has ended with it.
            if let version, state.registrations[device] ?? version < version {
                state.registrations[device] = nil
            }
            state.leavings.counts[device, default: 0] += 1
            state.leavings.last[device] = Leavings.End(process: process, at: at)
            state.letGo(of: device)
            for push in pushes where !state.settled.contains(push) {
                state.leavings.gone[push] = Leavings.Gone(at: at, process: process)
            }
        }
    }

    /// The token of a registration is dead: the first push to it ends it, until it is heard of anew.
    func forgoes(_ device: Int) {
        state.withLock { state in
            state.registrations[device] = nil
            state.leavings.adrift.insert(device)
        }
    }
}
