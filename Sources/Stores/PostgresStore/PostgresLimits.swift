package import PushModel

/// Every bound of the PostgreSQL engine, with its reason.
package struct PostgresLimits: Sendable {
    /// Owed pushes of all processes together; more is `full`. What the others owe is known as of the last
    /// renewal, so the bound may be passed by what they accept in those seconds.
    package var outboxRows = 2_000_000
    /// Bytes of sealed pushes, of all processes together.
    package var outboxBytes = 4 << 30
    /// Of both, for one app. Divided among the processes on the database, because each counts its own.
    package var share = AppShare()
    /// Connections, each with a thread of its own. Calls are joined, so more gain nothing; with
    /// fewer than four a sweep could hold up what comes in.
    package var connections = 4
    /// How long the server may work on one statement.
    package var statementTimeout: Duration = .seconds(10)
    /// How long a statement may wait for a lock: above `deadlock_timeout`, below anyone's patience.
    package var lockTimeout: Duration = .seconds(5)
    /// How long a transaction may stay open without a statement from us: one exchange over a network. A
    /// process that is stopped in the middle of one must not block the others.
    package var idleTransactionTimeout: Duration = .seconds(3)
    /// How long an answer may take, beyond the statement's own time, before the connection counts as lost.
    package var answerGrace: Duration = .seconds(2)
    /// How long a call waits for a connection, those before it included.
    package var patience: Duration = .seconds(5)
    /// How long opening waits for a server that starts or is being replaced.
    package var openingPatience: Duration = .seconds(10)
    /// How long a starting process waits for another one that is in the midst of a migration.
    package var migrationPatience: Duration = .seconds(30)
    /// Between attempts to connect: from the first, doubling to the second, with jitter.
    package var reconnectAfter: Duration = .milliseconds(50)
    package var reconnectAtMost: Duration = .seconds(2)
    /// Calls of one kind that wait. Listeners let fewer requests in; more would be a fault of the caller.
    package var waitingJobs = 65_536
    /// Calls joined into one statement, and rows of one: beyond a few hundred a commit gains nothing.
    package var jobsPerBatch = 512
    package var rowsPerBatch = 2_048
    /// Bytes of sealed content joined into one statement: a call that is larger goes alone.
    package var bytesPerBatch = 4 << 20
    /// How long a settlement, for which nobody waits, looks for company; some commits long on a fast disk.
    package var lazyWait: Duration = .milliseconds(3)
    /// The number of steps from which a call need not wait for company.
    package var lazyRows = 256
    /// How often a batch is run again after the server ended it to break a deadlock.
    package var retries = 5
    /// Records that cannot be read and are set aside together; more are met again.
    package var unreadableAtOnce = 1_024
    /// Minutes that a mark is held at least (decision 0003).
    package var markMinutes = 10
    /// Marks that one sweep removes with one statement: some tenths of a second on one connection. A minute's
    /// marks end together, and each statement walks over what those before it removed.
    package var marksPerSweep = 20_000
    /// Between sweeps.
    package var sweepEvery: Duration = .seconds(10)
    /// Origins that one pass of a claim takes turns over: one step in the index for each.
    package var originsPerClaim = 1_024
    /// Passes of one claim over a class: each brings something, or looks at further origins.
    package var passesPerClaim = 8
    /// How long a dead process without pushes stays known: if it was stopped for longer, wakes and accepts,
    /// it creates its row again.
    package var ownerLife: Duration = .seconds(86_400)
    /// How long closing waits for calls under way.
    package var closing: Duration = .seconds(5)
    /// Most bytes of a table that is rewritten to forget deleted content: nobody can use it meanwhile, for
    /// some tenths of a second.
    package var rewriteBytes: Int64 = 64 << 20
    /// How long forgetting waits for a table; later statements wait behind it.
    package var forgetPatience: Duration = .milliseconds(50)
    /// Between two rounds of forgetting: each writes a segment of the log, 16 MiB.
    package var forgetRest: Duration = .seconds(60)
    /// At the latest after that long under unbroken load.
    package var forgetEvery: Duration = .seconds(600)
    /// Bytes of the outbox above which forgetting does not begin by vacuuming it: two seconds of a
    /// connection. The server's own vacuum frees such a file's end.
    package var vacuumBytes: Int64 = 512 << 20
    /// Dead rows that a vacuum left, from which on the next one waits for twice as many: half a gibibyte that
    /// a vacuum reads for some 6 µs a push at 2,000 a second. One minute's pushes at 8,000 a second are as
    /// many.
    package var deadRows = 500_000
    /// Between vacuums at most, where they wait: so long may rows stay after what kept them has gone.
    package var vacuumEvery: Duration = .seconds(600)
    /// How far the engine's clock is ahead of the server's: zero, but for tests that cannot wait.
    package var clockAhead: @Sendable () -> Duration = { .zero }

    package init() {}
}

extension PostgresLimits {
    /// ``clockAhead`` now, in milliseconds.
    var aheadMilliseconds: Int64 { clockAhead().wholeMilliseconds }
}
