import PushModel

/// Owed pushes and their marks, from the acceptance to the end.
enum OutboxSQL {
    /// Writes pushes with their marks; those whose mark is held are left out, and those whose registration
    /// does not stand any more. Rows: the ids that were written, and with false those of the latter.
    ///
    /// Two processes that accept the same mark at once meet in the index of `marks`: the second waits for the
    /// first one's commit, and then finds it held.
    ///
    /// $1 owner, $2 clock ahead, $3 minutes a mark is held, $4… columns.
    static let accept = Statement(
        10,
        """
        WITH offered AS MATERIALIZED (
            SELECT * FROM unnest($4::uuid[], $5::text[], $6::int2[], $7::uuid[], $8::uuid[], $9::int8[],
            $10::int8[], $11::int8[], $12::int4[], $13::bool[], $14::uuid[], $15::bytea[], $16::uuid[])
            AS i(id, lane, class, origin, record, touched_at, not_before, custody_ends, attempt, parked, mark,
            sealed, address)
        ), gone AS MATERIALIZED (
            SELECT i.id FROM offered i WHERE i.record IS NOT NULL AND (
                SELECT r.state = 0 AND (i.address IS NULL OR i.address IS NOT DISTINCT FROM r.address)
                FROM records r WHERE \(PostgresSQL.each("r.key", "i.record"))) IS NOT TRUE
        ), item AS MATERIALIZED (
            SELECT * FROM offered i WHERE i.id NOT IN (SELECT g.id FROM gone g)
        ), present AS (
            INSERT INTO owners (owner, alive_until) VALUES ($1, \(PostgresSQL.clock("$2")))
            ON CONFLICT (owner) DO NOTHING
        ), held AS (
            INSERT INTO marks AS m (mark, id, minute)
            SELECT i.mark, i.id, t.minute FROM item i
            CROSS JOIN (SELECT (\(PostgresSQL.clock("$2")) / 60000)::int4 AS minute) t
            WHERE i.mark IS NOT NULL ORDER BY i.mark
            ON CONFLICT (mark) DO UPDATE SET id = excluded.id, minute = excluded.minute, first = NULL
            WHERE (m.minute < excluded.minute - $3::int4 OR m.minute > excluded.minute + 1440)
            AND (SELECT o.id FROM outbox o WHERE o.id = m.id) IS NULL
            RETURNING m.id
        ), written AS (
            INSERT INTO outbox (id, lane, class, origin, record, touched_at, not_before, custody_ends,
            attempt, owner, epoch, parked, mark, sealed, address)
            SELECT i.id, i.lane, i.class, i.origin, i.record, i.touched_at, i.not_before, i.custody_ends,
            i.attempt, $1, 1, i.parked, i.mark, i.sealed, i.address
            FROM item i WHERE i.mark IS NULL OR i.id IN (SELECT h.id FROM held h)
            RETURNING id
        )
        SELECT id, true FROM written UNION ALL SELECT id, false FROM gone
        """)

    /// Who holds marks, and the first outcome: a push that has gone and left none in its mark was accepted,
    /// for that is not written (see `settle`). $1 marks.
    static let holders = Statement(
        11,
        """
        SELECT m.mark, m.id, CASE WHEN o.id IS NULL THEN coalesce(m.first, 1::int2) ELSE o.first END
        FROM marks m LEFT JOIN outbox o ON \(PostgresSQL.each("o.id", "m.id")) WHERE m.mark = ANY($1::uuid[])
        """)

    /// Ends pushes that are ours at that epoch. `old`: the mark's minute is worth setting anew.
    ///
    /// Most pushes are accepted within a minute: then nothing is written to the mark, nor is it looked for.
    ///
    /// $1 owner, $2 clock ahead, $3 ids, $4 epochs, $5 first outcomes (0: none), $6 withdrawn, $7 old.
    static let settle = Statement(
        12,
        """
        WITH step AS MATERIALIZED (
            SELECT * FROM unnest($3::uuid[], $4::int8[], $5::int2[], $6::bool[], $7::bool[])
            AS s(id, epoch, first, withdrawn, old)
        ), gone AS (
            DELETE FROM outbox o USING step s
            WHERE \(PostgresSQL.each("o.id", "s.id")) AND o.epoch = s.epoch AND o.owner = $1
            RETURNING o.id, o.mark, coalesce(o.first, s.first) AS first, s.withdrawn, s.old, o.parked, o.lane,
            octet_length(o.sealed) AS size
        ), released AS (
            DELETE FROM marks m USING gone g
            WHERE g.withdrawn AND \(PostgresSQL.each("m.mark", "g.mark")) AND m.id = g.id
        ), kept AS (
            UPDATE marks m SET first = g.first,
            minute = CASE WHEN g.old THEN (\(PostgresSQL.clock("$2")) / 60000)::int4 ELSE m.minute END
            FROM gone g
            WHERE NOT g.withdrawn AND (g.first <> 1 OR g.old)
            AND \(PostgresSQL.each("m.mark", "g.mark")) AND m.id = g.id
        )
        SELECT id, parked, lane, size FROM gone
        """)

    /// Ends what is owed to registrations that do not stand any more, whoever owes it, and tells the owners
    /// that may hold it in memory. (Its own too: this answer may be lost.) A row of zeros tells of parked
    /// ones, so that their owner counts anew. `OFFSET 0`: for each key alone, so that the planner does not
    /// read all that is parked.
    ///
    /// $1 owner, $2 clock ahead, $3 keys of records. Rows: id, lane, whether it was ours, whether it was
    /// parked, size.
    static let endOwed = Statement(
        45,
        """
        WITH named AS MATERIALIZED (
            SELECT n.key, r.state, r.address FROM unnest($3::uuid[]) AS n(key)
            LEFT JOIN records r ON \(PostgresSQL.each("r.key", "n.key"))
        ), over AS MATERIALIZED (
            SELECT p.id FROM named n CROSS JOIN LATERAL (
                SELECT o.id FROM outbox o WHERE \(PostgresSQL.each("o.record", "n.key")) AND o.parked
                AND (n.state IS DISTINCT FROM 0
                    OR (o.address IS NOT NULL AND o.address IS DISTINCT FROM n.address)) OFFSET 0) p
            UNION ALL
            SELECT p.id FROM named n CROSS JOIN owners w CROSS JOIN LATERAL (
                SELECT o.id FROM outbox o WHERE o.owner = w.owner AND o.record = n.key AND NOT o.parked
                AND (n.state IS DISTINCT FROM 0
                OR (o.address IS NOT NULL AND o.address IS DISTINCT FROM n.address)) OFFSET 0) p
        ), gone AS (
            DELETE FROM outbox o USING (SELECT DISTINCT id FROM over) e
            WHERE \(PostgresSQL.each("o.id", "e.id"))
            RETURNING o.id, o.mark, o.lane, o.owner, o.parked, octet_length(o.sealed) AS size
        ), released AS (
            DELETE FROM marks m USING gone g WHERE \(PostgresSQL.each("m.mark", "g.mark")) AND m.id = g.id
        ), told AS (
            INSERT INTO ended (owner, id, at)
            SELECT DISTINCT g.owner, CASE WHEN g.parked THEN '00000000-0000-0000-0000-000000000000'::uuid
                ELSE g.id END, \(PostgresSQL.clock("$2"))
            FROM gone g WHERE NOT g.parked OR g.owner <> $1
            ON CONFLICT (owner, id) DO UPDATE SET at = excluded.at
        )
        SELECT id, lane, owner = $1, parked, size FROM gone
        """)

    /// Pushes of an owner that were ended lately. $1 owner.
    static let endedLately = Statement(46, "SELECT id, at FROM ended WHERE owner = $1")

    /// By then whoever was told of them has heard it, or its lease has run out. $1 clock ahead, $2 span.
    static let dropEnded = Statement(
        47,
        "DELETE FROM ended WHERE \(PostgresSQL.lease("at", "$1")) < \(PostgresSQL.clock("$1")) - $2::int8")

    /// Puts pushes off, or parks them: what they were before, and what they are.
    ///
    /// $1 owner, $2 ids, $3 epochs, $4 whether it is a retry, $5 not before, $6 attempts, $7 lanes,
    /// $8 parked, $9 first outcomes (0: none).
    static let putOff = Statement(
        13,
        """
        WITH step AS MATERIALIZED (
            SELECT * FROM unnest($2::uuid[], $3::int8[], $4::bool[], $5::int8[], $6::int4[], $7::text[],
            $8::bool[], $9::int2[])
            AS s(id, epoch, retried, not_before, attempt, lane, parked, first)
        ), was AS MATERIALIZED (
            SELECT s.*, o.parked AS was_parked, o.lane AS was_lane
            FROM step s JOIN outbox o ON \(PostgresSQL.each("o.id", "s.id"))
            WHERE o.epoch = s.epoch AND o.owner = $1 FOR UPDATE OF o
        )
        UPDATE outbox o SET
        not_before = CASE WHEN w.retried THEN w.not_before ELSE o.not_before END,
        attempt = CASE WHEN w.retried THEN w.attempt ELSE o.attempt END,
        lane = CASE WHEN w.retried THEN w.lane ELSE o.lane END,
        parked = w.parked,
        first = coalesce(o.first, nullif(w.first, 0))
        FROM was w WHERE \(PostgresSQL.each("o.id", "w.id")) AND o.epoch = w.epoch AND o.owner = $1
        RETURNING o.id, w.was_parked, w.was_lane, o.parked, o.lane
        """)

    /// Puts pushes that do not open where no claim looks, and frees their marks; where they were.
    ///
    /// $1 owner, $2 ids, $3 epochs, $4 how the text of that place begins, $5 clock ahead.
    static let setAside = Statement(
        42,
        """
        WITH was AS MATERIALIZED (
            SELECT o.id, o.mark, o.lane, o.parked
            FROM unnest($2::uuid[], $3::int8[]) AS s(id, epoch) JOIN outbox o \
            ON \(PostgresSQL.each("o.id", "s.id"))
            WHERE o.epoch = s.epoch AND o.owner = $1 FOR UPDATE OF o
        ), moved AS (
            UPDATE outbox o SET lane = $4 || left(w.lane, \(RowBounds.textBytes - 64)), parked = true,
            mark = NULL,
            custody_ends = \(PostgresSQL.earlier("o.custody_ends", than: RowBounds.pushAside, "$5"))
            FROM was w
            WHERE \(PostgresSQL.each("o.id", "w.id")) AND o.owner = $1
        ), released AS (
            DELETE FROM marks m USING was w WHERE \(PostgresSQL.each("m.mark", "w.mark")) AND m.id = w.id
        )
        SELECT id, lane, parked FROM was
        """)

    /// One pass over a class of a lane: origins from the cursor on and round to it, and of each its fair
    /// share of what is due.
    ///
    /// The inner queries step from origin to origin in the index (`parked_by_origin`); nothing else is read.
    ///
    /// $1 owner, $2 lane, $3 class, $4 origins after, $5 origins at most, $6 due, $7 rows at most.
    /// Rows: the push, its turn, its origin's place.
    static let claim = Statement(
        14,
        """
        WITH RECURSIVE ahead(origin, place) AS (
            (SELECT o.origin, 1::int8 FROM outbox o
            WHERE o.owner = $1 AND o.lane = $2 AND o.class = $3 AND o.parked AND o.origin > $4
            ORDER BY o.origin LIMIT 1)
            UNION ALL
            SELECT n.origin, p.place + 1 FROM ahead p CROSS JOIN LATERAL (
                SELECT o.origin FROM outbox o
                WHERE o.owner = $1 AND o.lane = $2 AND o.class = $3 AND o.parked AND o.origin > p.origin
                ORDER BY o.origin LIMIT 1) n
            WHERE p.place < $5::int8
        ), behind(origin, place) AS (
            (SELECT o.origin, 1 + (SELECT count(*) FROM ahead) FROM outbox o
            WHERE o.owner = $1 AND o.lane = $2 AND o.class = $3 AND o.parked AND o.origin <= $4
            AND (SELECT count(*) FROM ahead) < $5::int8
            ORDER BY o.origin LIMIT 1)
            UNION ALL
            SELECT n.origin, p.place + 1 FROM behind p CROSS JOIN LATERAL (
                SELECT o.origin FROM outbox o
                WHERE o.owner = $1 AND o.lane = $2 AND o.class = $3 AND o.parked AND o.origin > p.origin
                AND o.origin <= $4
                ORDER BY o.origin LIMIT 1) n
            WHERE p.place < $5::int8
        ), origins AS MATERIALIZED (
            SELECT origin, place FROM ahead UNION ALL SELECT origin, place FROM behind
        ), seen AS MATERIALIZED (
            SELECT count(*) AS origins, (SELECT l.origin FROM origins l ORDER BY l.place DESC LIMIT 1) AS last
            FROM origins
        ), due AS MATERIALIZED (
            SELECT d.id, d.turn, g.place FROM seen, origins g CROSS JOIN LATERAL (
                SELECT o.id, row_number() OVER (ORDER BY o.not_before, o.id) AS turn FROM outbox o
                WHERE o.owner = $1 AND o.lane = $2 AND o.class = $3 AND o.parked AND o.origin = g.origin
                AND o.not_before <= $6
                ORDER BY o.not_before, o.id LIMIT ($7::int8 + seen.origins - 1) / seen.origins) d
            ORDER BY d.turn, g.place LIMIT $7
        ), taken AS (
            UPDATE outbox o SET parked = false, epoch = \(PostgresSQL.raised("o.epoch")) FROM due d
            WHERE \(PostgresSQL.each("o.id", "d.id")) AND o.owner = $1 AND o.parked
            RETURNING o.id, o.origin, o.record, o.touched_at, o.not_before, o.custody_ends, o.attempt,
            o.epoch, o.mark, o.sealed, d.turn, d.place, o.address
        )
        SELECT seen.origins, seen.last, t.* FROM seen LEFT JOIN taken t ON true
        """)

    /// $1 owner, $2 lane.
    static let nextDue = Statement(
        15,
        """
        SELECT not_before, id, class, epoch FROM outbox WHERE owner = $1 AND lane = $2 AND parked
        ORDER BY not_before LIMIT 1
        """)

    /// Ours, and those of the dead: pushes of a lane that nobody has are taken over by nobody. What stands as
    /// in a dead one's memory is looked through; that is a few thousand of each lane at most.
    ///
    /// $1 owner, $2 before, $3 at most, $4 clock ahead.
    static let endCustody = Statement(
        16,
        """
        WITH holder AS MATERIALIZED (
            SELECT $1::uuid AS owner
            UNION ALL SELECT owner FROM owners
            WHERE NOT \(PostgresSQL.lives("alive_until", "$4")) AND owner <> $1
        ), ended AS MATERIALIZED (
            SELECT e.id FROM holder h CROSS JOIN LATERAL (
                SELECT p.id FROM outbox p WHERE p.owner = h.owner AND p.parked AND p.custody_ends <= $2
                ORDER BY p.custody_ends LIMIT $3 FOR UPDATE SKIP LOCKED) e
            UNION ALL
            SELECT e.id FROM holder h CROSS JOIN LATERAL (
                SELECT p.id FROM outbox p WHERE p.owner = h.owner AND NOT p.parked AND p.custody_ends <= $2
                LIMIT $3 FOR UPDATE SKIP LOCKED) e
            WHERE h.owner <> $1
        ), gone AS (
            DELETE FROM outbox o USING (SELECT id FROM ended LIMIT $3) e \
            WHERE \(PostgresSQL.each("o.id", "e.id"))
            RETURNING o.id, o.mark, o.lane, o.owner, octet_length(o.sealed) AS size
        ), released AS (
            DELETE FROM marks m USING gone g WHERE \(PostgresSQL.each("m.mark", "g.mark")) AND m.id = g.id
        )
        SELECT lane, count(*), sum(size)::int8, owner = $1 FROM gone GROUP BY lane, owner = $1
        """)
}
