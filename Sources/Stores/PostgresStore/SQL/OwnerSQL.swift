/// Who is alive, and whose each push is.
enum OwnerSQL {
    /// The server's clock, when the server was started, and what was noted of it last. $1 clock ahead,
    /// $2 the note's name.
    static let sightOfServer = Statement(
        44,
        """
        SELECT \(PostgresSQL.clock("$1")), (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::int8,
        (SELECT value FROM settings WHERE name = $2)
        """)

    /// Declares this process alive, and says what it owes; what the others owe, how many live, and whether
    /// this one lived until now, NULL when nobody knew of it. $1 owner, $2 clock ahead, $3 span in
    /// milliseconds, $4 rows, $5 bytes.
    static let renew = Statement(
        17,
        """
        WITH before AS MATERIALIZED (
            SELECT \(PostgresSQL.lives("b.alive_until", "$2")) AS lived FROM owners b WHERE b.owner = $1
        ), mine AS (
            INSERT INTO owners (owner, alive_until, rows, bytes)
            VALUES ($1, \(PostgresSQL.clock("$2")) + $3::int8, $4, $5)
            ON CONFLICT (owner) DO UPDATE
            SET alive_until = excluded.alive_until, rows = excluded.rows, bytes = excluded.bytes
        )
        SELECT coalesce(sum(\(PostgresSQL.owed("rows"))), 0)::int8,
        coalesce(sum(\(PostgresSQL.owed("bytes"))), 0)::int8,
        count(*) FILTER (WHERE \(PostgresSQL.lives("alive_until", "$2"))), (SELECT lived FROM before)
        FROM owners WHERE owner <> $1
        """)

    /// $1 owner.
    static let owedByOthers = Statement(
        18,
        """
        SELECT coalesce(sum(\(PostgresSQL.owed("rows"))), 0)::int8,
        coalesce(sum(\(PostgresSQL.owed("bytes"))), 0)::int8 FROM owners WHERE owner <> $1
        """)

    /// Gives up a lease: what is still owed is free at once, whatever any clock says. $1 owner, $2 rows,
    /// $3 bytes.
    static let giveUp = Statement(
        19, "UPDATE owners SET alive_until = 0, rows = $2, bytes = $3 WHERE owner = $1")

    /// Counts what an owner has: of each lane the rows, their bytes, and how many are parked. $1 owner.
    static let count = Statement(
        20,
        """
        SELECT lane, count(*), sum(octet_length(sealed))::int8, count(*) FILTER (WHERE parked) FROM (
            SELECT lane, sealed, parked FROM outbox WHERE owner = $1 AND parked
            UNION ALL SELECT lane, sealed, parked FROM outbox WHERE owner = $1 AND NOT parked) o
        GROUP BY lane
        """)

    /// $1 owner, $2 clock ahead.
    static let livingOwners = Statement(
        75,
        "SELECT owner FROM owners WHERE owner <> $1 AND \(PostgresSQL.lives("alive_until", "$2"))")

    /// Leaves all groups but these, and forgets members that ended long ago. $1 owner, $2 clock ahead,
    /// $3 groups, $4 life of an ended one in milliseconds.
    static let leave = Statement(
        28,
        """
        WITH old AS MATERIALIZED (
            SELECT m.owner, m.grp FROM members m
            WHERE \(PostgresSQL.lease("m.alive_until", "$2")) <= \(PostgresSQL.clock("$2")) - $4::int8
            FOR UPDATE SKIP LOCKED
        ), gone AS (
            DELETE FROM members m USING old o WHERE m.owner = o.owner AND m.grp = o.grp
        )
        UPDATE members m SET alive_until = t.now, has_left = true \
        FROM (SELECT \(PostgresSQL.clock("$2")) AS now) t
        WHERE m.owner = $1 AND NOT m.grp = ANY($3::text[]) AND NOT m.has_left AND m.alive_until > t.now
        """)

    /// Who was alive stays since it joined. $1 owner, $2 clock ahead, $3 groups, $4 span in milliseconds.
    /// Rows: owner, group, how long ago it joined and how long it lives yet in milliseconds, whether it left.
    static let enrol = Statement(
        29,
        """
        WITH t AS MATERIALIZED (SELECT \(PostgresSQL.clock("$2")) AS now), ours AS (
            INSERT INTO members AS m (owner, grp, joined, alive_until, has_left)
            SELECT $1, g.grp, t.now, t.now + $4::int8, false FROM t, unnest($3::text[]) AS g(grp)
            ORDER BY g.grp
            ON CONFLICT (owner, grp) DO UPDATE SET
            joined = CASE WHEN m.has_left OR m.alive_until <= excluded.joined
            THEN excluded.joined ELSE m.joined END, alive_until = excluded.alive_until, has_left = false
            RETURNING m.owner, m.grp, m.joined, m.alive_until, m.has_left
        ), told AS (
            SELECT owner, grp, joined, alive_until, has_left FROM ours
            UNION ALL SELECT m.owner, m.grp, m.joined, m.alive_until, m.has_left FROM members m
            WHERE m.owner <> $1 AND m.grp = ANY($3::text[])
        )
        SELECT told.owner, told.grp, t.now - \(PostgresSQL.bounded("told.joined")),
        \(PostgresSQL.bounded(PostgresSQL.lease("told.alive_until", "$2"))) - t.now, told.has_left
        FROM told, t
        """)

    /// Pushes of the dead become ours, parked, with a raised epoch. Rows that another process is just taking
    /// are passed over, so that several share the work and none is taken twice.
    ///
    /// $1 owner, $2 clock ahead, $3 at most, $4 lanes. Rows: lane, size, owner before.
    static let takeOverInMemory = Statement(21, takeOver(which: "NOT r.parked"))
    static let takeOverParked = Statement(22, takeOver(which: "r.parked"))

    private static func takeOver(which: String) -> String {
        """
        WITH dead AS MATERIALIZED (
            SELECT owner FROM owners WHERE NOT \(PostgresSQL.lives("alive_until", "$2")) AND owner <> $1
        ), free AS MATERIALIZED (
            SELECT f.id, f.owner FROM dead d CROSS JOIN unnest($4::text[]) AS n(lane) CROSS JOIN LATERAL (
                SELECT r.id, r.owner FROM outbox r
                WHERE r.owner = d.owner AND r.lane = n.lane AND \(which)
                LIMIT $3 FOR UPDATE SKIP LOCKED) f
            LIMIT $3
        )
        UPDATE outbox o SET owner = $1, epoch = \(PostgresSQL.raised("o.epoch")), parked = true FROM free f
        WHERE \(PostgresSQL.each("o.id", "f.id")) AND o.owner = f.owner \
        RETURNING o.lane, octet_length(o.sealed), f.owner
        """
    }

    /// $1 owners in order, $2 rows, $3 bytes that have gone from them.
    static let owedLess = Statement(
        23,
        """
        UPDATE owners o SET rows = greatest(0, \(PostgresSQL.owed("o.rows")) - l.rows),
        bytes = greatest(0, \(PostgresSQL.owed("o.bytes")) - l.bytes)
        FROM unnest($1::uuid[], $2::int8[], $3::int8[]) AS l(owner, rows, bytes) WHERE o.owner = l.owner
        """)

    /// $1 owner, $2 at most. Rows: lane.
    static let reclaim = Statement(
        25,
        """
        WITH mine AS MATERIALIZED (
            SELECT o.id FROM outbox o WHERE o.owner = $1 AND NOT o.parked LIMIT $2 FOR UPDATE
        )
        UPDATE outbox o SET epoch = \(PostgresSQL.raised("o.epoch")), parked = true FROM mine m
        WHERE \(PostgresSQL.each("o.id", "m.id")) AND o.owner = $1 RETURNING o.lane
        """)

    /// Lets parked pushes of all other lanes go to nobody, who is always dead. $1 owner, $2 lanes, $3 at
    /// most, $4 nobody. Rows: lane, size.
    static let letGo = Statement(
        27,
        """
        WITH present AS (
            INSERT INTO owners (owner, alive_until) VALUES ($4, 0)
            ON CONFLICT (owner) DO UPDATE SET alive_until = 0
        ), gone AS MATERIALIZED (
            SELECT o.id FROM outbox o WHERE o.owner = $1 AND o.parked AND NOT o.lane = ANY($2::text[])
            LIMIT $3 FOR UPDATE
        )
        UPDATE outbox o SET owner = $4, epoch = \(PostgresSQL.raised("o.epoch")) FROM gone g
        WHERE \(PostgresSQL.each("o.id", "g.id")) AND o.owner = $1 RETURNING o.lane, octet_length(o.sealed)
        """)
}
