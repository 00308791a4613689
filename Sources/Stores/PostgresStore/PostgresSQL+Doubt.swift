// What is asked of time, and done with what does not open or has gone.
extension PostgresSQL {
    /// Puts pushes that do not open where no claim looks, and frees their marks; where they were.
    ///
    /// $1 owner, $2 ids, $3 epochs, $4 how the text of that place begins.
    static let setAside = Statement(
        42,
        """
        WITH was AS MATERIALIZED (
            SELECT o.id, o.mark, o.lane, o.parked
            FROM unnest($2::uuid[], $3::int8[]) AS s(id, epoch) JOIN outbox o ON \(each("o.id", "s.id"))
            WHERE o.epoch = s.epoch AND o.owner = $1 FOR UPDATE OF o
        ), moved AS (
            UPDATE outbox o SET lane = $4 || w.lane, parked = true, mark = NULL FROM was w
            WHERE \(each("o.id", "w.id")) AND o.owner = $1
        ), released AS (
            DELETE FROM marks m USING was w WHERE \(each("m.mark", "w.mark")) AND m.id = w.id
        )
        SELECT id, lane, parked FROM was
        """)

    /// What went with records that have gone. $1 their keys.
    static let deleteBeside = Statement(
        39,
        """
        DELETE FROM records r USING unnest($1::uuid[]) AS g(key) WHERE \(each("r.address", "g.key"))
        """)

    /// The later of two times, which are written so that they compare as bytes. $1 name, $2 value.
    static let raiseSetting = Statement(
        43,
        """
        INSERT INTO settings AS s (name, value) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET value = greatest(s.value, excluded.value) RETURNING value
        """)

    /// The newest times in a store that an earlier version wrote: once in its life it reads every record.
    static let newestRows = Statement(
        once: """
            SELECT coalesce(greatest((SELECT max(touched_at) FROM records),
            (SELECT max(minute)::int8 * 60000 FROM marks)), 0),
            (SELECT id FROM outbox ORDER BY id DESC LIMIT 1)
            """)

    /// The server's clock, when the server was started, and what was noted of it last. $1 clock ahead,
    /// $2 the note's name.
    static let sightOfServer = Statement(
        44,
        """
        SELECT \(clock("$1")), (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::int8,
        (SELECT value FROM settings WHERE name = $2)
        """)
}
