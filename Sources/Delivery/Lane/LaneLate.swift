import PushModel

/// Answers to requests that were given up (decision 0077).
extension Lane {
    /// Waits for such an answer; its push waits for a repeat, or has ended.
    @inline(never)
    func hearLate(after first: Answer, of entry: LaneQueue.Entry) async {
        // Ends by cancellation too: a lane that stops listens no more.
        guard let late = first.late, let answer = await late.answer() else { return }
        meter.answered(answer)
        if Breaker.provesCredential(answer) { credential.proved(in: name.environment) }
        var (learned, isElsewhere) = ([Change](), false)
        switch await core.learned(from: answer, for: entry) {
        case .nothing: break
        case .change(let change): learned = [change]
        // The repeat finds out whether the address belongs to the other lane.
        case .goesOn, .goesOnInMemory: isElsewhere = true
        }
        let outcome = core.override(answer, of: entry.push.instance)
        let (moment, random) = (moment, core.world.random())
        if outcome.isAccepted { meter.accepted(entry.push, at: moment.now) }
        var endsRegistration = false
        var event: RegistrationEvent?
        change { [learned, isElsewhere] state in
            let (next, actions) = state.heardLate(
                entry, answer, outcome: isElsewhere ? nil : outcome, at: moment, random: random,
                limits: core.limits
            ) { judged in
                endsRegistration = !judged.feedback.isEmpty
                event = judged.event(of: outcome)
                return learned + core.unlearned(of: entry.push, judged)
                    + proof(of: answer, to: entry.push, at: moment.now)
            }
            if let next {
                core.observer.attempted?(Attempt(entry.push, answer, outcome, next, at: moment.now))
            }
            if let event, let record = entry.push.record {
                core.observer.counted?(record, event, answer.reason, moment.now)
            }
            return actions
        }
        if endsRegistration, let record = entry.push.record {
            core.observer.registrationEnded(name, record, answer.reason)
        }
    }
}

extension LaneState {
    /// The answer to a request that was given up. It counts like any other answer; if it ends the push, it
    /// does so wherever the repeat is by now.
    ///
    /// - Parameters:
    ///   - outcome: the answer's after the protocol's override; `nil`: the push is to go on in the pair's
    ///     other lane, which its repeat finds out.
    ///   - random: 64 random bits.
    ///   - further: changes of records that follow from the judgement.
    /// - Returns: what comes of it; `nil` if the repeat goes on.
    mutating func heardLate(
        _ sent: LaneQueue.Entry, _ answer: Answer, outcome: Outcome?, at moment: LaneMoment, random: UInt64,
        limits: DeliveryLimits, further: (Judgement) -> [Change] = { _ in [] }
    ) -> (next: Attempt.Next?, actions: Actions) {
        memory.believe(moment.clock)
        memory.heed(moment.now, moment.instant)
        var entry = sent
        memory.move(&entry)
        var actions = Actions()
        health.note(
            answer, of: entry, others: outcome == nil ? nil : others(answer, entry), isLate: true,
            at: moment, random: random, &actions)
        actions.wakesSender = true
        // A call ended when it was given up.
        guard let outcome, entry.push.pushClass != .urgent else { return (nil, actions) }
        let judged = judge(entry, answer, outcome, at: moment, random: random, limits)
        if case .unregistered = outcome, judged.first == .misconfigured {
            actions.spared = health.newsOfSparing()
        }
        guard judged.step == .settle, !judged.custodyEnds else { return (nil, actions) }
        if let waiting = memory.takeOut(entry.push.id) {
            end(waiting, feedback: judged.feedback + further(judged), &actions)
            return (.ended, actions)
        }
        var ended = entry
        ended.push = lateEnds.underWay(entry.push.id) ?? entry.push
        ended.unwritten = nil
        lateEnds.insert(ended.push)
        // A volatile push is counted where it is met, because it may be under way.
        guard entry.push.isDurable else { return (.ended, actions) }
        end(ended, feedback: judged.feedback + further(judged), &actions)
        return (.ended, actions)
    }

    /// Of pushes that come into memory, those that a late answer has ended meanwhile go no further.
    ///
    /// - Returns: the others.
    mutating func endLate(_ entries: [LaneQueue.Entry], _ actions: inout Actions) -> [LaneQueue.Entry] {
        lateEnds.isEmpty ? entries : entries.filter { !endLate($0, &actions) }
    }

    /// Whether a late answer has ended a push that is met here. It does not go on.
    mutating func endLate(_ entry: LaneQueue.Entry, _ actions: inout Actions) -> Bool {
        switch lateEnds.take(entry.push) {
        case nil: return false
        case .told? where entry.push.isDurable: break
        case .told?, .untold?: end(entry, feedback: [], &actions)
        }
        return true
    }

    private func end(_ entry: LaneQueue.Entry, feedback: [Change], _ actions: inout Actions) {
        guard entry.push.isDurable else {
            actions.volatileEnded += 1
            return
        }
        let settlement = Settlement(entry.push, .settle, first: entry.unwritten)
        actions.settle.append(Settler.Item(settlement, .init(feedback: feedback)))
    }
}
