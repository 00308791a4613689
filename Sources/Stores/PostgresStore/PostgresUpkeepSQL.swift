/// What keepers of a store run: none of it stands in the way of a push.
enum PostgresUpkeepSQL {
    // MARK: closing

    /// A rule that no new or changed row meets, on every table by which a relay lives. To write it down is to
    /// wait until nobody is writing there; rows that stand may be read and deleted. Tables come in the order
    /// in which others lock them (`PostgresSQL`).
    static let bar = barred.map {
        Statement(once: lift($0) + ", ADD CONSTRAINT moved CHECK (false) NOT VALID")
    }
    static let unbar = barred.map { Statement(once: lift($0)) }

    private static func lift(_ table: String) -> String {
        "ALTER TABLE \(table) DROP CONSTRAINT IF EXISTS moved"
    }
    private static let barred = ["heads", "records", "outbox", "owners"]

    // MARK: reading

    /// $1 key, $2 at most.
    static let records = Statement(
        70, "SELECT \(PostgresSQL.recordColumns) FROM records WHERE key > $1 ORDER BY key LIMIT $2")

    /// Ids rise with the time of acceptance. $1 id, $2 at most.
    static let pushes = Statement(
        71,
        """
        SELECT id, lane, class, origin, record, touched_at, not_before, custody_ends, attempt, epoch, parked,
        mark, first, sealed FROM outbox WHERE id > $1 ORDER BY id LIMIT $2
        """)

    /// Those of pushes that have ended. One without an outcome was accepted (see `PostgresSQL.settle`).
    /// $1 mark, $2 at most.
    static let marks = Statement(
        72,
        """
        SELECT m.mark, m.id, m.minute, coalesce(m.first, 1::int2) FROM marks m
        WHERE m.mark > $1 AND (SELECT o.id FROM outbox o WHERE o.id = m.id) IS NULL
        ORDER BY m.mark LIMIT $2
        """)

    /// More than there are seal keys and relays. $1 how the names begin.
    static let settings = Statement(
        73, "SELECT name, value FROM settings WHERE left(name, length($1)) = $1 LIMIT 10000")

    static let lastRevision = Statement(74, "SELECT revision FROM heads WHERE name = 'records'")

    /// $1 owner, $2 clock ahead.
    static let livingOwners = Statement(
        75,
        "SELECT owner FROM owners WHERE owner <> $1 AND alive_until > \(PostgresSQL.clock("$2"))")

    /// How the tables of pushes stand with the server's vacuum. Rows: table, dead rows, vacuums that the
    /// server began by itself, milliseconds since the last of them, and both thresholds as the table has
    /// them.
    static let vacuumSights = Statement(
        84,
        """
        SELECT c.relname::text, s.n_dead_tup, s.autovacuum_count,
        (extract(epoch FROM clock_timestamp() - s.last_autovacuum) * 1000)::int8,
        \(option("autovacuum_vacuum_threshold")), \(option("autovacuum_vacuum_insert_threshold"))
        FROM pg_class c, pg_stat_user_tables s
        WHERE c.oid IN ('outbox'::regclass, 'marks'::regclass) AND s.relid = c.oid ORDER BY c.relname
        """)

    private static func option(_ name: String) -> String {
        """
        (SELECT o.option_value::int8 FROM pg_options_to_table(c.reloptions) o
        WHERE o.option_name = '\(name)')
        """
    }

    /// Lets the server vacuum a table from so many dead rows on, and not for inserted ones before that; or as
    /// the schema's third step has it.
    static func vacuum(_ table: PacedTable, from threshold: Int) -> Statement {
        let inserts =
            threshold == table.threshold
            ? "RESET (autovacuum_vacuum_insert_threshold)"
            : "SET (autovacuum_vacuum_insert_threshold = \(threshold))"
        return Statement(
            once: "ALTER TABLE \(table.rawValue) SET (autovacuum_vacuum_threshold = \(threshold)), \(inserts)"
        )
    }

    // MARK: writing

    /// $1 name, $2 value.
    static let replaceSetting = Statement(
        76,
        """
        INSERT INTO settings (name, value) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value
        """)
    /// $1 name.
    static let dropSetting = Statement(77, "DELETE FROM settings WHERE name = $1")

    /// $1 revision.
    static let raiseRevision = Statement(
        78, "UPDATE heads SET revision = greatest(revision, $1::int8) WHERE name = 'records'")

    /// $1… columns.
    static let fillRecords = Statement(
        79,
        """
        INSERT INTO records (\(PostgresSQL.recordColumns))
        SELECT * FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::uuid[], $5::int8[], $6::int2[],
        $7::int8[], $8::int8[], $9::int8[], $10::int8[], $11::bytea[])
        ON CONFLICT (key) DO NOTHING
        """)

    /// Pushes of an owner that is not alive, with the marks that they hold. $1 owner, $2 clock ahead,
    /// $3… columns, the outcome 0 for none.
    static let fillPushes = Statement(
        80,
        """
        WITH item AS MATERIALIZED (
            SELECT * FROM unnest($3::uuid[], $4::text[], $5::int2[], $6::uuid[], $7::uuid[], $8::int8[],
            $9::int8[], $10::int8[], $11::int4[], $12::int8[], $13::uuid[], $14::int2[], $15::bytea[])
            AS i(id, lane, class, origin, record, touched_at, not_before, custody_ends, attempt, epoch, mark,
            first, sealed)
        ), present AS (
            INSERT INTO owners (owner, alive_until) VALUES ($1, \(PostgresSQL.clock("$2")))
            ON CONFLICT (owner) DO NOTHING
        ), held AS (
            INSERT INTO marks (mark, id, minute)
            SELECT i.mark, i.id, (\(PostgresSQL.clock("$2")) / 60000)::int4 FROM item i
            WHERE i.mark IS NOT NULL ORDER BY i.mark
            ON CONFLICT (mark) DO NOTHING
        )
        INSERT INTO outbox (id, lane, class, origin, record, touched_at, not_before, custody_ends, attempt,
        owner, epoch, parked, mark, first, sealed)
        SELECT i.id, i.lane, i.class, i.origin, i.record, i.touched_at, i.not_before, i.custody_ends,
        i.attempt, $1, i.epoch, true, i.mark, nullif(i.first, 0), i.sealed FROM item i
        ON CONFLICT (id) DO NOTHING
        """)

    /// $1 marks, $2 ids, $3 minutes, $4 outcomes, 0 and 1 for acceptance.
    static let fillMarks = Statement(
        81,
        """
        INSERT INTO marks (mark, id, minute, first)
        SELECT m.mark, m.id, m.minute, CASE WHEN m.first > 1 THEN m.first END
        FROM unnest($1::uuid[], $2::uuid[], $3::int4[], $4::int2[]) AS m(mark, id, minute, first)
        ON CONFLICT (mark) DO NOTHING
        """)

    /// $1 keys, $2 the revisions at which they were read, $3 bodies. Row: how many still stood.
    static let resealRecords = Statement(
        82,
        """
        WITH done AS (
            UPDATE records r SET body = s.body
            FROM unnest($1::uuid[], $2::int8[], $3::bytea[]) AS s(key, revision, body)
            WHERE \(PostgresSQL.each("r.key", "s.key")) AND r.revision = s.revision RETURNING 1
        )
        SELECT count(*) FROM done
        """)

    /// Rows that somebody is just settling or taking over are left for the next round. $1 ids, $2 bytes.
    static let resealPushes = Statement(
        83,
        """
        WITH free AS MATERIALIZED (
            SELECT o.id FROM outbox o WHERE o.id = ANY($1::uuid[]) ORDER BY o.id FOR UPDATE SKIP LOCKED
        ), done AS (
            UPDATE outbox o SET sealed = s.sealed
            FROM free f, unnest($1::uuid[], $2::bytea[]) AS s(id, sealed)
            WHERE \(PostgresSQL.each("o.id", "f.id")) AND s.id = f.id RETURNING 1
        )
        SELECT count(*) FROM done
        """)
}
