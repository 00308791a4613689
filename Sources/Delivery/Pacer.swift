import PushModel
import Synchronization

/// When an origin's pushes may leave: a minute's worth at once, and what exceeds it later, in turn, at the
/// quota's pace.
///
/// One origin's schedule is three numbers: for each class, when the pace will have caught up with all that is
/// promised to that class and to those above it. So an urgent push waits for urgent ones only, whatever
/// stands before it of messages and removals; what is promised already stays where it is, and what comes
/// later of a lower class is put off for it (decision 0047).
struct Schedule: Sendable {
    /// Nanoseconds of virtual time, by class.
    private var fullAt = [Int64](repeating: .min, count: PushClass.allCases.count)

    static let minute: Int64 = 60_000_000_000

    /// When everything that was promised will have left.
    var endsAt: Int64 { fullAt.last ?? .min }

    /// How long before now or behind it the pace has room for a push of that class; more than 0: not yet.
    func ahead(_ pushClass: PushClass, at now: Int64) -> Int64 {
        max(fullAt[Int(pushClass.rawValue)], now) - now - Self.minute
    }

    /// Counts so many units behind everything that is promised.
    mutating func charge(_ units: Int, at now: Int64, interval: Int64) {
        let (span, isOver) = interval.multipliedReportingOverflow(by: Int64(units))
        let last = fullAt.count - 1
        // No call costs more than an hour of its origin's pace.
        fullAt[last] = max(fullAt[last], now) + (isOver ? 60 * Self.minute : min(span, 60 * Self.minute))
    }

    /// Promises one push.
    ///
    /// - Parameter interval: of the pace.
    /// - Returns: from now until it may leave.
    mutating func take(_ pushClass: PushClass, at now: Int64, interval: Int64) -> Int64 {
        for level in Int(pushClass.rawValue)..<fullAt.count {
            fullAt[level] = max(fullAt[level], now) + interval
        }
        return max(0, ahead(pushClass, at: now))
    }
}

/// The schedules of all origins. In memory only: a restart forgets them, not what they have put off.
final class Pacer: Sendable {
    enum Decision: Sendable, Equatable {
        /// From now until each may leave, in order.
        case slots([Duration])
        /// Too much waits already; nothing was promised.
        case refused(retryAfter: Duration)
    }

    private struct State {
        var schedules: [Digest16: Schedule] = [:]
        /// For newcomers while there is no room for one more.
        var shared = Schedule()
        var sweptAt = Int64.min
    }

    private let state = Mutex(State())
    private let limits: DeliveryLimits
    private let start: ContinuousClock.Instant

    init(limits: DeliveryLimits, start: ContinuousClock.Instant) {
        self.limits = limits
        self.start = start
    }

    /// Promises a whole call, or nothing.
    ///
    /// - Parameter pushes: class, and how long each is owed from now on.
    /// - Parameter perMinute: the pace of this origin at this process, more than 0.
    func take(
        _ pushes: [(pushClass: PushClass, custody: Duration)], of origin: Digest16, perMinute: Int,
        now: ContinuousClock.Instant
    ) -> Decision {
        let time = nanoseconds(start.duration(to: now))
        let interval = max(1, Schedule.minute / Int64(perMinute))
        let longest = nanoseconds(limits.paceAhead)
        let bound = bound(interval)
        return state.withLock { state in
            let isShared = state.schedules[origin] == nil && !makeRoom(&state, time)
            var schedule = isShared ? state.shared : state.schedules[origin] ?? Schedule()
            var slots: [Duration] = []
            slots.reserveCapacity(pushes.count)
            // Judged by what stood before the call, so that a call larger than the bound can be made at all.
            let over = pushes.map { schedule.ahead($0.pushClass, at: time) - bound }.max() ?? 0
            guard over <= 0 else { return .refused(retryAfter: .nanoseconds(over)) }
            for push in pushes {
                let span = schedule.take(push.pushClass, at: time, interval: interval)
                // Nothing is put off for longer: a clock that was set back is known by that.
                let slot = Duration.nanoseconds(min(span, longest))
                guard slot == .zero || slot < push.custody else {
                    return .refused(retryAfter: slot - push.custody + .seconds(1))
                }
                slots.append(slot)
            }
            if isShared { state.shared = schedule } else { state.schedules[origin] = schedule }
            return .slots(slots)
        }
    }

    /// Promises a whole call whose pushes have several origins, or nothing: each is put off by its own pace,
    /// and one that is too far ahead refuses the call.
    ///
    /// - Parameter origins: of the pushes, in their order.
    func take(
        _ pushes: [(pushClass: PushClass, custody: Duration)], of origins: [Digest16], perMinute: Int,
        now: ContinuousClock.Instant
    ) -> Decision {
        guard let first = origins.first, origins.contains(where: { $0 != first }) else {
            return origins.first.map { take(pushes, of: $0, perMinute: perMinute, now: now) } ?? .slots([])
        }
        let time = nanoseconds(start.duration(to: now))
        let interval = max(1, Schedule.minute / Int64(perMinute))
        let longest = nanoseconds(limits.paceAhead)
        let bound = bound(interval)
        return state.withLock { state in
            var draft = Draft(shared: state.shared)
            var over: Int64 = 0
            for (push, origin) in zip(pushes, origins) {
                if !draft.knows(origin) {
                    let isKnown = state.schedules[origin] != nil
                    let hasRoom = isKnown || makeRoom(&state, time, for: draft.newcomers + 1)
                    draft.enter(origin, state.schedules[origin], hasRoom: hasRoom)
                }
                // Judged by what stood before the call.
                over = max(over, draft.schedule(of: origin).ahead(push.pushClass, at: time) - bound)
            }
            guard over <= 0 else { return .refused(retryAfter: .nanoseconds(over)) }
            var slots: [Duration] = []
            slots.reserveCapacity(pushes.count)
            for (push, origin) in zip(pushes, origins) {
                let span = draft.take(push.pushClass, of: origin, at: time, interval: interval)
                let slot = Duration.nanoseconds(min(span, longest))
                guard slot == .zero || slot < push.custody else {
                    return .refused(retryAfter: slot - push.custody + .seconds(1))
                }
                slots.append(slot)
            }
            state.shared = draft.shared
            state.schedules.merge(draft.own) { $1 }
            return .slots(slots)
        }
    }

    /// Schedules as they would be after a call.
    private struct Draft {
        private(set) var shared: Schedule
        private(set) var own: [Digest16: Schedule] = [:]
        /// How many of them have none yet.
        private(set) var newcomers = 0
        private var sharing: Set<Digest16> = []

        init(shared: Schedule) { self.shared = shared }

        func knows(_ origin: Digest16) -> Bool { own[origin] != nil || sharing.contains(origin) }

        mutating func enter(_ origin: Digest16, _ standing: Schedule?, hasRoom: Bool) {
            guard hasRoom else {
                sharing.insert(origin)
                return
            }
            if standing == nil { newcomers += 1 }
            own[origin] = standing ?? Schedule()
        }

        func schedule(of origin: Digest16) -> Schedule { own[origin] ?? shared }

        mutating func take(
            _ pushClass: PushClass, of origin: Digest16, at time: Int64, interval: Int64
        ) -> Int64 {
            own[origin]?.take(pushClass, at: time, interval: interval)
                ?? shared.take(pushClass, at: time, interval: interval)
        }
    }

    /// Counts what is no push against the same pace, behind everything that is promised: no push but those of
    /// the lowest class waits for it.
    ///
    /// - Returns: `nil` when it was counted; else nothing was, and what was asked for can be after that span.
    func charge(
        _ units: Int, of origin: Digest16, perMinute: Int, now: ContinuousClock.Instant
    ) -> Duration? {
        let time = nanoseconds(start.duration(to: now))
        let interval = max(1, Schedule.minute / Int64(perMinute))
        let bound = bound(interval)
        return state.withLock { state in
            let isShared = state.schedules[origin] == nil && !makeRoom(&state, time)
            var schedule = isShared ? state.shared : state.schedules[origin] ?? Schedule()
            // Judged by what stood before, as a call's pushes are.
            let over = schedule.ahead(.background, at: time) - bound
            guard over <= 0 else { return .nanoseconds(over) }
            schedule.charge(units, at: time, interval: interval)
            if isShared { state.shared = schedule } else { state.schedules[origin] = schedule }
            return nil
        }
    }

    /// How far ahead of its pace an origin may be.
    private func bound(_ interval: Int64) -> Int64 {
        let (most, isOver) = interval.multipliedReportingOverflow(by: Int64(limits.pacedPushes))
        let longest = nanoseconds(limits.paceAhead)
        return isOver ? longest : min(longest, most)
    }

    /// Whether so many more schedules fit, after dropping those that say nothing any more; looked at once a
    /// second at most.
    private func makeRoom(_ state: inout State, _ time: Int64, for count: Int = 1) -> Bool {
        if state.schedules.count + count <= limits.pacedOrigins { return true }
        guard time - 1_000_000_000 >= state.sweptAt else { return false }
        state.sweptAt = time
        state.schedules = state.schedules.filter { $0.value.endsAt > time }
        return state.schedules.count + count <= limits.pacedOrigins
    }

    private func nanoseconds(_ span: Duration) -> Int64 {
        let parts = span.components
        return parts.seconds * 1_000_000_000 + parts.attoseconds / 1_000_000_000
    }
}

/// How many pushes of a lane the pace has put off, by the second in which they may leave.
///
/// They stand in the store as parked, and nobody waits behind them: a lane counts them as its own backlog
/// when they are due. Bounded by the seconds of ``DeliveryLimits/paceAhead``.
struct PutOff: Sendable {
    private struct Place: Hashable {
        var second: Int64
        var pushClass: PushClass
    }

    private var counts: [Place: Int] = [:]
    private(set) var total = 0

    mutating func add(_ pushClass: PushClass, due: UnixTime) {
        counts[Place(second: due.seconds, pushClass: pushClass), default: 0] += 1
        total += 1
    }

    /// Takes out what is due, by class.
    ///
    /// - Parameter within: nothing is put off for longer; what is was put off by a clock that has been set
    ///   back since, and is due.
    mutating func take(upTo now: UnixTime, within: Duration) -> [PushClass: Int] {
        guard total > 0 else { return [:] }
        var due: [PushClass: Int] = [:]
        let (first, last) = (now.seconds, (now + within).seconds)
        for (place, count) in counts where place.second <= first || place.second > last {
            due[place.pushClass, default: 0] += count
            counts[place] = nil
            total -= count
        }
        return due
    }
}
