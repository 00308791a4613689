import PushModel

/// Records: reading them, and changing them under conditions.
enum RecordSQL {
    static let columns =
        "key, space, owner, address, version, state, state_at, touched_at, expires_at, revision, body"

    /// Whether a record holds in each column what is written there, and does not stand aside. One that does
    /// not is none to every condition, as it is to every question.
    static func isSound(_ row: String) -> String {
        """
        \(row).state BETWEEN 0 AND 2 AND \(row).revision BETWEEN 0 AND \(RowBounds.counts.upperBound)
        AND \(row).state_at >= 0 AND \(row).touched_at >= 0 AND \(row).expires_at >= 0
        AND octet_length(\(row).space) <= \(RowBounds.textBytes)
        AND NOT starts_with(\(row).space, '\(Aside.prefix)')
        AND octet_length(\(row).body) <= \(RowBounds.sealedBytes)
        """
    }

    /// $1 keys, $2 the revisions at which they were read, $3 how the text of that place begins, $4 clock
    /// ahead.
    static let setAside = Statement(
        90,
        """
        UPDATE records r SET space = $3 || left(r.space, \(RowBounds.textBytes / 4)),
        expires_at = \(PostgresSQL.earlier("r.expires_at", than: RowBounds.recordAside, "$4"))
        FROM unnest($1::uuid[], $2::int8[]) AS s(key, revision)
        WHERE \(PostgresSQL.each("r.key", "s.key")) AND r.revision = s.revision
        AND NOT starts_with(r.space, $3)
        """)

    /// The sign behind a colon is a semicolon: one stretch of the index of spaces.
    static let countAside = Statement(
        91, "SELECT count(*) FROM records WHERE space >= 'aside:' AND space < 'aside;'")

    /// The head's revision, or where that cannot be ours the highest of the records'.
    static let lastGiven = """
        CASE WHEN revision BETWEEN 0 AND \(RowBounds.counted.upperBound) THEN revision
        ELSE (SELECT coalesce(max(x.revision), 0) FROM records x
            WHERE x.revision BETWEEN 0 AND \(RowBounds.counted.upperBound)) END
        """

    /// $1 keys.
    static let find = Statement(
        30, "SELECT \(columns) FROM records WHERE key = ANY($1::uuid[])")

    /// $1 space, owner or address, $2 after, $3 now, $4 at most.
    static let pageSpace = Statement(31, page(by: "space"))
    static let pageOwner = Statement(32, page(by: "owner"))
    static let pageAddress = Statement(33, page(by: "address"))

    /// Of what stands in the index of expired records. Versions stand with their highest bit turned over.
    static let isListed =
        "state = 1 AND owner IS NOT NULL AND version > '\(Int64.min)'::int8"

    /// $1 owner, $2 after, $3 expired by, $4 now, $5 at most.
    static let pageExpired = Statement(
        92,
        """
        SELECT \(columns) FROM records
        WHERE owner = $1 AND version > $2 AND \(isListed) AND state_at <= $3 AND expires_at > $4
        ORDER BY version LIMIT $5
        """)

    private static func page(by column: String) -> String {
        """
        SELECT \(columns) FROM records
        WHERE \(column) = $1 AND revision > $2 AND expires_at > $3 ORDER BY revision LIMIT $4
        """
    }

    /// A row for each owner, in order. $1 owners.
    static let tally = Statement(
        85,
        """
        SELECT t.records, t.bytes FROM unnest($1::uuid[]) WITH ORDINALITY AS o(owner, place)
        CROSS JOIN LATERAL (SELECT count(*)::int8 AS records, COALESCE(sum(octet_length(r.body)), 0)::int8
            AS bytes FROM records r WHERE r.owner = o.owner) t ORDER BY o.place
        """)

    /// The same without bytes, which the index of owners can answer alone.
    static let count = Statement(
        93,
        """
        SELECT t.records, 0::int8 FROM unnest($1::uuid[]) WITH ORDINALITY AS o(owner, place)
        CROSS JOIN LATERAL (SELECT count(*)::int8 AS records FROM records r WHERE r.owner = o.owner) t
        ORDER BY o.place
        """)

    /// A transaction that changes records holds this row until the commit. So revisions are committed in the
    /// order in which they are given, and a reader that has seen one will not find a lower one later; and a
    /// condition that was judged still holds when the change is made.
    static let lockRecords = Statement(34, "SELECT revision FROM heads WHERE name = 'records' FOR UPDATE")

    /// Judges a run of changes with distinct keys, and makes them: all or none, or each for itself ($2).
    ///
    /// $1 now, $2 whether each stands for itself, $3 life of an expired record in milliseconds, $4… of each
    /// change: index, kind (0 put, 1 expire, 2 delete), key, condition and its value, columns. Row: the first
    /// index that is refused, or NULL.
    static let change = Statement(
        35,
        """
        WITH step AS MATERIALIZED (
            SELECT * FROM unnest($4::int4[], $5::int2[], $6::uuid[], $7::int2[], $8::int8[], $9::text[],
            $10::uuid[], $11::uuid[], $12::int8[], $13::int2[], $14::int8[], $15::int8[], $16::int8[],
            $17::bytea[])
            AS s(place, kind, key, condition, bound, space, owner, address, version, state, state_at,
            touched_at, expires_at, body)
        ), judged AS MATERIALIZED (
            SELECT s.*, row_number() OVER (ORDER BY s.place) AS turn, CASE s.condition
                WHEN 0 THEN true
                WHEN 1 THEN r.key IS NULL
                WHEN 2 THEN coalesce(r.revision = s.bound, false)
                WHEN 3 THEN coalesce(r.version < s.bound, true)
                WHEN 5 THEN coalesce(r.touched_at <= s.bound, true) AND (s.address IS NULL OR (
                    SELECT w.state = 0 AND w.expires_at > $1 AND \(isSound("w")) FROM records w
                    WHERE \(PostgresSQL.each("w.key", "s.address"))) IS TRUE)
                WHEN 6 THEN r.key IS NULL OR (r.touched_at <= s.bound
                    AND (s.address IS NULL OR r.address IS NOT DISTINCT FROM s.address))
                ELSE coalesce(r.touched_at <= s.bound, true) END AS met
            FROM step s LEFT JOIN records r ON \(PostgresSQL.each("r.key", "s.key")) AND r.expires_at > $1
            AND \(isSound("r"))
        ), verdict AS MATERIALIZED (
            SELECT min(place) FILTER (WHERE NOT met) AS refused, count(*) AS steps FROM judged
        ), made AS MATERIALIZED (
            SELECT j.* FROM judged j, verdict v WHERE j.met AND ($2::bool OR v.refused IS NULL)
        ), head AS (
            UPDATE heads SET revision = \(lastGiven) + (SELECT steps FROM verdict) WHERE name = 'records'
            RETURNING revision
        ), put AS (
            INSERT INTO records (\(columns))
            SELECT m.key, m.space, m.owner, m.address, m.version, m.state, m.state_at, m.touched_at,
            m.expires_at, h.revision - v.steps + m.turn, m.body
            FROM made m, head h, verdict v WHERE m.kind = 0
            ON CONFLICT (key) DO UPDATE SET space = excluded.space, owner = excluded.owner,
            address = excluded.address, version = excluded.version, state = excluded.state,
            state_at = excluded.state_at, touched_at = excluded.touched_at, expires_at = excluded.expires_at,
            revision = excluded.revision, body = excluded.body
        ), expired AS (
            UPDATE records r SET state = 1, state_at = m.state_at, body = ''::bytea,
            expires_at = least(r.expires_at, m.state_at + $3::int8), revision = h.revision - v.steps + m.turn
            FROM made m, head h, verdict v WHERE m.kind = 1 AND \(PostgresSQL.each("r.key", "m.key")) \
            AND r.state = 0 AND \(isSound("r"))
        ), deleted AS (
            DELETE FROM records r USING made m WHERE m.kind = 2 AND \(PostgresSQL.each("r.key", "m.key"))
        )
        SELECT refused FROM verdict
        """)

    /// What went with records that have gone. $1 their keys.
    static let deleteBeside = Statement(
        39,
        """
        DELETE FROM records r USING unnest($1::uuid[]) AS g(key) \
        WHERE \(PostgresSQL.each("r.address", "g.key"))
        """)

    /// $1 before, $2 at most.
    static let purge = Statement(
        37,
        """
        DELETE FROM records WHERE key = ANY(ARRAY(
            SELECT key FROM records WHERE expires_at < $1 AND expires_at < 9223372036854775807 LIMIT $2))
        """)

    /// $1 owner, $2 at most.
    static let forget = Statement(
        38, "DELETE FROM records WHERE key = ANY(ARRAY(SELECT key FROM records WHERE owner = $1 LIMIT $2))")
}
