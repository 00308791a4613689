import AtRest
import Delivery
import PushModel
import PushTesting
import SQLiteStore

/// The way of what a role has judged up to its lanes, over a file of SQLite; and what the commits alone cost,
/// with the same pushes from as many callers. Each time with a store of its own, which remembers no push.
///
/// The lanes send nothing: whoever waits for a slot waits until the end.
struct LaneWay: Sendable {
    /// What is committed together.
    typealias Judged = (pushes: [Push], changes: [Change])

    private struct Cost {
        /// CPU time.
        let time: Duration
        let commits: Int
    }

    /// Inbounds.
    let count: Int
    /// That all of them have together.
    let pushes: Int
    /// As many inbounds as a relay takes in at once.
    let callers: Int
    let app: ConfiguredName
    let world: World
    /// From an inbound's bytes to what is committed.
    let judge: @Sendable (_ inbound: Int) async throws -> Judged

    /// From the first inbound's bytes until the last one's pushes stand in the store and in the memory of
    /// their lanes.
    private func hand() async throws -> Cost {
        try await withStore { engine, store in
            let core = DeliveryService(
                outbox: store, registry: store,
                setup: DeliveryService.Setup(
                    apps: apps,
                    lanes: [lane(.apns, .production), lane(.apns, .sandbox), lane(.fcm, .production)].map {
                        DeliveryService.LaneSpec(ClosedProvider(lane: $0), credential: Credential())
                    },
                    overrides: [:]), world: world, journal: .silent)
            return try await withThrowingTaskGroup(of: Void.self) { services in
                services.addTask { try await engine.run() }
                services.addTask { try await core.run() }
                defer { services.cancelAll() }
                let cost = try await measure(engine, callers) { at in
                    let judged = try await judge(at)
                    let verdict = Verdict<Void, BenchError>(
                        pushes: judged.pushes, changes: judged.changes, reply: .now(()))
                    try await core.intake.admit(verdict, instance: app)
                }
                let held = core.snapshot().reduce(0) { $0 + $1.inMemory }
                guard held == pushes else { throw BenchError(.setUpRefused) }
                return cost
            }
        }
    }

    /// The commits alone.
    private func commit(from callers: Int) async throws -> Cost {
        var acceptances: [Acceptance] = []
        for at in 0..<count {
            let judged = try await judge(at)
            acceptances.append(
                Acceptance(
                    instance: app,
                    items: judged.pushes.map {
                        Acceptance.Item(
                            push: $0, lane: lane($0.message.service, $0.message.environment ?? .production),
                            parked: false)
                    }, changes: judged.changes))
        }
        return try await withStore { [acceptances] engine, store in
            try await withThrowingTaskGroup(of: Void.self) { services in
                services.addTask { try await engine.run() }
                defer { services.cancelAll() }
                try await store.renew(for: .seconds(60))
                return try await measure(engine, callers) { at in
                    guard case .committed = try await store.accept(acceptances[at]) else {
                        throw BenchError(.setUpRefused)
                    }
                }
            }
        }
    }

    /// How many callers make as many commits alone as there are on the whole way: what is judged comes one
    /// after the other, so that fewer share one than there are callers.
    private func sharing(
        _ forget: () throws -> Void
    ) async throws -> (callers: Int, commits: Int, alone: Int) {
        let commits = try await hand().commits
        try forget()
        var best = (callers: 0, alone: Int.max)
        for callers in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32] {
            let alone = try await commit(from: callers).commits
            try forget()
            if abs(alone - commits) < abs(best.alone - commits) { best = (callers, alone) }
        }
        return (best.callers, commits, best.alone)
    }

    /// Measures the way, turn by turn with the commits alone.
    ///
    /// - Parameter primitives: all but the commit, in seconds of all inbounds.
    /// - Returns: the primitives beside the whole.
    func measure(
        rounds: Int, primitives: Double, forget: () throws -> Void = {}, _ name: String,
        _ report: inout BenchReport
    ) async throws -> Double {
        var (whole, commits): ([Double], [Double]) = ([], [])
        // Which is for pages and tables as well.
        let sharing = try await sharing(forget)
        for _ in 0..<rounds {
            whole.append(try await hand().time.inSeconds)
            try forget()
            commits.append(try await commit(from: sharing.callers).time.inSeconds)
            try forget()
        }
        let each = 1e6 / Double(count)
        report.add("\(name)_commits", sharing.commits)
        report.add("\(name)_commits_alone", sharing.alone)
        report.add("\(name)_to_lane_microseconds", Median.of(whole) * each, digits: 2)
        report.add("\(name)_commit_microseconds", Median.of(commits) * each, digits: 2)
        let ratio = Median.of(zip(commits, whole).map { (primitives + $0) / $1 })
        report.add("\(name)_to_lane_to_primitives", ratio)
        return ratio
    }

    private func lane(_ service: PushService, _ environment: Environment) -> LaneName {
        LaneName(app: app, service: service, environment: environment)
    }

    private var apps: AppDirectory {
        AppDirectory([
            AppDirectory.Instance(
                name: app,
                apps: [
                    AppDirectory.App(
                        name: app, outlets: [APNsOutlet(bundles: .any), FCMOutlet(isDefault: true)])
                ])
        ])
    }

    private func withStore<Result>(
        _ body: (SQLiteStore, SealedStore) async throws -> Result
    ) async throws -> Result {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let owner = OwnerID(Digest16(high: world.random(), low: world.random()))
        let engine = try SQLiteStore(path: folder.file("lane.sqlite"), owner: owner, world: world)
        let result = try await body(
            engine, try await SealedStore(engine: engine, keys: .generate(world), world: world))
        try engine.close()
        return result
    }

    private func measure(
        _ engine: SQLiteStore, _ callers: Int, _ one: @escaping @Sendable (Int) async throws -> Void
    ) async throws -> Cost {
        let before = engine.commits
        let start = ProcessUsage.ownCPU()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for caller in 0..<callers {
                group.addTask {
                    for at in stride(from: caller, to: count, by: callers) { try await one(at) }
                }
            }
            try await group.waitForAll()
        }
        return Cost(time: ProcessUsage.ownCPU() - start, commits: engine.commits - before)
    }
}

/// A push service to which no connection opens.
private struct ClosedProvider: Provider {
    struct Slot: SendSlot {
        func release() {}
    }

    let lane: LaneName

    func run() async throws { _ = await wait() }

    func reserve() async throws(CancellationError) -> Slot {
        await wait()
        throw CancellationError()
    }

    func send(_ leased: LeasedPush, on slot: Slot) async -> Answer { preconditionFailure("no slot is given") }

    private func wait() async {
        let (endless, end) = AsyncStream.makeStream(of: Never.self)
        for await _ in endless {}
        withExtendedLifetime(end) {}
    }
}
