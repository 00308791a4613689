import PushModel

/// What several relays on one database have to live through.
package enum ClusterScenario: String, Sendable, CaseIterable {
    /// Relays are killed at random moments and started again.
    case kills
    /// One is stopped for longer than its lease, and wakes up.
    case suspension
    /// The database server is killed, with all its processes, and started again.
    case crash
    /// The primary is killed and the standby promoted.
    case failover
    /// The network between one relay and the database falls silent, and later cuts its connections.
    case cut
    /// The push services take requests and answer none.
    case stall
    /// One relay is an older binary than the one that brought the schema up to date.
    case mixed
    /// A relay is killed once, then the database once: what every run of the tests can afford.
    case short

    /// What a trial runs that is told nothing else.
    package static let usual: [ClusterScenario] = [.kills, .suspension, .crash, .failover, .cut, .stall]
}

/// A trial of several relays on one database.
package struct ClusterPlan: Sendable {
    package var scenarios = ClusterScenario.usual
    /// A server of PostgreSQL has a synchronous standby. On SQLite there is one relay alone: for trying what
    /// does not need a server.
    package var store = TrialStore.postgres
    package var relays = 3
    package var kills = 20
    /// Times that the database server is killed.
    package var crashes = 3
    package var seed: UInt64
    /// Pushes a second that the load aims at. Two cores carry relays, database, push services and load.
    package var rate = 200
    /// Callers that ask at the same time: enough for the rate when each waits three seconds for its answer,
    /// as they do while a push service is silent.
    package var workers = 48
    package var devices = 200
    /// Pushes in one request: 1 to this many.
    package var mostItems = 10
    package var stall: Duration = .seconds(600)
    /// The lease of 20 s (docs/architecture.md), the ten in which others look for what the dead left, and as
    /// much again.
    package var suspension: Duration = .seconds(60)
    /// The database is away for one relay; longer than its lease too.
    package var cut: Duration = .seconds(60)
    /// Load before a fault and behind it.
    package var calm: Duration = .seconds(5)
    /// Resident memory that no relay may pass. One under load has some 60 to 100 MiB (release); a lane holds
    /// at most 4,096 pushes of some 2 KiB, and connections to the database and the services are few.
    package var memoryLimitMiB = 256.0
    /// From the kill of the primary to the first acknowledged push.
    package var failoverLimit: Duration = .seconds(15)
    package var executable: String
    /// The binary of the last commit before the newest migration; for `.mixed`.
    package var olderExecutable: String?
    /// An empty directory of the trial's own.
    package var directory: String

    package init(executable: String, directory: String, seed: UInt64) {
        self.executable = executable
        self.directory = directory
        self.seed = seed
    }

    func check() throws(BenchError) {
        let isSane =
            (1...8).contains(relays) && (1...10_000).contains(kills) && (1...100).contains(crashes)
            && (1...20_000).contains(rate) && (1...512).contains(workers) && !scenarios.isEmpty
            && (store == .postgres || (relays == 1 && ClusterScenario.ofOneRelay.isSuperset(of: scenarios)))
            && (!scenarios.contains(.mixed) || (olderExecutable != nil && relays > 1))
        guard isSane else { throw BenchError(.badPlan) }
    }

    /// A caller gives up waiting and asks again. The relay's own answer comes within 3 s
    /// (docs/architecture.md).
    static let answerSpan = Duration.seconds(8)
    /// From the end of the load on, so long for everything owed to arrive: a lease, a takeover, and the steps
    /// of the back-off, whose cap is a minute.
    static let drainSpan = Duration.seconds(180)
    /// A relay sends for as long as its lease holds, less the request deadline (docs/architecture.md): so
    /// long after the last renewal that the database can have seen, and so long may it send what it cannot
    /// settle.
    static let sendsOnFor = Duration.seconds(10)
    /// The pauses have half of that on average.
    private var mostPause: Int { max(1, workers * (mostItems + 1) * 1000 / (2 * rate) * 2) }

    /// A request that nobody answers for as long as draining takes belongs to no load any more.
    var manners: TrialCaller.Manners {
        .init(
            mostItems: mostItems, mostPause: mostPause, answerSpan: Self.answerSpan, patience: Self.drainSpan,
            waitsForTheEnd: false, rest: 20)
    }
}

extension ClusterScenario {
    /// Those that show nothing unless a relay has sent what another had accepted.
    static let takingOver: Set<ClusterScenario> = [.kills, .suspension, .cut]
    /// Those that a relay on SQLite can live through.
    static let ofOneRelay: Set<ClusterScenario> = [.kills, .suspension, .stall]
}
