package import PushModel

/// Every bound of the SQLite engine, with its reason.
package struct SQLiteLimits: Sendable {
    /// Owed pushes; more is `full`. At about 1.2 KiB each that is the bound of bytes below, nearly.
    package var outboxRows = 2_000_000
    /// Bytes of sealed pushes.
    package var outboxBytes = 4 << 30
    /// Of both, for one app.
    package var share = AppShare()
    /// Operations joined into one commit: beyond a few hundred a commit gains nothing, and the
    /// first of them waits longer.
    package var jobsPerCommit = 512
    /// Operations, and finds, that wait. Listeners let fewer requests in; more would be a fault of the
    /// caller.
    package var waitingJobs = 65_536
    /// Seconds for which an operation that nobody waits for may wait for company: far below what a person or
    /// a peer notices, and several commits long on a fast disk.
    package var lazyWait = 0.004
    /// Finds joined into one read.
    package var findsPerRead = 512
    /// Keys of a find that the writer reads between its commits: a millisecond or so, where a call may bring
    /// a thousand. Nearly every call brings fewer; a larger one is read beside the writer.
    package var keysPerTurn = 128
    /// Keys of all finds in one read: some milliseconds, and commits wait for it.
    package var keysPerRead = 1_024
    /// Records, or pushes, that cannot be read and are set aside together; more are met again.
    package var unreadableAtOnce = 1_024
    /// Revisions reserved with one write; a restart skips what is left of them.
    package var revisionsReserved: Int64 = 10_000
    /// How long a mark is held at least.
    package var markSpan: Duration = .seconds(600)
    /// Marks of one generation in memory: eight bytes a slot, so 1 MiB.
    package var marksPerGeneration = 98_304
    /// Generations. Together 8 MiB: above some 1,300 pushes a second the oldest marks go before their ten
    /// minutes are over, since memory must stay flat (issue: 64 MiB under load).
    package var markGenerations = 8
    /// Between two looks for blobs of marks that no longer count.
    package var purgeEvery: Duration = .seconds(1)
    /// Blobs that one look removes: several times as many as are made in that time, some hundred a second.
    package var blobsPerPurge = 1_024
    /// Pages of the log before SQLite moves them into the file: 32 MiB.
    package var checkpointPages = 8_192
    /// Quiet for that long, and the log is emptied, so that nothing forgotten stays in it.
    package var forgetAfter: Duration = .milliseconds(500)
    /// At the latest after that long under unbroken load.
    package var forgetEvery: Duration = .seconds(30)
    /// How long emptying the log waits for readers, and commits with it. Our own are done in a few
    /// milliseconds.
    package var forgetPatience: Duration = .milliseconds(50)
    /// How long a connection waits for another program's lock. Only an operator's tool has one.
    package static let busySeconds = 5
    /// KiB of page cache of each reading connection. It reads large calls, pages of records for commands, and
    /// what nobody waits for; what it would keep stands in the writer's cache or in the system's. Thirty
    /// pages: as many as the inner ones of forty thousand records.
    package var cacheKiB = 128
    /// KiB of the writer's, which finds records too: the inner pages of their tree are 3 MiB for a million,
    /// and one that is not here costs a find one more read, from the system's cache of files. Leaves of more
    /// than some thousand records are never all here. Each MiB more saves 0.1 reads a push, and nothing that
    /// a clock shows.
    package var writerCacheKiB = 5_120
    /// Origins that one claim takes turns over: two steps in the index for each, so some 5 ms. More wait for
    /// the next claim, which begins behind them.
    package var originsPerClaim = 512
    /// Origins that one claim looks at for something due. With thousands of origins in back-off the next
    /// claims look further, so that no origin is skipped for ever.
    package var originsSeenPerClaim = 2_048
    /// How often a failed batch is run again, savepoint by savepoint, before what is left of it fails: one
    /// fault that ends a whole transaction costs one round, and a disk that is full fails everything.
    package var replays = 3

    package init() {}
}
