/// An operator's questions: nothing is written.
enum InspectionSQL {
    /// $1 id.
    static let owed = Statement(
        50,
        """
        SELECT lane, class, touched_at, not_before, custody_ends, attempt, epoch, parked FROM outbox
        WHERE id = $1
        """)

    /// $1 an id that is not newer.
    static let oldest = Statement(51, "SELECT id FROM outbox WHERE id >= $1 ORDER BY id LIMIT 1")

    /// Which tables there are. An inspection's: no name in it has to be there.
    static let tables = Statement(
        52, "SELECT to_regclass('migrations') IS NOT NULL, to_regclass('outbox') IS NOT NULL")

    static let checks = Statement(
        53, "SELECT name, value FROM settings WHERE name LIKE 'check/%' ORDER BY name LIMIT 2000")

    static let owedByLane = Statement(
        54, "SELECT lane, count(*), coalesce(sum(octet_length(sealed)), 0)::int8 FROM outbox GROUP BY lane")
}
