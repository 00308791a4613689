import PushModel

/// Tells when the wall clock was set, by the monotonic one beside it, and moves pushes along.
struct WallClock: Sendable {
    /// Smaller steps are the work of whatever keeps the clock right; they add up to nothing here, since each
    /// look begins anew, and moments of a push are not that exact.
    private static let least = Duration.seconds(1)

    private var last: (now: UnixTime, instant: ContinuousClock.Instant)?
    /// All settings so far.
    private(set) var shift = Duration.zero

    /// Looks at both clocks, ten times a second or more.
    mutating func wasSet(_ now: UnixTime, _ instant: ContinuousClock.Instant) -> Bool {
        defer { last = (now, instant) }
        // Another thread may have looked a moment later and come before.
        guard let last, instant >= last.instant else { return false }
        let step = now.since(last.now) - last.instant.duration(to: instant)
        guard step <= .zero - Self.least || step >= Self.least else { return false }
        shift += step
        return true
    }

    /// A push that comes now, with times of now.
    func stamped(_ entry: LaneQueue.Entry) -> LaneQueue.Entry {
        var entry = entry
        entry.clockShift = shift
        return entry
    }

    /// A volatile push whose times are of an earlier setting.
    func moved(_ entry: LaneQueue.Entry) -> LaneQueue.Entry {
        let step = shift - entry.clockShift
        guard entry.push.custody == .volatile, step != .zero else { return entry }
        var entry = entry
        entry.clockShift = shift
        entry.push.notBefore = entry.push.notBefore + step
        entry.push.custodyEnds = entry.push.custodyEnds + step
        return entry
    }
}
