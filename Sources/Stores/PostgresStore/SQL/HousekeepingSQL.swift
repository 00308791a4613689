/// Sweeps, vacuums, and forgetting what was deleted.
enum HousekeepingSQL {
    /// Marks past their time whose push is no longer owed; how many there were, and the first minute that
    /// still counts. $1 clock ahead, $2 minutes, $3 at most, $4 first minute to look at.
    static let dropMarks = Statement(
        26,
        """
        WITH cut AS MATERIALIZED (
            SELECT (\(PostgresSQL.clock("$1")) / 60000)::int4 - $2::int4 AS minute
        ), old AS MATERIALIZED (
            SELECT m.mark FROM marks m
            WHERE m.minute >= $4::int4 AND m.minute < (SELECT minute FROM cut)
            AND (SELECT o.id FROM outbox o WHERE o.id = m.id) IS NULL
            ORDER BY m.minute LIMIT $3 FOR UPDATE OF m SKIP LOCKED
        ), gone AS (
            DELETE FROM marks m USING old o WHERE \(PostgresSQL.each("m.mark", "o.mark")) RETURNING 1
        )
        SELECT (SELECT count(*) FROM gone), (SELECT minute::int8 FROM cut)
        """)

    /// Dead owners that own nothing count for nothing; those that are long dead go. A row that someone is
    /// just changing is left for the next time. $1 owner, $2 clock ahead, $3 life in milliseconds.
    static let buryOwners = Statement(
        24,
        """
        WITH empty AS MATERIALIZED (
            SELECT w.owner, \(PostgresSQL.lease("w.alive_until", "$2")) AS alive_until FROM owners w
            WHERE w.owner <> $1 AND NOT \(PostgresSQL.lives("w.alive_until", "$2"))
            AND (SELECT o.id FROM outbox o WHERE o.owner = w.owner AND o.parked LIMIT 1) IS NULL
            AND (SELECT o.id FROM outbox o WHERE o.owner = w.owner AND NOT o.parked LIMIT 1) IS NULL
            FOR UPDATE SKIP LOCKED
        ), gone AS (
            DELETE FROM owners w USING empty e
            WHERE w.owner = e.owner AND e.alive_until <= \(PostgresSQL.clock("$2")) - $3::int8
        )
        UPDATE owners w SET rows = 0, bytes = 0 FROM empty e
        WHERE w.owner = e.owner AND (w.rows <> 0 OR w.bytes <> 0)
        AND e.alive_until > \(PostgresSQL.clock("$2")) - $3::int8
        """)

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

    /// None of these may stand in a transaction with others.
    static let vacuumOutbox = Statement(once: "VACUUM outbox")
    static let rewriteOutbox = Statement(once: "VACUUM (FULL) outbox")
    static let rewriteRecords = Statement(once: "VACUUM (FULL) records")

    static let tableSizes = Statement(
        58, "SELECT pg_total_relation_size('outbox'), pg_total_relation_size('records')")

    static let switchLog = Statement(once: "SELECT pg_switch_wal()")
    static let checkpoint = Statement(once: "CHECKPOINT")
}
