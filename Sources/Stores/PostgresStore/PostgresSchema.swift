import Foundation
import PushModel

/// The schema, in named steps that only go forward.
///
/// Several processes may start at once: the one that inserts a step's row makes the step, in the same
/// transaction, and the others wait for that row. An older program works on a newer schema unless a step says
/// that it `breaks`: steps expand first (columns with defaults, indexes, tables), and contract only in a
/// later release.
enum PostgresSchema {
    struct Step: Sendable {
        let number: Int
        let name: String
        /// Whether programs that do not know the step cannot work after it.
        let breaks: Bool
        let statements: [String]
    }

    static let steps: [Step] = [
        Step(number: 1, name: "records, outbox, marks", breaks: true, statements: first),
        Step(number: 2, name: "members", breaks: false, statements: second),
        Step(number: 3, name: "no samples of sealed columns", breaks: false, statements: third),
        Step(number: 4, name: "addresses of pushes", breaks: false, statements: fourth),
        Step(number: 5, name: "pushes by registration", breaks: false, statements: fifth),
        Step(number: 6, name: "expired records by version", breaks: false, statements: sixth)
    ]

    /// Clear columns are those of docs/architecture.md; everything else is sealed above the engine. Times are
    /// Unix milliseconds, but for a mark's minute. Texts compare byte by byte, so that no index depends on
    /// the machine's collations. Sealed columns are not compressed: they have no redundancy.
    private static let first = [
        """
        CREATE TABLE records (
            version int8 NOT NULL,
            state_at int8 NOT NULL,
            touched_at int8 NOT NULL,
            expires_at int8 NOT NULL,
            revision int8 NOT NULL,
            key uuid PRIMARY KEY,
            owner uuid,
            address uuid,
            state int2 NOT NULL,
            space text COLLATE "C" NOT NULL,
            body bytea NOT NULL
        )
        """,
        "ALTER TABLE records ALTER COLUMN body SET STORAGE EXTERNAL",
        "CREATE INDEX records_by_space ON records (space, revision)",
        "CREATE INDEX records_by_owner ON records (owner, revision) WHERE owner IS NOT NULL",
        "CREATE INDEX records_by_address ON records (address, revision) WHERE address IS NOT NULL",
        "CREATE INDEX records_by_expiry ON records (expires_at) WHERE expires_at < 9223372036854775807",
        """
        CREATE TABLE outbox (
            touched_at int8 NOT NULL,
            not_before int8 NOT NULL,
            custody_ends int8 NOT NULL,
            epoch int8 NOT NULL,
            id uuid PRIMARY KEY,
            owner uuid NOT NULL,
            origin uuid NOT NULL,
            record uuid,
            mark uuid,
            attempt int4 NOT NULL,
            class int2 NOT NULL,
            first int2,
            parked bool NOT NULL,
            lane text COLLATE "C" NOT NULL,
            sealed bytea NOT NULL
        ) WITH (toast_tuple_target = 8160)
        """,
        "ALTER TABLE outbox ALTER COLUMN sealed SET STORAGE EXTERNAL",
        "CREATE INDEX in_memory_by_owner ON outbox (owner) WHERE NOT parked",
        """
        CREATE INDEX parked_by_origin ON outbox (owner, lane, class, origin, not_before, id) WHERE parked
        """,
        "CREATE INDEX parked_by_due ON outbox (owner, lane, not_before) WHERE parked",
        "CREATE INDEX parked_by_custody ON outbox (owner, custody_ends) WHERE parked",
        """
        CREATE TABLE marks (
            mark uuid PRIMARY KEY, id uuid NOT NULL, minute int4 NOT NULL, first int2
        ) WITH (fillfactor = 90)
        """,
        "CREATE INDEX marks_by_minute ON marks (minute)",
        """
        CREATE TABLE owners (
            owner uuid PRIMARY KEY, alive_until int8 NOT NULL, rows int8 NOT NULL DEFAULT 0,
            bytes int8 NOT NULL DEFAULT 0
        ) WITH (fillfactor = 50)
        """,
        "CREATE TABLE settings (name text COLLATE \"C\" PRIMARY KEY, value bytea NOT NULL)",
        """
        CREATE TABLE heads (
            name text COLLATE "C" PRIMARY KEY, revision int8 NOT NULL
        ) WITH (fillfactor = 10)
        """,
        "INSERT INTO heads (name, revision) VALUES ('records', 0)"
    ]

    /// A few rows, each written every few seconds.
    private static let second = [
        """
        CREATE TABLE members (
            owner uuid NOT NULL, grp text COLLATE "C" NOT NULL, joined int8 NOT NULL,
            alive_until int8 NOT NULL, has_left bool NOT NULL, PRIMARY KEY (owner, grp)
        ) WITH (fillfactor = 50)
        """
    ]

    /// `ANALYZE` keeps samples of narrow columns in a table of its own, and of sealed ones it must keep none:
    /// they would outlive what they were taken from (decision 0035). And where every row goes within seconds,
    /// a vacuum that waits for a fifth of the table comes late.
    private static let third = [
        "ALTER TABLE records ALTER COLUMN body SET STATISTICS 0",
        "ALTER TABLE outbox ALTER COLUMN sealed SET STATISTICS 0",
        "ALTER TABLE settings ALTER COLUMN value SET STATISTICS 0",
        """
        ALTER TABLE outbox SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000,
        autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 2000)
        """,
        """
        ALTER TABLE marks SET (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 5000)
        """
    ]

    /// The address that its registration named when a push was made. It has no default, so no row is written.
    private static let fourth = ["ALTER TABLE outbox ADD COLUMN address uuid"]

    /// Pushes that are owed to a registration are found by it, whoever owes them. `ended` tells an owner
    /// which pushes in its memory another owner's commit has ended; it has a row for each of these for a
    /// minute.
    private static let fifth = [
        "DROP INDEX in_memory_by_owner",
        "CREATE INDEX in_memory_by_owner ON outbox (owner, record) WHERE NOT parked",
        "CREATE INDEX parked_by_record ON outbox (record) WHERE parked AND record IS NOT NULL",
        """
        CREATE TABLE ended (
            owner uuid NOT NULL, id uuid NOT NULL, at int8 NOT NULL, PRIMARY KEY (owner, id)
        ) WITH (fillfactor = 50)
        """
    ]

    /// Expired records of each owner by number; those that are too young are skipped in the index.
    private static let sixth = [
        """
        CREATE INDEX expired_by_owner ON records (owner, version, state_at, expires_at)
        WHERE \(RecordSQL.isListed)
        """
    ]

    private static let table = """
        CREATE TABLE IF NOT EXISTS migrations (
            number int4 PRIMARY KEY, name text NOT NULL, breaks bool NOT NULL, begun_at timestamptz NOT NULL,
            finished_at timestamptz
        )
        """

    /// Brings the schema up to this program's.
    ///
    /// - Throws: `.newerSchema`, `.halfMigrated`, `.denied` where the user may not create tables.
    static func migrate(_ session: PostgresSession, limits: PostgresLimits) throws(PostgresFault) {
        let end = ContinuousClock.now + limits.migrationPatience
        try makeTable(session, until: end)
        // Ends, because each round finds nothing to do, takes a step, or uses up time.
        while true {
            let state = try look(session)
            guard let step = steps.first(where: { !state.finished.contains($0.number) }) else { return }
            if state.begun.contains(step.number) {
                guard ContinuousClock.now < end else { throw .store(StoreError(.halfMigrated)) }
                Pause.milliseconds(pauseMilliseconds)
                continue
            }
            do {
                try make(step, session)
            } catch .refused(let state) where state.mayPass || state.text == "55P03" {
                guard ContinuousClock.now < end else { throw .store(StoreError(.unavailable)) }
            }
        }
    }

    /// Whether this program's schema is there; nothing is made.
    ///
    /// - Throws: `.newerSchema`, `.halfMigrated`.
    static func stands(_ session: PostgresSession) throws(PostgresFault) -> Bool {
        let there = Query(Statement(once: "SELECT to_regclass('migrations') IS NOT NULL"))
        guard try session.run([there], commits: false)[0].bool(0, 0) else { return false }
        switch try standing(session) {
        case .absent, .older: return false
        case .current, .newer: return true
        case .half: throw .store(StoreError(.halfMigrated))
        }
    }

    private static let pauseMilliseconds: Int32 = 200

    /// Steps that are made, and those that were begun and are not finished.
    private struct State {
        var finished: Set<Int> = []
        var begun: Set<Int> = []
        /// There are steps that this program does not know.
        var isNewer = false
    }

    private static func look(_ session: PostgresSession) throws(PostgresFault) -> State {
        let rows = try session.run([Query(SchemaSQL.schemaSteps)], commits: false)[0]
        var state = State()
        for row in 0..<rows.count {
            let number = Int(try rows.int(row, 0))
            if number > steps.count {
                if rows.bool(row, 1) { throw .store(StoreError(.newerSchema)) }
                state.isNewer = true
            } else if rows.bool(row, 2) {
                state.finished.insert(number)
            } else {
                state.begun.insert(number)
            }
        }
        return state
    }

    /// How the schema stands, for anyone who only looks.
    ///
    /// - Throws: `.newerSchema`
    static func standing(_ session: PostgresSession) throws(PostgresFault) -> PostgresInspection.Schema {
        let state = try look(session)
        if let step = state.begun.min() { return .half(step: step) }
        guard steps.allSatisfy({ state.finished.contains($0.number) }) else { return .older }
        return state.isNewer ? .newer : .current
    }

    /// Two processes that create one table at once may both be told that it is not there; one of them then
    /// meets the other's row of the catalogue.
    private static func makeTable(
        _ session: PostgresSession, until end: ContinuousClock.Instant
    ) throws(PostgresFault) {
        while true {
            do {
                try session.run([Query(Statement(once: table))], commits: true)
                return
            } catch .refused(let state) where ["23505", "42P07", "42710", "XX000"].contains(state.text) {
                guard ContinuousClock.now < end else { throw .refused(state) }
                Pause.milliseconds(pauseMilliseconds / 10)
            }
        }
    }

    private static func make(_ step: Step, _ session: PostgresSession) throws(PostgresFault) {
        try session.transaction { session throws(PostgresFault) in
            let begun = try session.run(
                [
                    Query(PostgresSQL.begin),
                    Query(SchemaSQL.beginStep) { query in
                        query.add(int32: step.number)
                        query.add(step.name)
                        query.add(step.breaks)
                    }
                ], commits: false)[1]
            guard begun.count == 1 else {
                // Another process made it while we waited for the row.
                try session.run([Query(PostgresSQL.rollback)], commits: false)
                return
            }
            try session.run(
                step.statements.map { Query(Statement(once: $0)) } + [
                    Query(SchemaSQL.finishStep) { $0.add(int32: step.number) }, Query(PostgresSQL.commit)
                ], commits: true)
        }
    }
}
