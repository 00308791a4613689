import Synchronization

/// When a loop looks that has deadlines to watch: regularly while there are any, and seldom while there are
/// none (decision 0145).
///
/// Whoever brings something to look at changes it under its own lock first and calls ``wake()`` then. The
/// loop announces its rest before it asks whether there is anything, under the same lock. So either the loop
/// finds what has come, or it is woken.
package final class RegularLooks: Sendable {
    private struct State {
        var isResting = false
        /// When the last rest was ended by ``RegularLooks/wake()``, until the loop has seen it.
        var wokenAt: ContinuousClock.Instant?
    }

    private let state = Mutex(State())
    /// The same as in `state`, for those who need not take the lock.
    private let isResting = Atomic<Bool>(false)
    private let bell = Bell()
    private let world: World

    package init(_ world: World) { self.world = world }

    /// There may be something to look at from now on. While the loop is awake this costs one load.
    package func wake() {
        guard isResting.load(ordering: .acquiring) else { return }
        let now = world.instant()
        let wakes = state.withLock { state in
            guard state.isResting else { return false }
            state = State(isResting: false, wokenAt: now)
            isResting.store(false, ordering: .releasing)
            return true
        }
        if wakes { bell.ring() }
    }

    /// Waits until the next look, or until the task is cancelled. One loop only may wait.
    ///
    /// - Parameters:
    ///   - span: between looks while there is something to look at, and from ``wake()`` to the first of them.
    ///   - rest: how long the loop may rest at most; `nil`: there is something to look at.
    package func next(every span: Duration, rest: () -> Duration?) async {
        let now = world.instant()
        announce()
        let longest = rest()
        if let longest { await sleep(until: now + longest) }
        let woken = awaken()
        let due = longest == nil ? now + span : woken.map { $0 + span }
        guard let due else { return }
        // Ends early only by cancellation, which ends the loop.
        try? await world.sleep(due)
    }

    private func announce() {
        state.withLock { state in
            state = State(isResting: true)
            isResting.store(true, ordering: .releasing)
        }
    }

    private func awaken() -> ContinuousClock.Instant? {
        state.withLock { state in
            defer { state = State() }
            isResting.store(false, ordering: .releasing)
            return state.wokenAt
        }
    }

    private func sleep(until end: ContinuousClock.Instant) async {
        // A ring that comes late from an earlier rest ends nothing.
        while isResting.load(ordering: .acquiring), world.instant() < end, !Task.isCancelled {
            await bell.wait(until: end, in: world)
        }
    }
}
