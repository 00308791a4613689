import PushModel

/// Replies to calls whose commits stand.
extension Intake {
    /// First attempts that a reply waits for.
    private struct FirstWait {
        /// What is known already; all of it where no group waits.
        var outcomes: [FirstOutcome] = []
        var group: FirstAttempts.Group?
        /// What is undone when one has failed; `nil`: nothing.
        var undoing: [Change]?
    }

    /// Hands the pushes of a commit over to their lanes, and waits for what the reply tells of them.
    ///
    /// - Parameter stay: the call's; `nil`: it has waited for nothing.
    /// - Throws: `.overloaded` if the process stops while a push is being withdrawn: then the reply may say
    ///   neither that it is owed nor that it failed, and a repeat finds out.
    func outcomes(
        _ wait: ReplyWait, _ taken: Taken, in stay: Stay?
    ) async throws(Untaken) -> [FirstOutcome] {
        var first = firstWait(wait, taken, in: stay)
        if let group = first.group {
            guard let told = await group.wait() else { throw .overloaded }
            first.outcomes = told
        }
        if let undoing = first.undoing, first.outcomes.contains(where: \.isFailure) {
            let rest = first.group.flatMap { group in
                stay.map { Stay(until: min(group.deadline, $0.until), bytes: $0.bytes) }
            }
            await undo(first.group?.takeUndoing() ?? undoing, in: rest)
        }
        return first.outcomes
    }

    /// Undoes the call if no withdrawal has done so: no push was withdrawn, but no app serves a push, or a
    /// push is the repeat of one that has already failed.
    ///
    /// It is tried again while the store is out for a moment, for as long as the reply may wait: without it
    /// the same bytes are met with silence for good.
    ///
    /// - Parameter rest: what is left of the reply's wait; `nil`: it waits for nothing.
    func undo(_ changes: [Change], in rest: Stay?) async {
        guard !changes.isEmpty else { return }
        do throws(StoreError) { _ = try await core.registry.apply(changes) } catch {
            core.observer.refused(error)
            guard let rest else { return }
            do throws(StoreError) {
                _ = try await hold(rest, after: error, while: { $0.retry == .later }) {
                    () throws(StoreError) in
                    try await core.registry.apply(changes)
                }
            } catch {
                // The peer hears of the failure in any case; a call with other bytes is taken without this.
                core.observer.refused(error)
            }
        }
    }

    /// Hands the pushes over to their lanes.
    private func firstWait(_ reply: ReplyWait, _ taken: Taken, in stay: Stay?) -> FirstWait {
        guard case .firstAttempts(let deadline, let undoing) = reply else {
            handOver(taken)
            return FirstWait()
        }
        let now = core.world.instant()
        // The time for which the call was held is subtracted from the time for which its reply may wait.
        let wait =
            stay.map { core.limits.hold > .zero ? min(deadline, $0.until - now) : deadline } ?? deadline
        let group =
            taken.places.isEmpty
            ? nil
            : core.firstAttempts.group(count: taken.places.count, deadline: now + wait, undoing: undoing)
        guard let group else {
            // Before the lane has them, because they must not be withdrawn for a repeat that waits.
            let outcomes = unwaited(taken, withdraws: undoing != nil)
            handOver(taken)
            return FirstWait(outcomes: outcomes, undoing: undoing)
        }
        // A call of nothing but repeats gives no lane anything that would wake the tick.
        core.ticks.wake()
        // Watched before the lane has the push, so that no answer can come too early.
        taken.forEach { index, place, admission in
            watch(admission, at: index, of: place, in: group, deadline: wait)
        }
        handOver(taken)
        return FirstWait(group: group, undoing: undoing)
    }

    /// The outcomes of a reply that waits for nothing.
    private func unwaited(_ taken: Taken, withdraws: Bool) -> [FirstOutcome] {
        var outcomes: [FirstOutcome] = []
        taken.forEach { _, place, admission in
            let id: PushID? =
                switch admission {
                case .owed(let push)?: push.id
                case .repeated(let id, nil)?: id
                case .repeated?, .gone?, nil: nil
                }
            if withdraws, let id, !core.firstAttempts.promise(id) {
                outcomes.append(.known(.retry))
            } else {
                outcomes.append(place.lane == nil ? .dropped : .pending)
            }
        }
        return outcomes
    }

    /// No reply waits for a push that is put off, nor for the repeat of one that would be.
    private func watch(
        _ admission: Admission?, at index: Int, of place: Place, in group: FirstAttempts.Group,
        deadline: Duration
    ) {
        let wait = place.notBefore == nil ? place.lane?.expectedWait() : nil
        switch admission {
        case nil: group.note(.dropped, at: index)
        case .gone?: group.note(.known(.rejected), at: index)
        case .repeated(_, let first?)?: group.note(.known(first), at: index)
        case .repeated(let id, nil)?:
            if !core.firstAttempts.tell(id, to: group, at: index) {
                watch(id, in: wait, at: index, group, deadline)
            }
        case .owed(let push)?:
            watch(push.id, in: place.parked ? nil : wait, at: index, group, deadline)
        }
    }

    /// No reply waits for a lane that is halted or too far behind.
    private func watch(
        _ id: PushID, in wait: Duration?, at index: Int, _ group: FirstAttempts.Group, _ deadline: Duration
    ) {
        if wait.map({ $0 < deadline }) ?? false || group.withdraws && !core.firstAttempts.promise(id) {
            core.firstAttempts.watch(id, for: group, at: index)
        } else {
            group.note(.pending, at: index)
        }
    }
}
