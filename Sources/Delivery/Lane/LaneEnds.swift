import PushModel

/// What follows from an answer: the lane's records, and what becomes of the push.
extension Lane {
    /// Records the answer in the lane, whatever becomes of the push.
    func hear(_ answer: Answer, of entry: LaneQueue.Entry) -> LaneState.Heard {
        let mayGoOn = core.mayGoOn(answer, entry)
        let (moment, random) = (moment, core.world.random())
        return change { $0.heard(entry, answer, mayGoOn: mayGoOn, at: moment, random: random) }
    }

    // Not part of `send`: while a push is under way, its task would hold the room for what follows.

    /// Takes an answer that says which of the app's environments the address belongs to.
    ///
    /// - Returns: whether the push went back to the lane that it came from.
    @inline(never)
    func teach(_ answer: Answer, of entry: LaneQueue.Entry) async -> Bool {
        let heard = hear(answer, of: entry)
        if heard.endsByFirstWord {
            goBack(heard)
            return true
        }
        switch await core.learned(from: answer, for: entry) {
        case .nothing: finish(heard, learned: [])
        case .change(let learned): finish(heard, learned: [learned])
        case .goesOnInMemory(let other): goOn(heard) { other.take(over: $0) }
        case .goesOn(let other):
            goOn(heard) { moved in
                var moved = moved
                moved.push.lane = other.name
                moved.isMoved = true
                other.admit([moved], parked: [])
            }
        }
        return false
    }

    /// Takes an answer that teaches nothing.
    ///
    /// - Returns: whether the push went back to the lane that it came from.
    @inline(never)
    func ends(_ entry: LaneQueue.Entry, _ answer: Answer) -> Bool {
        guard let heard = end(entry, answer) else { return false }
        goBack(heard)
        return true
    }

    /// Decides what becomes of a push whose answer is recorded.
    ///
    /// - Parameter learned: what the answer has taught.
    func finish(_ heard: LaneState.Heard, learned: [Change]) {
        let moment = moment
        let outcome = accepted(heard.answer, heard.entry, at: moment.now)
        var endsRegistration = false
        change { state, actions in
            state.heed(moment)
            endsRegistration = conclude(heard, learned, outcome, at: moment, &state, &actions)
        }
        if endsRegistration { tellEnd(of: heard.entry, heard.answer) }
    }

    /// Both in one change, for an answer that teaches nothing: nearly every push takes this way and would pay
    /// for a second change.
    ///
    /// - Returns: a push that must end with the answer of the lane that it came from, and has not ended here.
    func end(_ entry: LaneQueue.Entry, _ answer: Answer) -> LaneState.Heard? {
        let (moment, random) = (moment, core.world.random())
        let outcome = accepted(answer, entry, at: moment.now)
        var moved: LaneState.Heard?
        var endsRegistration = false
        change { state, actions in
            let heard = state.heard(
                entry, answer, mayGoOn: false, at: moment, random: random, &actions)
            if heard.endsByFirstWord { return moved = heard }
            endsRegistration = conclude(heard, [], outcome, at: moment, &state, &actions)
        }
        if endsRegistration { tellEnd(of: entry, answer) }
        return moved
    }

    /// The outcome after the protocol's override, counted where it is an acceptance.
    private func accepted(_ answer: Answer, _ entry: LaneQueue.Entry, at now: UnixTime) -> Outcome {
        let outcome = core.override(answer, of: entry.push.instance)
        if outcome.isAccepted { meter.accepted(entry.push, at: now) }
        return outcome
    }

    /// - Returns: whether a registration ends with it.
    private func conclude(
        _ heard: LaneState.Heard, _ learned: [Change], _ outcome: Outcome, at moment: LaneMoment,
        _ state: inout LaneState, _ actions: inout LaneState.Actions
    ) -> Bool {
        let (entry, answer) = (heard.entry, heard.answer)
        var endsRegistration = false
        var event: RegistrationEvent?
        let next = state.answered(
            heard, outcome: outcome, at: moment, limits: core.limits,
            withdrawal: { withdrawal(of: entry, answer, $0) },
            further: { judged in
                endsRegistration = !judged.feedback.isEmpty
                event = judged.event(of: outcome)
                let unlearned = core.unlearned(of: entry.push, judged)
                let proof = proof(of: answer, to: entry.push, at: moment.now)
                // Nearly always nothing, and joining is not free.
                return unlearned.isEmpty && proof.isEmpty ? learned : learned + unlearned + proof
            }, &actions)
        core.observer.attempted?(Attempt(entry.push, answer, outcome, next, at: moment.now))
        if let event, let record = entry.push.record {
            core.observer.counted?(record, event, answer.reason, moment.now)
        }
        return endsRegistration
    }

    private func tellEnd(of entry: LaneQueue.Entry, _ answer: Answer) {
        guard let record = entry.push.record else { return }
        core.observer.registrationEnded(name, record, answer.reason)
    }

    /// Asked once for a push, with the judged meaning of its first answer: a dead token that blames nobody,
    /// for example, is a fault of the configuration. `nil`: it is not withdrawn.
    ///
    /// A push that may have arrived goes on under its id: if it were withdrawn, it would come again under
    /// another.
    private func withdrawal(
        of entry: LaneQueue.Entry, _ answer: Answer, _ judged: Judgement
    ) -> [Change]? {
        // A push that comes from the store or was put off may have been reported as pending by an earlier
        // reply, even of a process that is gone: then it is owed.
        guard entry.isFirst, !entry.hasWaited, entry.push.isDurable, answer.fate != .unknown
        else { return nil }
        switch judged.first {
        case nil, .accepted?, .unregistered?: return nil
        case .retry?, .rejected?, .misconfigured?: return core.firstAttempts.withdrawal(of: entry.push.id)
        }
    }
}
