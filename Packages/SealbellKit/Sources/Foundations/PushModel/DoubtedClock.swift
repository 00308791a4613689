import Synchronization

/// The wall clock checked against a second one, for everything that is deleted by time of day (decision
/// 0050).
///
/// The witness is the store's own last time and, from there on, the spans of the monotonic clock. A wall
/// clock that is further ahead of them than ``tolerance`` is doubted: until it comes back, or an operator
/// confirms it, things end by the witness alone. A clock that is behind deletes nothing too early and need
/// not be doubted.
///
/// A relay that was off for longer than ``tolerance`` cannot be told from one whose clock was set ahead, and
/// is treated in the same way: what it owes is sent, late at worst, and what it remembers stays (decision
/// 0050).
package final class DoubtedClock: Sendable {
    /// Both times of one moment.
    package struct Reading: Sendable, Hashable {
        package var wall: UnixTime
        /// What to end things by: never later than `wall`.
        package var judged: UnixTime
        package var isDoubted: Bool
        /// The latest time that is believed: the store's, where the wall clock is behind it. Never earlier
        /// than `judged`. What another clock has stamped later than this is wrong.
        package var latest: UnixTime

        package init(wall: UnixTime, judged: UnixTime, isDoubted: Bool, latest: UnixTime? = nil) {
            self.wall = wall
            self.judged = judged
            self.isDoubted = isDoubted
            self.latest = max(judged, latest ?? judged)
        }

        /// By how much the wall clock is ahead of what is believed; zero unless it is doubted.
        package var ahead: Duration { isDoubted ? wall.since(judged) : .zero }

        /// A time that this clock has stamped, as it is believed.
        package func believed(_ stamp: UnixTime) -> UnixTime {
            isDoubted && stamp > judged ? min(stamp - ahead, judged) : stamp
        }

        /// The time that tells whether what was stamped then has ended. What the clock in doubt itself has
        /// stamped is judged by it: of the two times the stamp is nearer to the wall's, and not days away
        /// from it. All else is not, such as what the relay took in last before it ended: it came after the
        /// store's last time, which is written once a minute.
        ///
        /// - Parameter end: an end that is no later than the stamp was named by another clock than the
        ///   stamp's, and is never judged by the one in doubt.
        package func end(of stamp: UnixTime, lasting end: UnixTime = .distantFuture) -> UnixTime {
            guard isDoubted else { return wall }
            return end > stamp && wall.since(stamp) < min(ahead / 2, DoubtedClock.ownSpan) ? wall : judged
        }
    }

    /// How far the wall clock may be ahead of its witness, within ``window``: a night off, or an hour set
    /// wrongly, is tolerated; a day would end all custody.
    package static let tolerance = Duration.seconds(6 * 3_600)
    /// How old at most something may be, by a clock in doubt, that is judged by it: twice the usual custody.
    /// What is older lives longer.
    package static let ownSpan = Duration.seconds(48 * 3_600)
    /// The span in which as much is forgiven again.
    package static let window = Duration.seconds(24 * 3_600)

    private struct State {
        /// The latest time that was believed, and when that was.
        var last: UnixTime
        var at: ContinuousClock.Instant
        /// Whether a store is the witness: without one nothing contradicts the wall clock.
        var isWitnessed: Bool
        /// Of the tolerance, at `spentAt`.
        var spent = Duration.zero
        var spentAt: ContinuousClock.Instant
    }

    private let state: Mutex<State>
    private let world: World
    private let step: @Sendable (LastTime) async throws(StoreError) -> UnixTime?

    /// - Parameter last: the store's own last time; `nil`: it has none, and the wall clock is believed until
    ///   ``keep()`` has given it one.
    /// - Parameter step: to the store's own last time.
    package init(
        _ world: World, last: UnixTime? = nil,
        step: @escaping @Sendable (LastTime) async throws(StoreError) -> UnixTime? = { _ in nil }
    ) {
        self.world = world
        self.step = step
        let now = world.instant()
        state = Mutex(
            State(last: last ?? world.now(), at: now, isWitnessed: last != nil, spentAt: now))
    }

    /// Whether a store says when the wall clock is wrong.
    package var isWitnessed: Bool { state.withLock(\.isWitnessed) }

    package var now: Reading { reading(world.now(), world.instant()) }

    /// Both times of a moment that the caller has just asked the world for: lanes do so for each push.
    package func reading(_ wall: UnixTime, _ now: ContinuousClock.Instant) -> Reading {
        state.withLock { state in
            guard state.isWitnessed else {
                (state.last, state.at) = (wall, now)
                return Reading(wall: wall, judged: wall, isDoubted: false)
            }
            let witness = state.last + max(.zero, state.at.duration(to: now))
            let ahead = wall.since(witness)
            guard ahead > .zero else {
                return Reading(wall: wall, judged: wall, isDoubted: false, latest: witness)
            }
            let spent = max(.zero, state.spent - Self.forgiven(in: state.spentAt.duration(to: now)))
            guard ahead <= Self.tolerance - spent else {
                return Reading(wall: wall, judged: witness, isDoubted: true)
            }
            state = State(last: wall, at: now, isWitnessed: true, spent: spent + ahead, spentAt: now)
            return Reading(wall: wall, judged: wall, isDoubted: false)
        }
    }

    private static func forgiven(in span: Duration) -> Duration {
        span >= window ? tolerance : tolerance * (max(.zero, span) / window)
    }

    /// Writes the time that is believed into the store, and reads what other relays believe: an operator's
    /// confirmation at one relay holds for all.
    package func keep() async throws(StoreError) {
        guard let raised = try await step(.raise(now.judged)) else { return }
        state.withLock { state in
            let now = world.instant()
            let witness = state.last + max(.zero, state.at.duration(to: now))
            if raised > witness { (state.last, state.at) = (raised, now) }
            state.isWitnessed = true
        }
    }

    /// An operator's confirmation that the wall clock is right.
    ///
    /// - Returns: the two times as they were.
    @discardableResult
    package func trust() async throws(StoreError) -> Reading {
        let before = now
        // The store first: a confirmation that it did not take would not outlive this process.
        _ = try await step(.set(before.wall))
        state.withLock { state in
            let now = world.instant()
            state = State(last: world.now(), at: now, isWitnessed: state.isWitnessed, spentAt: now)
        }
        return before
    }
}
