import PushModel

/// All SQL that the engine runs, but for the steps of `PostgresSchema`.
///
/// Only what PostgreSQL's neighbours on the same wire have too: no `LISTEN`, no advisory lock, no function of
/// our own. Every statement that a push passes finds its rows by an index (`PostgresPlanTests`).
///
/// Locks are taken in one order: `heads`, then `outbox`, then `marks`, and rows of one table in the order of
/// their keys where two processes can want the same ones. What a deadlock undoes all the same is run again.
enum PostgresSQL {
    // MARK: transactions, sessions

    static let begin = Statement(1, "BEGIN")
    static let commit = Statement(2, "COMMIT")
    static let rollback = Statement(3, "ROLLBACK")

    /// Lets plans be made anew, by the size that tables have now (`PostgresSession.run`).
    static let forgetPlans = Statement(7, "DISCARD PLANS")

    /// $1 names, $2 values.
    static let configure = Statement(
        4,
        """
        SELECT count(set_config(s.name, s.value, false))
        FROM unnest($1::text[], $2::text[]) AS s(name, value)
        """
    )

    static let inspectServer = Statement(
        5,
        """
        SELECT current_setting('fsync'), current_setting('full_page_writes'),
        current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
        current_setting('transaction_read_only'), pg_is_in_recovery(),
        pid::int8, (extract(epoch FROM backend_start) * 1000000)::int8, current_setting('server_version')
        FROM pg_stat_activity WHERE pid = pg_backend_pid()
        """)

    /// Ends processes behind lost connections, for what they have not committed yet could stand a moment
    /// after we have looked; how many there still are. $1 pids, $2 their starts.
    static let endLostBackends = Statement(
        6,
        """
        SELECT count(pg_terminate_backend(a.pid))
        FROM pg_stat_activity a JOIN unnest($1::int8[], $2::int8[]) AS l(pid, started_at)
        ON a.pid = l.pid AND (extract(epoch FROM a.backend_start) * 1000000)::int8 = l.started_at
        """)

    /// The engine's clock, in milliseconds: the server's. The parameter is how far a test is ahead of it.
    static func clock(_ ahead: String) -> String {
        "((extract(epoch FROM clock_timestamp()) * 1000)::int8 + \(ahead)::int8)"
    }

    /// Finds the rows of a table one by one, each by its key in an index: `column = key`, in other words. For
    /// an equality the planner also weighs to read all of the index in its order, and takes that where it
    /// believes the table to hold next to nothing, as it does behind every vacuum of an outbox that is worked
    /// off: then each push pays for all that are owed, and for all dead ones that an old snapshot keeps.
    static func each(_ column: String, _ key: String) -> String { "\(column) BETWEEN \(key) AND \(key)" }

    // MARK: accepting

    /// Writes pushes with their marks; those whose mark is held are left out. The ids that were written.
    ///
    /// Two processes that accept the same mark at once meet in the index of `marks`: the second waits for the
    /// first one's commit, and then finds it held.
    ///
    /// $1 owner, $2 clock ahead, $3 minutes a mark is held, $4… columns.
    static let accept = Statement(
        10,
        """
        WITH item AS MATERIALIZED (
            SELECT * FROM unnest($4::uuid[], $5::text[], $6::int2[], $7::uuid[], $8::uuid[], $9::int8[],
            $10::int8[], $11::int8[], $12::int4[], $13::bool[], $14::uuid[], $15::bytea[])
            AS i(id, lane, class, origin, record, touched_at, not_before, custody_ends, attempt, parked, mark,
            sealed)
        ), present AS (
            INSERT INTO owners (owner, alive_until) VALUES ($1, \(clock("$2")))
            ON CONFLICT (owner) DO NOTHING
        ), held AS (
            INSERT INTO marks AS m (mark, id, minute)
            SELECT i.mark, i.id, t.minute FROM item i
            CROSS JOIN (SELECT (\(clock("$2")) / 60000)::int4 AS minute) t
            WHERE i.mark IS NOT NULL ORDER BY i.mark
            ON CONFLICT (mark) DO UPDATE SET id = excluded.id, minute = excluded.minute, first = NULL
            WHERE m.minute < excluded.minute - $3::int4
            AND (SELECT o.id FROM outbox o WHERE o.id = m.id) IS NULL
            RETURNING m.id
        ), written AS (
            INSERT INTO outbox (id, lane, class, origin, record, touched_at, not_before, custody_ends,
            attempt, owner, epoch, parked, mark, sealed)
            SELECT i.id, i.lane, i.class, i.origin, i.record, i.touched_at, i.not_before, i.custody_ends,
            i.attempt, $1, 1, i.parked, i.mark, i.sealed
            FROM item i WHERE i.mark IS NULL OR i.id IN (SELECT h.id FROM held h)
            RETURNING id
        )
        SELECT id FROM written
        """)

    /// Who holds marks, and the first outcome: a push that has gone and left none in its mark was accepted,
    /// for that is not written (see `settle`). $1 marks.
    static let holders = Statement(
        11,
        """
        SELECT m.mark, m.id, CASE WHEN o.id IS NULL THEN coalesce(m.first, 1::int2) ELSE o.first END
        FROM marks m LEFT JOIN outbox o ON \(each("o.id", "m.id")) WHERE m.mark = ANY($1::uuid[])
        """)

    // MARK: settling

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
            WHERE \(each("o.id", "s.id")) AND o.epoch = s.epoch AND o.owner = $1
            RETURNING o.id, o.mark, coalesce(o.first, s.first) AS first, s.withdrawn, s.old, o.parked, o.lane,
            octet_length(o.sealed) AS size
        ), released AS (
            DELETE FROM marks m USING gone g
            WHERE g.withdrawn AND \(each("m.mark", "g.mark")) AND m.id = g.id
        ), kept AS (
            UPDATE marks m SET first = g.first,
            minute = CASE WHEN g.old THEN (\(clock("$2")) / 60000)::int4 ELSE m.minute END
            FROM gone g
            WHERE NOT g.withdrawn AND (g.first <> 1 OR g.old)
            AND \(each("m.mark", "g.mark")) AND m.id = g.id
        )
        SELECT id, parked, lane, size FROM gone
        """)

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
            FROM step s JOIN outbox o ON \(each("o.id", "s.id"))
            WHERE o.epoch = s.epoch AND o.owner = $1 FOR UPDATE OF o
        )
        UPDATE outbox o SET
        not_before = CASE WHEN w.retried THEN w.not_before ELSE o.not_before END,
        attempt = CASE WHEN w.retried THEN w.attempt ELSE o.attempt END,
        lane = CASE WHEN w.retried THEN w.lane ELSE o.lane END,
        parked = w.parked,
        first = coalesce(o.first, nullif(w.first, 0))
        FROM was w WHERE \(each("o.id", "w.id")) AND o.epoch = w.epoch AND o.owner = $1
        RETURNING o.id, w.was_parked, w.was_lane, o.parked, o.lane
        """)

    // MARK: claiming

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
            UPDATE outbox o SET parked = false, epoch = o.epoch + 1 FROM due d
            WHERE \(each("o.id", "d.id")) AND o.owner = $1 AND o.parked
            RETURNING o.id, o.origin, o.record, o.touched_at, o.not_before, o.custody_ends, o.attempt,
            o.epoch, o.mark, o.sealed, d.turn, d.place
        )
        SELECT seen.origins, seen.last, t.* FROM seen LEFT JOIN taken t ON true
        """)

    /// $1 owner, $2 lane.
    static let nextDue = Statement(
        15,
        "SELECT not_before FROM outbox WHERE owner = $1 AND lane = $2 AND parked ORDER BY not_before LIMIT 1")

    /// Ours, and those of the dead: pushes of a lane that nobody has are taken over by nobody. What stands as
    /// in a dead one's memory is looked through; that is a few thousand of each lane at most.
    ///
    /// $1 owner, $2 before, $3 at most, $4 clock ahead.
    static let endCustody = Statement(
        16,
        """
        WITH holder AS MATERIALIZED (
            SELECT $1::uuid AS owner
            UNION ALL SELECT owner FROM owners WHERE alive_until <= \(clock("$4")) AND owner <> $1
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
            DELETE FROM outbox o USING (SELECT id FROM ended LIMIT $3) e WHERE \(each("o.id", "e.id"))
            RETURNING o.id, o.mark, o.lane, o.owner, octet_length(o.sealed) AS size
        ), released AS (
            DELETE FROM marks m USING gone g WHERE \(each("m.mark", "g.mark")) AND m.id = g.id
        )
        SELECT lane, count(*), sum(size)::int8, owner = $1 FROM gone GROUP BY lane, owner = $1
        """)

    // MARK: owners

    /// Declares this process alive, and says what it owes; what the others owe, and how many live. $1 owner,
    /// $2 clock ahead, $3 span in milliseconds, $4 rows, $5 bytes.
    static let renew = Statement(
        17,
        """
        WITH mine AS (
            INSERT INTO owners (owner, alive_until, rows, bytes)
            VALUES ($1, \(clock("$2")) + $3::int8, $4, $5)
            ON CONFLICT (owner) DO UPDATE
            SET alive_until = excluded.alive_until, rows = excluded.rows, bytes = excluded.bytes
        )
        SELECT coalesce(sum(rows), 0)::int8, coalesce(sum(bytes), 0)::int8,
        count(*) FILTER (WHERE alive_until > \(clock("$2"))) FROM owners WHERE owner <> $1
        """)

    /// $1 owner.
    static let owedByOthers = Statement(
        18,
        "SELECT coalesce(sum(rows), 0)::int8, coalesce(sum(bytes), 0)::int8 FROM owners WHERE owner <> $1")

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

    /// Pushes of the dead become ours, parked, with a raised epoch. Rows that another process is just taking
    /// are passed over, so that several share the work and none is taken twice.
    ///
    /// $1 owner, $2 clock ahead, $3 at most, $4 lanes. Rows: lane, size, owner before.
    static let takeOverInMemory = Statement(21, takeOver(which: "NOT r.parked"))
    static let takeOverParked = Statement(22, takeOver(which: "r.parked"))

    private static func takeOver(which: String) -> String {
        """
        WITH dead AS MATERIALIZED (
            SELECT owner FROM owners WHERE alive_until <= \(clock("$2")) AND owner <> $1
        ), free AS MATERIALIZED (
            SELECT f.id, f.owner FROM dead d CROSS JOIN unnest($4::text[]) AS n(lane) CROSS JOIN LATERAL (
                SELECT r.id, r.owner FROM outbox r
                WHERE r.owner = d.owner AND r.lane = n.lane AND \(which)
                LIMIT $3 FOR UPDATE SKIP LOCKED) f
            LIMIT $3
        )
        UPDATE outbox o SET owner = $1, epoch = o.epoch + 1, parked = true FROM free f
        WHERE \(each("o.id", "f.id")) AND o.owner = f.owner RETURNING o.lane, octet_length(o.sealed), f.owner
        """
    }

    /// $1 owners in order, $2 rows, $3 bytes that have gone from them.
    static let owedLess = Statement(
        23,
        """
        UPDATE owners o SET rows = greatest(0, o.rows - l.rows), bytes = greatest(0, o.bytes - l.bytes)
        FROM unnest($1::uuid[], $2::int8[], $3::int8[]) AS l(owner, rows, bytes) WHERE o.owner = l.owner
        """)

    /// Dead owners that own nothing count for nothing; those that are long dead go. A row that someone is
    /// just changing is left for the next time. $1 owner, $2 clock ahead, $3 life in milliseconds.
    static let buryOwners = Statement(
        24,
        """
        WITH empty AS MATERIALIZED (
            SELECT w.owner, w.alive_until FROM owners w
            WHERE w.owner <> $1 AND w.alive_until <= \(clock("$2"))
            AND (SELECT o.id FROM outbox o WHERE o.owner = w.owner AND o.parked LIMIT 1) IS NULL
            AND (SELECT o.id FROM outbox o WHERE o.owner = w.owner AND NOT o.parked LIMIT 1) IS NULL
            FOR UPDATE SKIP LOCKED
        ), gone AS (
            DELETE FROM owners w USING empty e
            WHERE w.owner = e.owner AND e.alive_until <= \(clock("$2")) - $3::int8
        )
        UPDATE owners w SET rows = 0, bytes = 0 FROM empty e
        WHERE w.owner = e.owner AND (w.rows <> 0 OR w.bytes <> 0)
        AND e.alive_until > \(clock("$2")) - $3::int8
        """)

    /// $1 owner, $2 at most. Rows: lane.
    static let reclaim = Statement(
        25,
        """
        WITH mine AS MATERIALIZED (
            SELECT o.id FROM outbox o WHERE o.owner = $1 AND NOT o.parked LIMIT $2 FOR UPDATE
        )
        UPDATE outbox o SET epoch = o.epoch + 1, parked = true FROM mine m
        WHERE \(each("o.id", "m.id")) AND o.owner = $1 RETURNING o.lane
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
        UPDATE outbox o SET owner = $4, epoch = o.epoch + 1 FROM gone g
        WHERE \(each("o.id", "g.id")) AND o.owner = $1 RETURNING o.lane, octet_length(o.sealed)
        """)

    // MARK: members

    /// Leaves all groups but these, and forgets members that ended long ago. $1 owner, $2 clock ahead,
    /// $3 groups, $4 life of an ended one in milliseconds.
    static let leave = Statement(
        28,
        """
        WITH old AS MATERIALIZED (
            SELECT m.owner, m.grp FROM members m WHERE m.alive_until <= \(clock("$2")) - $4::int8
            FOR UPDATE SKIP LOCKED
        ), gone AS (
            DELETE FROM members m USING old o WHERE m.owner = o.owner AND m.grp = o.grp
        )
        UPDATE members m SET alive_until = t.now, has_left = true FROM (SELECT \(clock("$2")) AS now) t
        WHERE m.owner = $1 AND NOT m.grp = ANY($3::text[]) AND NOT m.has_left AND m.alive_until > t.now
        """)

    /// Who was alive stays since it joined. $1 owner, $2 clock ahead, $3 groups, $4 span in milliseconds.
    /// Rows: owner, group, how long ago it joined and how long it lives yet in milliseconds, whether it left.
    static let enrol = Statement(
        29,
        """
        WITH t AS MATERIALIZED (SELECT \(clock("$2")) AS now), ours AS (
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
        SELECT told.owner, told.grp, t.now - told.joined, told.alive_until - t.now, told.has_left FROM told, t
        """)

    /// Marks past their time whose push is no longer owed; how many there were, and the first minute that
    /// still counts. $1 clock ahead, $2 minutes, $3 at most, $4 first minute to look at.
    static let dropMarks = Statement(
        26,
        """
        WITH cut AS MATERIALIZED (
            SELECT (\(clock("$1")) / 60000)::int4 - $2::int4 AS minute
        ), old AS MATERIALIZED (
            SELECT m.mark FROM marks m
            WHERE m.minute >= $4::int4 AND m.minute < (SELECT minute FROM cut)
            AND (SELECT o.id FROM outbox o WHERE o.id = m.id) IS NULL
            ORDER BY m.minute LIMIT $3 FOR UPDATE OF m SKIP LOCKED
        ), gone AS (
            DELETE FROM marks m USING old o WHERE \(each("m.mark", "o.mark")) RETURNING 1
        )
        SELECT (SELECT count(*) FROM gone), (SELECT minute::int8 FROM cut)
        """)

    // MARK: records

    static let recordColumns =
        "key, space, owner, address, version, state, state_at, touched_at, expires_at, revision, body"

    /// $1 keys.
    static let find = Statement(
        30, "SELECT \(recordColumns) FROM records WHERE key = ANY($1::uuid[])")

    /// $1 space, owner or address, $2 after, $3 now, $4 at most.
    static let pageSpace = Statement(31, page(by: "space"))
    static let pageOwner = Statement(32, page(by: "owner"))
    static let pageAddress = Statement(33, page(by: "address"))

    private static func page(by column: String) -> String {
        """
        SELECT \(recordColumns) FROM records
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

    /// Whoever changes records holds this row until the commit. So revisions are committed in the order in
    /// which they are given, and a reader that has seen one will not find a lower one later; and a condition
    /// that was judged still holds when the change is made.
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
                    SELECT w.state = 0 AND w.expires_at > $1 FROM records w
                    WHERE \(each("w.key", "s.address"))) IS TRUE)
                ELSE coalesce(r.touched_at <= s.bound, true) END AS met
            FROM step s LEFT JOIN records r ON \(each("r.key", "s.key")) AND r.expires_at > $1
        ), verdict AS MATERIALIZED (
            SELECT min(place) FILTER (WHERE NOT met) AS refused, count(*) AS steps FROM judged
        ), made AS MATERIALIZED (
            SELECT j.* FROM judged j, verdict v WHERE j.met AND ($2::bool OR v.refused IS NULL)
        ), head AS (
            UPDATE heads SET revision = revision + (SELECT steps FROM verdict) WHERE name = 'records'
            RETURNING revision
        ), put AS (
            INSERT INTO records (\(recordColumns))
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
            FROM made m, head h, verdict v WHERE m.kind = 1 AND \(each("r.key", "m.key")) AND r.state = 0
        ), deleted AS (
            DELETE FROM records r USING made m WHERE m.kind = 2 AND \(each("r.key", "m.key"))
        )
        SELECT refused FROM verdict
        """)

    /// $1 before, $2 at most.
    static let purge = Statement(
        37,
        """
        DELETE FROM records WHERE key = ANY(ARRAY(
            (SELECT key FROM records WHERE expires_at < $1 AND expires_at < 9223372036854775807 LIMIT $2)
            UNION ALL (SELECT key FROM records WHERE space = '\(Space.retired.text)' LIMIT $2)))
        """)

    /// $1 owner, $2 at most.
    static let forget = Statement(
        38, "DELETE FROM records WHERE key = ANY(ARRAY(SELECT key FROM records WHERE owner = $1 LIMIT $2))")

    // MARK: settings

    /// $1 name.
    static let setting = Statement(40, "SELECT value FROM settings WHERE name = $1")
    /// $1 name, $2 value.
    static let putSetting = Statement(
        41, "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")

    // MARK: an operator's questions

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
    /// $1 names, $2 values: for one transaction.
    static let configureOnce = Statement(
        55,
        """
        SELECT count(set_config(s.name, s.value, true))
        FROM unnest($1::text[], $2::text[]) AS s(name, value)
        """)

    // MARK: forgetting

    /// None of these may stand in a transaction with others.
    static let vacuumOutbox = Statement(once: "VACUUM outbox")
    static let rewriteOutbox = Statement(once: "VACUUM (FULL) outbox")
    static let rewriteRecords = Statement(once: "VACUUM (FULL) records")
    static let tableSizes = Statement(
        58, "SELECT pg_total_relation_size('outbox'), pg_total_relation_size('records')")
    static let switchLog = Statement(once: "SELECT pg_switch_wal()")
    static let checkpoint = Statement(once: "CHECKPOINT")

    // MARK: the schema

    static let schemaSteps = Statement(
        60, "SELECT number, breaks, finished_at IS NOT NULL FROM migrations ORDER BY number")
    /// $1 number, $2 name, $3 whether older programs cannot work on what comes of it.
    static let beginStep = Statement(
        61,
        """
        INSERT INTO migrations (number, name, breaks, begun_at) VALUES ($1, $2, $3, now())
        ON CONFLICT (number) DO NOTHING RETURNING number
        """)
    /// $1 number.
    static let finishStep = Statement(62, "UPDATE migrations SET finished_at = now() WHERE number = $1")
}
