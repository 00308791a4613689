import PushModel

/// All SQL that the engine runs is in this folder, one file for each kind of row, except the steps of
/// `PostgresSchema`. Here: transactions, sessions, and the parts of the others.
///
/// Only features that other databases with PostgreSQL's protocol have too: no `LISTEN`, no advisory lock, no
/// function of our own. Every statement that a push passes finds its rows by an index
/// (`PostgresQueryPlanTests`).
///
/// Locks are taken in one order: `heads`, then `outbox`, then `marks`, and rows of one table in the order of
/// their keys where two processes can want the same ones. A transaction that a deadlock still undoes is run
/// again.
enum PostgresSQL {
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

    /// $1 names, $2 values: for one transaction.
    static let configureOnce = Statement(
        55,
        """
        SELECT count(set_config(s.name, s.value, true))
        FROM unnest($1::text[], $2::text[]) AS s(name, value)
        """)

    static let inspectServer = Statement(
        5,
        """
        SELECT current_setting('fsync'), current_setting('full_page_writes'),
        current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
        current_setting('transaction_read_only'), pg_is_in_recovery(),
        pid::int8, (extract(epoch FROM backend_start) * 1000000)::int8, current_setting('server_version')
        FROM pg_stat_activity WHERE pid = pg_backend_pid()
        """)

    /// Ends processes behind lost connections, because what they have not committed yet could stand a moment
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

    /// One more than a number of ours; of one that cannot be ours, the first.
    static func raised(_ column: String) -> String {
        "(CASE WHEN \(column) BETWEEN 0 AND \(RowBounds.counts.upperBound - 1) THEN \(column) + 1 ELSE 1 END)"
    }

    /// The counts that an owner has reported, or zero for impossible ones: all processes add them up, and a
    /// wrong sum would make them refuse pushes.
    static func owed(_ column: String) -> String {
        "(CASE WHEN \(column) BETWEEN 0 AND \(mostOwed) THEN \(column) ELSE 0 END)"
    }

    /// Bytes, a hundred times as many as a disk holds.
    private static let mostOwed = 1 << 48

    /// A moment or a span, as long as any can be.
    static func bounded(_ column: String) -> String {
        "least(greatest(\(column), 0), \(RowBounds.counts.upperBound))"
    }

    /// The time in a column, but none that is further away than this.
    static func earlier(_ column: String, than span: Duration, _ ahead: String) -> String {
        """
        least(CASE WHEN \(column) >= 0 THEN \(column) END, \(clock(ahead)) + \(span.wholeMilliseconds))
        """
    }

    /// Until when an owner is alive: a time that is years away was not written by a lease, and would keep its
    /// owner's pushes for ever.
    static func lease(_ column: String, _ ahead: String) -> String {
        """
        (CASE WHEN \(column) > \(clock(ahead)) + \(longestLease.wholeMilliseconds) THEN 0
        ELSE \(column) END)
        """
    }

    /// Whether somebody lives by that column.
    static func lives(_ column: String, _ ahead: String) -> String {
        "(\(lease(column, ahead)) > \(clock(ahead)))"
    }

    /// Far longer than any lease, and than what `DeathClock` takes off the server's clock where nobody may be
    /// told dead by it.
    private static let longestLease = Duration.seconds(100 * 365 * 86_400)

    /// Finds the rows of a table one by one, each by its key in an index: `column = key`, in other words. For
    /// an equality the planner also weighs to read all of the index in its order, and takes that where it
    /// believes the table to hold next to nothing, as it does behind every vacuum of an outbox that is worked
    /// off: then each push pays for all that are owed, and for all dead ones that an old snapshot keeps.
    static func each(_ column: String, _ key: String) -> String { "\(column) BETWEEN \(key) AND \(key)" }
}
