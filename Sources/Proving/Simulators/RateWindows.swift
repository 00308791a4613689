import PushModel

/// A count and a span.
struct Rate: Sendable, Equatable {
    var count: Int
    var per: Duration
}

/// Counts by name, in windows of simulated time that begin with the first count.
struct RateWindows {
    /// How many names are counted at the same time; if there are more, counting starts again.
    private static let limit = 100_000

    private var windows: [String: (from: UnixTime, count: Int)] = [:]

    init() {}

    /// Counts one; false if it is one too many, which is not counted.
    mutating func allows(_ name: String, _ rate: Rate, now: UnixTime) -> Bool {
        if windows.count >= Self.limit { windows.removeAll() }
        var window = windows[name] ?? (now, 0)
        if now.since(window.from) >= rate.per { window = (now, 0) }
        guard window.count < rate.count else { return false }
        window.count += 1
        windows[name] = window
        return true
    }
}
