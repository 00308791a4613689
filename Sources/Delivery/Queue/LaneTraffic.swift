import PushModel

/// What a lane has under way, and how fast its answers come. A value.
struct LaneTraffic: Sendable {
    private(set) var underWay = 0
    private var volatileUnderWay = 0
    /// Answers per second, smoothed, for the estimate of a wait.
    private var rate = 0.0
    private var answersInTick = 0

    /// Whether a durable push has left the queue whose settlement the settler has not got yet.
    var hasDurable: Bool { underWay > volatileUnderWay }
    var hasVolatile: Bool { volatileUnderWay != 0 }

    mutating func sent(_ custody: Custody) {
        underWay += 1
        if case .volatile = custody { volatileUnderWay += 1 }
    }

    mutating func answered(_ custody: Custody) {
        underWay -= 1
        answersInTick += 1
        if case .volatile = custody { volatileUnderWay -= 1 }
    }

    /// - Parameter isBehind: something waits. Only then does the rate show the lane's speed; otherwise it
    ///   shows how many pushes came.
    mutating func tick(seconds: Double, isBehind: Bool) {
        let present = Double(answersInTick) / seconds
        rate = isBehind ? rate * 0.8 + present * 0.2 : max(rate, present)
        answersInTick = 0
    }

    /// How long a push would wait behind this many others; `nil` if unknown.
    func wait(behind ahead: Int, atMost longest: Duration) -> Duration? {
        if ahead <= 1_000 { return .zero }
        guard rate > 0 else { return nil }
        // The rate of a lane without answers approaches zero.
        let seconds = Double(ahead) / rate
        return seconds < Double(longest.components.seconds) ? .seconds(seconds) : longest
    }
}
