import Synchronization

/// One seed: a relay of some processes, peers, and misfortune; then calm, and the judgement.
package struct SeedRun: Sendable {
    /// What is broken on purpose, to see that the law finds it.
    package struct Sabotage: OptionSet, Sendable {
        package let rawValue: Int
        package init(rawValue: Int) { self.rawValue = rawValue }
        /// A push is settled before it is sent.
        package static let settlesFirst = Sabotage(rawValue: 1)
        /// A push's mark is remembered beside the commit.
        package static let marksApart = Sabotage(rawValue: 2)
        /// The process counts on a lease that has ended for the store.
        package static let longLease = Sabotage(rawValue: 4)
        /// Commits are answered before they are on stable storage.
        package static let syncOff = Sabotage(rawValue: 8)
        /// A claim gives out rows that a dead process left, and leaves them its own.
        package static let claimsOthers = Sabotage(rawValue: 1 << 4)
        /// A claim that meets a row which does not open fails once it is made.
        package static let losesClaims = Sabotage(rawValue: 1 << 5)
        /// A look-up that fails says that an address is production's.
        package static let guessesEnvironment = Sabotage(rawValue: 1 << 6)
        /// Rows are taken back while a lane that has come meanwhile holds some of them.
        package static let reclaimsBesideReload = Sabotage(rawValue: 1 << 7)
        /// What a wrong clock calls over is destroyed.
        package static let trustsClocks = Sabotage(rawValue: 1 << 8)
        /// Rows are not taken back while a volatile push is under way.
        package static let waitsForVolatile = Sabotage(rawValue: 1 << 9)
        /// What the provider itself refuses counts as the service's word.
        package static let countsLocalRefusals = Sabotage(rawValue: 1 << 10)
        /// A halted lane probes with one push only.
        package static let probesWithOne = Sabotage(rawValue: 1 << 11)
        /// Nothing comes from the store while memory is half full.
        package static let waitsForRoom = Sabotage(rawValue: 1 << 12)
        /// Attempts that no service answered do not count.
        package static let forgetsAttempts = Sabotage(rawValue: 1 << 13)
        /// The tick waits for the store.
        package static let tickAwaitsStore = Sabotage(rawValue: 1 << 14)
        /// A connection that was closed while idle counts as one that failed.
        package static let blamesIdle = Sabotage(rawValue: 1 << 15)
        /// A push that is to be withdrawn stays.
        package static let keepsWithdrawn = Sabotage(rawValue: 1 << 16)
        /// What goes with a withdrawal is not made.
        package static let undoesNothing = Sabotage(rawValue: 1 << 17)
        /// One fault of the credential halts a lane.
        package static let haltsAtOnce = Sabotage(rawValue: 1 << 18)
        /// No phone that is told to wait is remembered.
        package static let forgetsPhones = Sabotage(rawValue: 1 << 19)
        /// A word about a push ends whatever registration stands by then.
        package static let endsNewer = Sabotage(rawValue: 1 << 20)
        /// What may have arrived counts as never looked at.
        package static let deniesArrival = Sabotage(rawValue: 1 << 21)
        /// A connection on which requests expire is kept.
        package static let keepsTheDeaf = Sabotage(rawValue: 1 << 22)
        /// One answer that refuses the credential is heard for the next pushes too.
        package static let repeatsRefusals = Sabotage(rawValue: 1 << 23)
        /// Each push goes to an address of its own, as a lane sees it.
        package static let mistakesDevices = Sabotage(rawValue: 1 << 24)
        /// Lanes do not hear what has ended with its registration.
        package static let keepsTheEnded = Sabotage(rawValue: 1 << 25)
        /// A page counts as the push service's own refusal.
        package static let believesPages = Sabotage(rawValue: 1 << 26)
        /// Answers to requests that were given up are thrown away.
        package static let losesLate = Sabotage(rawValue: 1 << 27)
        /// What may have arrived is sent again for as long as it is owed.
        package static let repeatsUnknown = Sabotage(rawValue: 1 << 28)
    }

    package enum EngineKind: String, Sendable, CaseIterable { case memory, sqlite }

    /// What came of a seed.
    package struct Report: Sendable {
        package let seed: UInt64
        package let engine: EngineKind
        package let processes: Int
        /// What the seed is like.
        package let traits: String
        package let violations: [Violation]
        /// For each law that was broken, what happened to the first push of these.
        package let stories: [Violation.Law: [String]]
        /// What happened to the relay, in order.
        package let chronicle: [String]
        /// What was still owed at the end, and by whom.
        package let standing: [String]
        package let owed: Int
        package let doubled: Int
        package let simulated: Duration
        package let jobs: Int
        /// Equal for equal runs.
        package let digest: UInt64
    }

    package let seed: UInt64
    package let engine: EngineKind?
    package let sabotage: Sabotage
    package let misbehaviours: Misbehaviour

    /// - Parameters:
    ///   - engine: `nil`: as the seed has it, a file for one in eight.
    ///   - misbehaviours: `nil`: as the seed has them.
    package init(
        seed: UInt64, engine: EngineKind? = nil, sabotage: Sabotage = [], misbehaviours: Misbehaviour? = nil
    ) {
        self.seed = seed
        self.engine = engine
        self.sabotage = sabotage
        self.misbehaviours = misbehaviours ?? Misbehaviour(seed: seed).union(sabotage.misbehaviours)
    }

    /// Runs the seed on the calling thread. Where it breaks the law it runs once more, the same way, to tell
    /// what happened: most seeds need no story.
    package func run() -> Report {
        let report = runOnce(isTold: false)
        return report.violations.isEmpty ? report : runOnce(isTold: true)
    }

    private func runOnce(isTold: Bool) -> Report {
        let scheduler = Scheduler(seed: seed)
        let kind = engine ?? (scheduler.chance(12) ? .sqlite : .memory)
        let count = kind == .sqlite ? 1 : scheduler.random(in: 2...4)
        let devices = scheduler.random(in: 2...8)
        let traits = Traits(scheduler, devices: devices, seed: seed, misbehaviours)
        let ledger = PushLedger(scheduler, traits, isTold: isTold)
        let calm = scheduler.machine()
        let isOver = Mutex(false)
        let stage = Stage(scheduler, ledger, kind, processes: count, devices: devices, traits, sabotage)
        calm.begin {
            await stage.play()
            isOver.withLock { $0 = true }
        }
        let end = scheduler.run { isOver.withLock(\.self) }
        if end != .over { ledger.record(.stuck) }
        stage.clear()
        let trace = scheduler.trace
        return Report(
            seed: seed, engine: kind, processes: count, traits: traits.words, violations: ledger.violations,
            stories: Dictionary(
                ledger.violations.map {
                    (
                        $0.law,
                        $0.law == .registrationLost || $0.law == .endedByOlderWord
                            ? ledger.story(ofDevice: $0.number) : ledger.story(of: $0.number)
                    )
                },
                uniquingKeysWith: { first, _ in first }),
            chronicle: ledger.chronicle, standing: ledger.standing, owed: ledger.owed,
            doubled: ledger.doubled, simulated: scheduler.elapsed, jobs: trace.jobs, digest: trace.digest)
    }
}
