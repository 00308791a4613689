import PushModel

/// Notices that the wall clock was set, by comparing it with the monotonic clock, and moves pushes along.
struct WallClock: Sendable {
    /// Smaller steps come from the service that keeps the clock right. They do not add up here, because each
    /// look starts from the last one, and the times of a push are not that exact.
    private static let least = 1_000 * millisecond
    /// In attoseconds, as all spans here.
    private static let millisecond: Int128 = 1_000_000_000_000_000

    /// When it was first looked at. Later moments are kept as spans from there, in attoseconds, which have a
    /// size that the compiler knows and which it can add itself: it is asked twice a push.
    private var first: ContinuousClock.Instant?
    private var last = (now: UnixTime.distantPast, span: Int128(0))
    /// All settings so far.
    private(set) var shift = Duration.zero

    /// Looks at both clocks, ten times a second or more.
    mutating func wasSet(_ now: UnixTime, _ instant: ContinuousClock.Instant) -> Bool {
        guard let first else {
            (first, last) = (instant, (now, 0))
            return false
        }
        let span = first.duration(to: instant).attoseconds
        defer { last = (now, span) }
        // Another thread may have looked a moment later and come before.
        guard span >= last.span else { return false }
        // Of whole milliseconds, which cannot be too many for it.
        let passed = (Int128(now.milliseconds) - Int128(last.now.milliseconds)) * Self.millisecond
        let step = passed - (span - last.span)
        guard step <= -Self.least || step >= Self.least else { return false }
        shift += Duration(attoseconds: step)
        return true
    }

    /// A push that comes now, with times of the present setting.
    func stamped(_ entry: LaneQueue.Entry) -> LaneQueue.Entry {
        var entry = entry
        entry.clockShift = shift
        return entry
    }

    /// Moves the times of a volatile push from an earlier setting of the clock to the present one.
    func move(_ entry: inout LaneQueue.Entry) {
        guard entry.push.isVolatile, entry.clockShift != shift else { return }
        let step = shift - entry.clockShift
        entry.clockShift = shift
        entry.push.notBefore = entry.push.notBefore + step
        entry.push.custodyEnds = entry.push.custodyEnds + step
    }

    /// The same with a copy.
    func moved(_ entry: LaneQueue.Entry) -> LaneQueue.Entry {
        var entry = entry
        move(&entry)
        return entry
    }
}
