import PushModel

/// The same judgement as SQL's typed readers make, for statements that look at many rows.
enum SQLiteSoundness {
    /// Whether a push's row holds in each column what is written there. Never NULL.
    static let push = [
        "seq BETWEEN 1 AND \(RowBounds.counts.upperBound)", digest("id"), text("lane"),
        integer("class", 0...Int64(PushClass.background.rawValue)), digest("origin"),
        digest("record", orNull: true), digest("address", orNull: true),
        integer("touched_at", RowBounds.times), integer("not_before", RowBounds.times),
        integer("custody_ends", RowBounds.times), integer("attempt", RowBounds.attempts), digest("owner"),
        integer("epoch", RowBounds.counts), integer("parked", 0...1), digest("mark", orNull: true),
        "typeof(sealed) = 'blob' AND length(sealed) <= \(RowBounds.sealedBytes)"
    ].map { "(\($0))" }.joined(separator: " AND ")

    /// Whether it stands where such rows are put.
    static let isAside = """
        (typeof(lane) = 'text' AND substr(lane, 1, \(Aside.prefix.utf8.count)) = '\(Aside.prefix)' \
        AND \(integer("parked", 1...1)) AND \(integer("custody_ends", RowBounds.times)))
        """

    /// Puts a row aside: whatever its columns hold, it waits there until its custody ends, or as long as the
    /// longest lasts. Binds an owner and that end; which rows, follows.
    static let putAside = """
        UPDATE outbox SET lane = '\(Aside.prefix)' || CASE WHEN typeof(lane) = 'text' \
        THEN substr(lane, 1, \(RowBounds.textBytes - 64)) ELSE '' END, parked = 1, mark = NULL, owner = ?,
        custody_ends = \(earlier("custody_ends"))
        """

    /// The time in a column, but none that is later than one that is bound twice.
    static func earlier(_ column: String) -> String {
        "CASE WHEN \(integer(column, RowBounds.times)) THEN min(\(column), ?) ELSE ? END"
    }

    /// One more than a number of ours; of one that cannot be ours, the first.
    static let raisedEpoch = "CASE WHEN \(integer("epoch", RowBounds.counts)) THEN epoch + 1 ELSE 1 END"

    private static func integer(_ column: String, _ range: ClosedRange<Int64>) -> String {
        "typeof(\(column)) = 'integer' AND \(column) BETWEEN \(range.lowerBound) AND \(range.upperBound)"
    }

    private static func digest(_ column: String, orNull: Bool = false) -> String {
        (orNull ? "\(column) IS NULL OR " : "") + "typeof(\(column)) = 'blob' AND length(\(column)) = 16"
    }

    private static func text(_ column: String) -> String {
        "typeof(\(column)) = 'text' AND length(\(column)) <= \(RowBounds.textBytes)"
    }
}
