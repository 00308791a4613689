/// When a connection's prepared statements need new plans.
///
/// A plan that was made for an empty table reads all of an index, and goes on doing so when the table has
/// grown. So plans are made again after a number of exchanges, then after four times as many, and so on, and
/// at the latest after a given time; this costs some milliseconds.
struct QueryPlanAge: Sendable {
    static let firstExchanges = 16
    static let span = Duration.seconds(10)

    private var exchanges = 0
    private var nextAt = QueryPlanAge.firstExchanges
    private var plannedAt: ContinuousClock.Instant

    init(now: ContinuousClock.Instant) { plannedAt = now }

    /// Counts an exchange.
    ///
    /// - Returns: whether plans are to be made anew with it.
    mutating func exchanged(at now: ContinuousClock.Instant) -> Bool {
        exchanges += 1
        let isGrown = exchanges >= nextAt
        guard isGrown || now - plannedAt > Self.span else { return false }
        // By the clock alone nothing grows: a connection lives for years, and a number that was multiplied
        // every ten seconds would be too large for itself within minutes.
        if isGrown { nextAt = exchanges * 4 }
        plannedAt = now
        return true
    }
}
