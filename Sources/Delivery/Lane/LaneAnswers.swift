import PushModel

/// Answers, and what becomes of the pushes that they are about.
///
/// Every answer comes in through ``LaneState/heard(_:_:mayGoOn:at:random:)``, which updates the lane's
/// records and returns a ``LaneState/Heard``. Each next step takes it: the push is judged here, or goes on in
/// the pair's other lane. A push that came from there may end with the other lane's answer
/// (``LaneState/returned(_:_:random:)``).
extension LaneState {
    /// An answer that the lane has recorded. Only this file makes one.
    struct Heard: Sendable {
        /// The push that left, with times of now.
        let entry: LaneQueue.Entry
        let answer: Answer
        let random: UInt64
        /// Whether the lane has also recorded what it says about the credential and targets.
        fileprivate let isJudged: Bool
        /// As far as the lane knows, its service refuses it for good, and the push came from another lane,
        /// with whose answer it can end.
        let endsByFirstWord: Bool

        fileprivate init(
            _ entry: LaneQueue.Entry, _ answer: Answer, random: UInt64, isJudged: Bool,
            endsByFirstWord: Bool = false
        ) {
            self.entry = entry
            self.answer = answer
            self.random = random
            self.isJudged = isJudged
            self.endsByFirstWord = endsByFirstWord
        }
    }

    /// Records what an answer says about the lane. The push counts as under way until ``answered`` or
    /// ``left`` has taken what this gives.
    ///
    /// - Parameters:
    ///   - mayGoOn: the answer may mean that the push is to go on in the pair's other lane. Until this is
    ///     known, it blames no target.
    ///   - random: 64 random bits.
    mutating func heard(
        _ sent: LaneQueue.Entry, _ answer: Answer, mayGoOn: Bool, at moment: LaneMoment, random: UInt64,
        _ actions: inout Actions
    ) -> Heard {
        // The clock may have jumped while this push was under way.
        memory.believe(moment.clock)
        memory.heed(moment.now, moment.instant)
        lateEnds.answered(sent.push)
        var entry = sent
        memory.move(&entry)
        if let name = rowsUnderWay.name(of: entry) { entry.take(name) }
        health.note(
            answer, of: entry, others: mayGoOn ? nil : others(answer, entry), at: moment, random: random,
            &actions)
        let endsByFirstWord =
            health.isRefused && entry.firstWord != nil && Breaker.isCredentialFault(answer)
        if health.isRefused { endMoved(&actions) }
        actions.wakesSender = true
        // An entry is large, and every push passes here.
        return Heard(
            consume entry, answer, random: random, isJudged: !mayGoOn, endsByFirstWord: endsByFirstWord)
    }

    /// The same as an event of its own.
    mutating func heard(
        _ sent: LaneQueue.Entry, _ answer: Answer, mayGoOn: Bool, at moment: LaneMoment, random: UInt64
    ) -> (heard: Heard, actions: Actions) {
        var actions = Actions()
        let heard = heard(sent, answer, mayGoOn: mayGoOn, at: moment, random: random, &actions)
        return (heard, actions)
    }

    /// Origins that wait here, where they matter to what an answer means.
    func others(_ answer: Answer, _ entry: LaneQueue.Entry) -> [Digest16] {
        health.asksWhoWaits(answer, for: entry) ? memory.origins(atMost: witnesses) : []
    }

    // MARK: in another lane

    /// The push goes on in another lane.
    mutating func left(_ heard: Heard) -> Actions {
        var actions = Actions()
        // The other lane has it under a former name of its row, and can do nothing more with it.
        if let name = countIn(heard.entry) { actions.giveBack(name.entry) }
        return actions
    }

    /// A push that another lane could not end comes back with the answer that it had here.
    ///
    /// - Parameter random: 64 random bits.
    mutating func returned(_ entry: LaneQueue.Entry, _ word: Answer, random: UInt64) -> Heard {
        var entry = entry
        countOut(&entry)
        return Heard(entry, word, random: random, isJudged: false)
    }

    /// A lane that its service refuses learns nothing about pushes from another lane: these end with the
    /// other lane's answer.
    private mutating func endMoved(_ actions: inout Actions) {
        for entry in memory.takeMoved() { end(moved: entry, &actions) }
    }

    /// The same for what comes.
    ///
    /// - Returns: what stays.
    mutating func endMoved(_ entries: [LaneQueue.Entry], _ actions: inout Actions) -> [LaneQueue.Entry] {
        guard health.isRefused else { return entries }
        return entries.filter { entry in
            guard entry.firstWord != nil else { return true }
            end(moved: entry, &actions)
            return false
        }
    }

    private mutating func end(moved entry: LaneQueue.Entry, _ actions: inout Actions) {
        var entry = entry
        countOut(&entry)
        actions.returned.append(entry)
    }

    /// Pushes that have ended with their registrations are not sent any more.
    ///
    /// - Returns: the registrations of those that waited here.
    @discardableResult
    mutating func revoke(_ pushes: Set<PushID>) -> [Digest16] {
        memory.revoke(pushes).compactMap(\.push.record)
    }

    /// Such a push has ended there.
    mutating func ended(moved entry: LaneQueue.Entry) -> Actions {
        var actions = Actions()
        if let name = countIn(entry) { actions.giveBack(name.entry) }
        return actions
    }

    /// The other lane is gone: it goes back to the store, or aside.
    mutating func keep(moved entry: LaneQueue.Entry) -> Actions {
        var (entry, actions) = (entry, Actions())
        if let name = countIn(entry) { entry.take(name) }
        memory.park(entry, &actions)
        return actions
    }

    // MARK: here

    /// What becomes of the push, as far as both clocks were looked at (``heed(_:)``,
    /// ``heard(_:_:mayGoOn:at:random:)``) in the same event.
    ///
    /// - Parameters:
    ///   - outcome: the answer's after the protocol's override.
    ///   - withdrawal: whether a push of which that becomes is withdrawn, because its peer will send it
    ///     again, and what is changed with it.
    ///   - further: changes of records that follow from the judgement.
    mutating func answered(
        _ heard: Heard, outcome: Outcome, at moment: LaneMoment, limits: DeliveryLimits,
        withdrawal: (Judgement) -> [Change]? = { _ in nil },
        further: (Judgement) -> [Change] = { _ in [] }, _ actions: inout Actions
    ) -> Attempt.Next {
        let answer = heard.answer
        var entry = heard.entry
        memory.move(&entry)
        if let name = countIn(entry) { entry.take(name) }
        if !heard.isJudged {
            health.judge(answer, of: entry, others: others(answer, entry), at: moment, &actions)
        }
        actions.wakesSender = true
        if endLate(entry, &actions) { return .ended }
        var judged = judge(entry, answer, outcome, at: moment, random: heard.random, limits)
        if case .unregistered = outcome, judged.first == .misconfigured {
            actions.spared = health.newsOfSparing()
        }
        let withdrawn = withdrawal(judged)
        if withdrawn != nil { judged.step = .withdraw }
        let next = Attempt.Next(judged.step)
        let waitsForCommit = withdrawn != nil || !judged.feedback.isEmpty
        // Decided by the feedback alone, which comes first.
        let more = further(judged)
        // Joining lists costs something even when they are empty, as these nearly always are.
        if let withdrawn { judged.feedback += withdrawn }
        if !more.isEmpty { judged.feedback += more }
        apply(judged, waitsForCommit: waitsForCommit, to: entry, after: answer, at: moment, &actions)
        return next
    }

    /// The same as an event of its own.
    mutating func answered(
        _ heard: Heard, outcome: Outcome, at moment: LaneMoment, limits: DeliveryLimits,
        withdrawal: (Judgement) -> [Change]? = { _ in nil },
        further: (Judgement) -> [Change] = { _ in [] }
    ) -> (next: Attempt.Next, actions: Actions) {
        var actions = Actions()
        heed(moment)
        let next = answered(
            heard, outcome: outcome, at: moment, limits: limits, withdrawal: withdrawal, further: further,
            &actions)
        return (next, actions)
    }

    /// Looks at both clocks, as far as they are believed.
    mutating func heed(_ moment: LaneMoment) {
        memory.believe(moment.clock)
        memory.heed(moment.now, moment.instant)
    }

    mutating func judge(
        _ entry: LaneQueue.Entry, _ answer: Answer, _ outcome: Outcome, at moment: LaneMoment, random: UInt64,
        _ limits: DeliveryLimits
    ) -> Judgement {
        let now = moment.now
        let isHalted = health.isHaltedForCredential(entry)
        return Judgement.of(
            entry.push, answer: answer, outcome: outcome, spares: health.sparesRegistrations(of: entry),
            halt: isHalted ? (entry.isProbe ? .probe : .halted) : .none, now: now,
            latest: moment.clock.latest, doubt: now.since(memory.custodyTime(of: entry.push, now)),
            limits: limits, random: random,
            unreached: entry.unreached,
            speaks: answer.fate != .unknown || health.speaks(to: entry, among: limits.unknownSends))
    }

    private mutating func apply(
        _ judged: Judgement, waitsForCommit: Bool, to entry: LaneQueue.Entry, after answer: Answer,
        at moment: LaneMoment, _ actions: inout Actions
    ) {
        let first = entry.isFirst ? judged.first : nil
        if let first, !waitsForCommit { actions.first.append((entry.push.id, .known(first))) }
        if judged.custodyEnds { actions.custodyEnded += 1 }
        if judged.isSpentCall { actions.spentCalls += 1 }
        if judged.isGivenUp { actions.givenUp += 1 }
        if entry.push.isVolatile {
            return apply(judged, toVolatile: entry.again(after: answer), now: moment.now, &actions)
        }
        guard var step = judged.step else {
            var again = entry.again(after: answer)
            again.unwritten = first ?? entry.unwritten
            return putBack(again, now: moment.now, &actions)
        }
        if case .retry(let notBefore, let attempt, let lane, _) = step, keepsNothing {
            step = .retry(notBefore: notBefore, attempt: attempt, lane: lane, parked: true)
        }
        let settlement = Settlement(entry.push, step, first: first ?? entry.unwritten)
        // Feedback reaches the registry before the reply leaves.
        var item = Settler.Item(
            settlement, .init(feedback: judged.feedback, first: waitsForCommit ? first : nil))
        if case .retry(let notBefore, let attempt, _, parked: false) = step {
            var again = entry.again(after: answer)
            again.unwritten = nil
            again.push.notBefore = notBefore
            again.push.attempts = Attempts(stored: attempt)
            // Back in memory once the store says that it is still owed, and ours.
            item.rest.again = Settler.Return(again)
            returning += 1
        }
        // Before the steps that the answer released.
        actions.settle.prepend(item)
    }

    /// What an answer means for a volatile push: there is no row to settle.
    private mutating func apply(
        _ judged: Judgement, toVolatile entry: LaneQueue.Entry, now: UnixTime, _ actions: inout Actions
    ) {
        switch judged.step {
        case nil: putBack(entry, now: now, &actions)
        case .retry(let notBefore, let attempt, _, let parked)?:
            var again = entry
            // While a stop drains, a later retry would never be made.
            again.push.notBefore = isStopping ? min(notBefore, now + Self.drainRetry) : notBefore
            again.push.attempts = Attempts(stored: attempt)
            memory.retry(again, isLate: parked || isStopping, now: now, &actions)
        case .settle?, .withdraw?, .park?: actions.volatileEnded += 1
        }
    }

    /// Between attempts while a stop drains, at most: five in the ten seconds that it takes.
    private static let drainRetry: Duration = .seconds(2)

    /// A probe goes behind all pushes that wait, here and in the store, so that the next probe is another's
    /// turn. If the lane is no longer halted, it goes back to its place at the front, or to the store if
    /// others have taken its room.
    private mutating func putBack(_ entry: LaneQueue.Entry, now: UnixTime, _ actions: inout Actions) {
        let goesLast = health.isHalted
        let isDurable = entry.push.isDurable
        if keepsNothing && isDurable || isStopping || memory.isFull && !goesLast {
            memory.park(entry, &actions)
        } else if !goesLast {
            memory.putBack(entry)
        } else if isDurable && (memory.isFull || rows.count > 0) {
            // The attempt is counted, so that a reader of its row knows that its first attempt is over.
            actions.putOff(entry, until: now, entry.push.attempts.andOne())
        } else if memory.isFull {
            memory.park(entry, &actions)
        } else {
            memory.putLast(entry)
        }
    }
}
