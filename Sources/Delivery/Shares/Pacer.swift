import PushModel
import Synchronization

/// When an origin's pushes may leave: a minute's worth at once, and the rest later, in order, at the quota's
/// pace.
///
/// One origin's schedule is three numbers: for each class, when the pace will have caught up with all that is
/// promised to that class and to those above it. So an urgent push waits only for urgent ones, however many
/// messages and removals wait; existing promises stay, and later pushes of a lower class are put off for it
/// (decision 0047).
struct Schedule: Sendable {
    /// Nanoseconds of virtual time, by class.
    private var fullAt = [Int64](repeating: .min, count: PushClass.allCases.count)
    /// When it was begun: a schedule that was dropped and begun again is a different one.
    let begunAt: Int64

    static let minute: Int64 = 60_000_000_000

    init(begunAt: Int64) { self.begunAt = begunAt }

    /// When everything that was promised will have left.
    var endsAt: Int64 { fullAt.last ?? .min }

    /// How long before or after now the pace has room for a push of this class; more than 0: not yet.
    func ahead(_ pushClass: PushClass, at now: Int64) -> Int64 {
        max(fullAt[Int(pushClass.rawValue)], now) - now - Self.minute
    }

    /// Counts these units after everything that is promised.
    mutating func charge(_ units: Int, at now: Int64, interval: Int64) {
        let (span, isOver) = interval.multipliedReportingOverflow(by: Int64(units))
        let last = fullAt.count - 1
        // No call costs more than an hour of its origin's pace.
        fullAt[last] = max(fullAt[last], now) + (isOver ? 60 * Self.minute : min(span, 60 * Self.minute))
    }

    /// From now until one more push of that class might leave.
    func slot(_ pushClass: PushClass, at now: Int64, interval: Int64) -> Int64 {
        max(0, ahead(pushClass, at: now) + interval)
    }

    /// Promises one push.
    ///
    /// - Parameter interval: of the pace.
    mutating func take(_ pushClass: PushClass, at now: Int64, interval: Int64) {
        for level in Int(pushClass.rawValue)..<fullAt.count {
            fullAt[level] = max(fullAt[level], now) + interval
        }
    }

    /// What a call has added to the schedule as it stood before, by class.
    func added(to standing: Schedule, at now: Int64) -> [Int64] {
        zip(fullAt, standing.fullAt).map { $0 - max($1, min(now, $0)) }
    }

    /// Takes back what a call had added if nothing came of it. Later promises keep their slots.
    mutating func giveBack(_ spans: [Int64]) {
        for (level, span) in spans.enumerated() where span > 0 { fullAt[level] -= span }
    }
}

/// The schedules of all origins. In memory only: a restart forgets them, not what they have put off.
final class Pacer: Sendable {
    /// A push as its pace sees it: its class, and how long it is still owed.
    typealias Item = (pushClass: PushClass, custody: Duration)

    /// What happens to a call of which a push is too far ahead of its origin's pace.
    enum Excess: Sendable {
        /// Nothing of it is promised.
        case refusesCall
        /// The rest of it is promised, if there is one.
        case isWithheld
    }

    enum Decision: Sendable, Equatable {
        /// From now until each may leave, in order; and the indices of those to which nothing was promised,
        /// which have none.
        case slots([Duration], withheld: [Int] = [])
        /// Too much waits already; nothing was promised.
        case refused(retryAfter: Duration)
    }

    /// What a call was promised, until it is known whether the store takes it: a call that the store did not
    /// take does not count against its origin's pace.
    struct Promise: Sendable {
        fileprivate struct Part: Sendable {
            /// `nil`: in the schedule that newcomers share.
            let origin: Digest16?
            let begunAt: Int64
            let spans: [Int64]
        }

        fileprivate var parts: [Part] = []

        /// - Parameter standing: the schedule before the call.
        fileprivate mutating func add(
            _ schedule: Schedule, over standing: Schedule, of origin: Digest16?, at time: Int64
        ) {
            let spans = schedule.added(to: standing, at: time)
            guard spans.contains(where: { $0 > 0 }) else { return }
            parts.append(Part(origin: origin, begunAt: schedule.begunAt, spans: spans))
        }
    }

    private struct State {
        var schedules: [Digest16: Schedule] = [:]
        /// For newcomers while there is no room for another schedule.
        var shared = Schedule(begunAt: .min)
        var sweptAt = Int64.min
    }

    private let state = Mutex(State())
    private let limits: DeliveryLimits
    private let start: ContinuousClock.Instant

    init(limits: DeliveryLimits, start: ContinuousClock.Instant) {
        self.limits = limits
        self.start = start
    }

    /// Promises a call of one origin.
    ///
    /// - Parameter perMinute: the pace of this origin at this process, more than 0.
    /// - Parameter promise: what was promised is added to it.
    func take(
        _ pushes: [Item], of origin: Digest16, perMinute: Int, now: ContinuousClock.Instant,
        excess: Excess = .refusesCall, _ promise: inout Promise
    ) -> Decision {
        var tally = tally(of: pushes.count, perMinute: perMinute, now: now)
        return state.withLock { state in
            let isShared = state.schedules[origin] == nil && !makeRoom(&state, tally.time)
            let standing =
                isShared ? state.shared : state.schedules[origin] ?? Schedule(begunAt: tally.time)
            var schedule = standing
            for push in pushes { tally.take(push, from: &schedule, standing) }
            let decision = tally.decision(excess)
            guard case .slots = decision else { return decision }
            promise.add(schedule, over: standing, of: isShared ? nil : origin, at: tally.time)
            if isShared { state.shared = schedule } else { state.schedules[origin] = schedule }
            return decision
        }
    }

    /// Promises a call whose pushes may have several origins: each is put off by its own pace.
    ///
    /// - Parameter origins: of the pushes, in their order.
    func take(
        _ pushes: [Item], of origins: [Digest16], perMinute: Int, now: ContinuousClock.Instant,
        excess: Excess = .refusesCall, _ promise: inout Promise
    ) -> Decision {
        guard let first = origins.first else { return .slots([]) }
        guard origins.contains(where: { $0 != first }) else {
            return take(pushes, of: first, perMinute: perMinute, now: now, excess: excess, &promise)
        }
        var tally = tally(of: pushes.count, perMinute: perMinute, now: now)
        return state.withLock { state in
            var draft = Draft(shared: state.shared)
            for (push, origin) in zip(pushes, origins) {
                if !draft.knows(origin) {
                    let isKnown = state.schedules[origin] != nil
                    let hasRoom = isKnown || makeRoom(&state, tally.time, for: draft.newcomers + 1)
                    draft.enter(origin, state.schedules[origin], hasRoom: hasRoom, at: tally.time)
                }
                draft.take(push, of: origin, in: &tally)
            }
            let decision = tally.decision(excess)
            guard case .slots = decision else { return decision }
            draft.note(in: &promise, at: tally.time)
            state.shared = draft.shared.planned
            for (origin, own) in draft.own { state.schedules[origin] = own.planned }
            return decision
        }
    }

    /// What a call comes to, push by push.
    private struct Tally {
        let time: Int64
        let interval: Int64
        /// How far ahead of its pace an origin may be, and how long a push may be put off.
        let bound: Int64
        let longest: Int64
        private var slots: [Duration] = []
        private var withheld: [Int] = []
        /// Until the last of those withheld could be promised.
        private var wait = Duration.zero

        init(of count: Int, time: Int64, interval: Int64, bound: Int64, longest: Int64) {
            self.time = time
            self.interval = interval
            self.bound = bound
            self.longest = longest
            slots.reserveCapacity(count)
        }

        /// - Parameter standing: the schedule before the call. An origin is judged by it, so that a call
        ///   larger than the bound can be made at all.
        mutating func take(_ push: Item, from schedule: inout Schedule, _ standing: Schedule) {
            let over = standing.ahead(push.pushClass, at: time) - bound
            let span = schedule.slot(push.pushClass, at: time, interval: interval)
            // No push is put off for longer: a longer wait shows a clock that was set back.
            let slot = Duration.nanoseconds(min(span, longest))
            let isInTime = slot == .zero || slot < push.custody
            guard over <= 0, isInTime else {
                wait = max(wait, over > 0 ? .nanoseconds(over) : slot - push.custody + .seconds(1))
                withheld.append(slots.count + withheld.count)
                return
            }
            schedule.take(push.pushClass, at: time, interval: interval)
            slots.append(slot)
        }

        func decision(_ excess: Excess) -> Decision {
            let isRefused = excess == .refusesCall || slots.isEmpty
            return isRefused && !withheld.isEmpty
                ? .refused(retryAfter: wait) : .slots(slots, withheld: withheld)
        }
    }

    private func tally(of count: Int, perMinute: Int, now: ContinuousClock.Instant) -> Tally {
        let interval = max(1, Schedule.minute / Int64(perMinute))
        return Tally(
            of: count, time: nanoseconds(start.duration(to: now)), interval: interval,
            bound: bound(interval), longest: nanoseconds(limits.paceAhead))
    }

    /// Schedules as they would be after a call.
    private struct Draft {
        struct PlannedSchedule {
            let standing: Schedule
            var planned: Schedule

            init(_ standing: Schedule) {
                self.standing = standing
                planned = standing
            }

            mutating func take(_ push: Item, in tally: inout Tally) {
                tally.take(push, from: &planned, standing)
            }
        }

        private(set) var shared: PlannedSchedule
        private(set) var own: [Digest16: PlannedSchedule] = [:]
        /// How many of them have none yet.
        private(set) var newcomers = 0
        private var sharing: Set<Digest16> = []

        init(shared: Schedule) { self.shared = PlannedSchedule(shared) }

        func knows(_ origin: Digest16) -> Bool { own[origin] != nil || sharing.contains(origin) }

        mutating func enter(_ origin: Digest16, _ standing: Schedule?, hasRoom: Bool, at time: Int64) {
            guard hasRoom else {
                sharing.insert(origin)
                return
            }
            if standing == nil { newcomers += 1 }
            own[origin] = PlannedSchedule(standing ?? Schedule(begunAt: time))
        }

        func note(in promise: inout Promise, at time: Int64) {
            promise.add(shared.planned, over: shared.standing, of: nil, at: time)
            for (origin, plan) in own { promise.add(plan.planned, over: plan.standing, of: origin, at: time) }
        }

        mutating func take(_ push: Item, of origin: Digest16, in tally: inout Tally) {
            if own[origin]?.take(push, in: &tally) == nil { shared.take(push, in: &tally) }
        }
    }

    /// Counts work that is not a push against the same pace, after everything that is promised: only pushes
    /// of the lowest class wait for it.
    ///
    /// - Returns: `nil` when it was counted; otherwise nothing was counted, and the same can be asked after
    ///   that span.
    func charge(
        _ units: Int, of origin: Digest16, perMinute: Int, now: ContinuousClock.Instant,
        _ promise: inout Promise
    ) -> Duration? {
        let time = nanoseconds(start.duration(to: now))
        let interval = max(1, Schedule.minute / Int64(perMinute))
        let bound = bound(interval)
        return state.withLock { state in
            let isShared = state.schedules[origin] == nil && !makeRoom(&state, time)
            let standing = isShared ? state.shared : state.schedules[origin] ?? Schedule(begunAt: time)
            // Judged by the schedule before the call, like a call's pushes.
            let over = standing.ahead(.background, at: time) - bound
            guard over <= 0 else { return .nanoseconds(over) }
            var schedule = standing
            schedule.charge(units, at: time, interval: interval)
            promise.add(schedule, over: standing, of: isShared ? nil : origin, at: time)
            if isShared { state.shared = schedule } else { state.schedules[origin] = schedule }
            return nil
        }
    }

    /// Takes back what was promised to a call that was not taken; only once, because the promise is empty
    /// afterwards.
    func giveBack(_ promise: inout Promise) {
        guard !promise.parts.isEmpty else { return }
        let parts = promise.parts
        promise = Promise()
        state.withLock { state in
            for part in parts {
                guard let origin = part.origin else {
                    state.shared.giveBack(part.spans)
                    continue
                }
                // A schedule that was dropped since had no promises left.
                guard state.schedules[origin]?.begunAt == part.begunAt else { continue }
                state.schedules[origin]?.giveBack(part.spans)
            }
        }
    }

    /// How far ahead of its pace an origin may be.
    private func bound(_ interval: Int64) -> Int64 {
        let (most, isOver) = interval.multipliedReportingOverflow(by: Int64(limits.pacedPushes))
        let longest = nanoseconds(limits.paceAhead)
        return isOver ? longest : min(longest, most)
    }

    /// Whether this many more schedules fit, after dropping those that no longer matter; looked at once a
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
/// They are parked in the store, and nothing waits behind them: a lane counts them as its backlog when they
/// are due. Bounded by the seconds of ``DeliveryLimits/paceAhead``.
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
    /// - Parameter within: no push is put off for longer; one that is was put off by a clock that was since
    ///   set back, and is due.
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
