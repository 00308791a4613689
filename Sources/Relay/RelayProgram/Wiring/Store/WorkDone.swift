/// How far long work is, for whoever waits for it.
struct WorkDone: Sendable, Hashable {
    /// Of what is counted.
    enum Whole: Sendable, Hashable {
        case unknown
        case rows(Int)
        /// The part that is done, 0 up to 1, where nobody has counted the whole.
        case share(Double)
    }

    var count: Int
    /// What was done to how many of what: "records copied".
    var words: String
    var whole = Whole.unknown

    /// `1000 of 2500 records copied, 40 %`
    var line: String {
        switch whole {
        case .unknown: "\(count) \(words)"
        case .share(let share): "\(count) \(words), \(Self.percent(share)) %"
        // More may have come since the whole was counted.
        case .rows(let rows) where count > rows: "\(count) \(words)"
        case .rows(let rows):
            "\(count) of \(rows) \(words), \(Self.percent(rows == 0 ? 1 : Double(count) / Double(rows))) %"
        }
    }

    /// Rounded down: nothing is whole before it is.
    private static func percent(_ share: Double) -> Int { Int(max(0, min(1, share)) * 100) }
}
