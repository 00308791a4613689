import PushModel
import Synchronization

/// Replies that wait for first attempts (docs/architecture.md).
///
/// A waiting reply costs one dictionary entry a push and no task. Deadlines are seen at the core's tick.
final class FirstAttempts: Sendable {
    /// One reply that waits.
    final class Group: Sendable {
        fileprivate struct State {
            var outcomes: [FirstOutcome]
            var remaining: Int
            var continuation: LockedContinuation<[FirstOutcome]?>?
            /// Pushes that are being withdrawn: the reply waits for that commit, beyond its deadline.
            var withdrawn: Set<Int> = []
            var isExpired = false
            var isDone = false
            /// It ended while a push was being withdrawn: only the store knows whether that push is owed.
            var isUnsure = false
            /// ``undoing`` has gone into a withdrawal's commit.
            var isUndone = false

            var told: [FirstOutcome]? { isUnsure ? nil : outcomes }
        }

        fileprivate let state: Mutex<State>
        let deadline: ContinuousClock.Instant
        /// What is changed with its first withdrawal; `nil`: it withdraws nothing.
        private let undoing: [Change]?

        init(count: Int, deadline: ContinuousClock.Instant, undoing: [Change]?) {
            self.deadline = deadline
            self.undoing = undoing
            // One by one, because the library's generic initialiser costs three times as much for a small
            // list.
            var outcomes: [FirstOutcome] = []
            outcomes.reserveCapacity(count)
            for _ in 0..<count { outcomes.append(.pending) }
            state = Mutex(State(outcomes: outcomes, remaining: count, continuation: nil))
        }

        /// Whether a push that fails is withdrawn for its reply.
        var withdraws: Bool { undoing != nil }

        /// Notes an outcome; the last one lets the reply go.
        ///
        /// - Parameter isWithdrawn: for this reply or another's: nothing of the push is owed.
        func note(_ outcome: FirstOutcome, at index: Int, isWithdrawn: Bool = false) {
            finish { state in
                // The set is nearly always empty, and it would hash the element before it finds that out.
                if !state.withdrawn.isEmpty { state.withdrawn.remove(index) }
                // A push that failed and was not withdrawn goes on.
                let goesOn = undoing != nil && !isWithdrawn && outcome.mayGoOn
                state.outcomes[index] = goesOn ? .pending : outcome
                state.remaining -= 1
                return state.remaining == 0 || state.isExpired && state.withdrawn.isEmpty
            }
        }

        /// The deadline has come: outcomes that are not known stay pending, except of pushes that are being
        /// withdrawn.
        func expire() {
            finish { state in
                state.isExpired = true
                return state.withdrawn.isEmpty
            }
        }

        /// Nothing more will be known.
        func end() {
            finish { state in
                state.isUnsure = !state.withdrawn.isEmpty
                return true
            }
        }

        /// - Returns: false when the reply has left, or does not want the push withdrawn.
        fileprivate func withdraw(at index: Int) -> Bool {
            state.withLock { state in
                guard undoing != nil, !state.isDone, !state.isExpired else { return false }
                state.withdrawn.insert(index)
                return true
            }
        }

        /// What is still to be undone, once: with the first push that is withdrawn. A repeat of the call
        /// after that, and before the others are withdrawn, finds their marks.
        func takeUndoing() -> [Change] {
            state.withLock { state in
                defer { state.isUndone = true }
                return state.isUndone ? [] : undoing ?? []
            }
        }

        fileprivate func isWithdrawing(at index: Int) -> Bool {
            state.withLock { $0.withdrawn.contains(index) }
        }

        fileprivate func keep(at index: Int) { state.withLock { _ = $0.withdrawn.remove(index) } }

        fileprivate func waits(at index: Int, _ instant: ContinuousClock.Instant) -> Bool {
            state.withLock { state in
                !state.isDone && (deadline > instant || state.withdrawn.contains(index))
            }
        }

        /// - Returns: `nil`: nothing can be said, neither that a push is owed nor that it failed.
        func wait() async -> [FirstOutcome]? {
            await withLockedContinuation { continuation in
                let done = state.withLock { state -> [FirstOutcome]?? in
                    if state.isDone { return .some(state.told) }
                    state.continuation = continuation
                    return .none
                }
                if let done { continuation.resume(returning: done) }
            }
        }

        private func finish(_ step: (inout State) -> Bool) {
            let ready = state.withLock { state -> (LockedContinuation<[FirstOutcome]?>, [FirstOutcome]?)? in
                guard !state.isDone, step(&state) else { return nil }
                state.isDone = true
                guard let continuation = state.continuation else { return nil }
                state.continuation = nil
                return (continuation, state.told)
            }
            if let ready { ready.0.resume(returning: ready.1) }
        }
    }

    /// Where a push's outcome goes.
    private struct Waiter: Sendable {
        let group: Group
        let index: Int
    }

    private static func note(
        _ outcome: FirstOutcome, _ waiting: Few<Waiter>?, isWithdrawn: Bool = false
    ) {
        for waiter in waiting ?? Few() {
            waiter.group.note(outcome, at: waiter.index, isWithdrawn: isWithdrawn)
        }
    }

    private struct State {
        /// At least one for each push, and nearly always exactly one.
        var waiting: [PushID: Few<Waiter>] = [:]
        /// Groups in the order of arrival. Deadlines differ by protocol, so the whole list is searched.
        var groups: [Group] = []
        /// The last outcomes, for a repeat that asks in the moment between the settling and its own answer.
        var recent: RecentOutcomes
        /// Of these, the pushes that were withdrawn.
        var withdrawn: Set<PushID> = []
        /// Pushes whose withdrawal is on its way to the store.
        var withdrawing: Set<PushID> = []
        /// Pushes that a reply has reported as pending, as many as recent outcomes: these are owed.
        var promised: Set<PushID> = []
        var promisedOrder: Ring<PushID>
        /// Pushes that have ended with their registrations while a reply waits for their withdrawal.
        var ended: Set<PushID> = []
        var isClosed = false

        init(limits: DeliveryLimits) {
            recent = RecentOutcomes(limits.recentOutcomes)
            promisedOrder = Ring(limits.recentOutcomes)
        }
    }

    private let state: Mutex<State>
    private let limits: DeliveryLimits

    init(limits: DeliveryLimits) {
        self.limits = limits
        state = Mutex(State(limits: limits))
    }

    /// `nil` when too many replies wait already, or nobody is left who could answer them.
    func group(count: Int, deadline: ContinuousClock.Instant, undoing: [Change]? = nil) -> Group? {
        state.withLock { state in
            guard !state.isClosed, state.groups.count < limits.waitingReplies else { return nil }
            let group = Group(count: count, deadline: deadline, undoing: undoing)
            state.groups.append(group)
            return group
        }
    }

    /// Lets `group` hear of the first outcome of that push, at once if it is not long ago. What is being
    /// withdrawn is withdrawn for this group too.
    func watch(_ id: PushID, for group: Group, at index: Int) {
        tell(id, to: group, at: index, orWait: true)
    }

    /// Tells `group` the first outcome of that push, if it is not long ago.
    ///
    /// - Returns: whether it is known.
    func tell(_ id: PushID, to group: Group, at index: Int) -> Bool {
        tell(id, to: group, at: index, orWait: false)
    }

    @discardableResult
    private func tell(_ id: PushID, to group: Group, at index: Int, orWait waits: Bool) -> Bool {
        let known = state.withLock { state -> (outcome: FirstOutcome, isWithdrawn: Bool)? in
            // One that ended with its registration is known, and still on its way out of the store.
            if let known = state.recent[id], !state.withdrawing.contains(id) {
                return (known, state.withdrawn.contains(id))
            }
            guard waits else { return nil }
            state.waiting[id, default: Few()].append(Waiter(group: group, index: index))
            if state.withdrawing.contains(id) { _ = group.withdraw(at: index) }
            return nil
        }
        guard let known else { return false }
        group.note(known.outcome, at: index, isWithdrawn: known.isWithdrawn)
        return true
    }

    /// Whether to withdraw a push whose first attempt failed: only if all replies that wait for it want that,
    /// and no reply has reported it as pending, which is a promise. From then on these replies wait for
    /// ``resolve(_:_:)``.
    ///
    /// - Returns: what is to be changed in the same commit; `nil`: it is not withdrawn.
    func withdrawal(of id: PushID) -> [Change]? {
        state.withLock { state in
            guard let waiting = state.waiting[id], !state.promised.contains(id) else { return nil }
            for (at, entry) in waiting.enumerated() where !entry.group.withdraw(at: entry.index) {
                for earlier in waiting[..<at] { earlier.group.keep(at: earlier.index) }
                return nil
            }
            state.withdrawing.insert(id)
            return waiting.flatMap { $0.group.takeUndoing() }
        }
    }

    /// The first outcome of a push is known.
    func resolve(_ id: PushID, _ told: FirstOutcome) {
        var outcome = told
        var isWithdrawn = false
        let waiting = state.withLock { state -> Few<Waiter>? in
            if !state.ended.isEmpty, state.ended.remove(id) != nil { outcome = .known(.rejected) }
            // A push that belonged to another process when the store was told is owed.
            if !state.withdrawing.isEmpty, state.withdrawing.remove(id) != nil, outcome != .pending {
                isWithdrawn = true
                state.withdrawn.insert(id)
            }
            note(outcome, of: id, &state)
            if outcome == .pending { promise(id, &state) }
            return state.waiting.removeValue(forKey: id)
        }
        Self.note(outcome, waiting, isWithdrawn: isWithdrawn)
    }

    /// A push has ended with its registration and will not be sent.
    ///
    /// A reply that waits for its withdrawal keeps waiting, because the change that undoes the call is in
    /// that commit, and a repeat before it would get no answer. The store will then say that the push is not
    /// ours.
    func end(_ id: PushID) {
        let outcome = FirstOutcome.known(.rejected)
        let waiting = state.withLock { state -> Few<Waiter>? in
            note(outcome, of: id, &state)
            guard let waiting = state.waiting.removeValue(forKey: id) else { return nil }
            let isWithdrawing = waiting.contains { $0.group.isWithdrawing(at: $0.index) }
            guard isWithdrawing else { return waiting }
            state.waiting[id] = waiting
            state.ended.insert(id)
            return nil
        }
        Self.note(outcome, waiting)
    }

    private func note(_ outcome: FirstOutcome, of id: PushID, _ state: inout State) {
        // A push that was given up waiting for may still have its first attempt.
        guard let oldest = state.recent.note(outcome, of: id) else { return }
        if !state.withdrawn.isEmpty { state.withdrawn.remove(oldest) }
    }

    /// A reply that does not wait is about to report a push as pending.
    ///
    /// - Returns: false when it must not, for the push is being withdrawn, or was.
    func promise(_ id: PushID) -> Bool {
        state.withLock { state in
            if state.withdrawing.contains(id) || state.withdrawn.contains(id) { return false }
            promise(id, &state)
            return true
        }
    }

    /// A reply leaves that reports it as pending.
    private func promise(_ id: PushID, _ state: inout State) {
        guard state.promised.insert(id).inserted else { return }
        if let oldest = state.promisedOrder.append(id) { state.promised.remove(oldest) }
    }

    /// Releases every reply, because nothing more will be sent.
    func close() {
        let groups = state.withLock { state in
            state.isClosed = true
            (state.waiting, state.ended, state.withdrawing) = ([:], [], [])
            defer { state.groups = [] }
            return state.groups
        }
        for group in groups { group.end() }
    }

    /// Whether replies wait.
    var isWaitedFor: Bool { state.withLock { !$0.groups.isEmpty } }

    /// Lets go of replies whose deadline has come, and of groups that are done.
    func tick(_ instant: ContinuousClock.Instant) {
        state.withLock { state in
            guard state.groups.count > 0 else { return }
            let expired = state.groups.filter { $0.deadline <= instant }
            for group in expired { group.expire() }
            state.groups.removeAll { $0.state.withLock(\.isDone) }
            if !expired.isEmpty {
                for (id, entries) in state.waiting {
                    let kept = entries.filter { $0.group.waits(at: $0.index, instant) }
                    guard kept.count != entries.count else { continue }
                    state.waiting[id] = kept.isEmpty ? nil : Few(kept)
                    promise(id, &state)
                }
            }
        }
    }
}

extension FirstOutcome {
    /// Whether a push with such a first outcome may be sent again.
    fileprivate var mayGoOn: Bool {
        switch self {
        case .known(.retry), .known(.misconfigured): true
        case .known(.accepted), .known(.unregistered), .known(.rejected), .pending, .dropped: false
        }
    }
}
