import AtRest
import Delivery
import PushModel
import PushTesting
import SQLiteStore

/// The way of inbounds up to their lanes, over a file of SQLite; and the primitives alone, the commit of the
/// same pushes among them, from as many callers. Each time with a store of its own, which remembers no push.
///
/// The lanes send nothing: whoever waits for a slot waits until the end.
struct LaneWay<Reply: Sendable, Failure: PushError>: Sendable {
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
    /// All of an inbound's primitives but the commit. Callers have numbers from 0 on.
    let primitives: @Sendable (_ inbound: Int, _ caller: Int) async throws -> Void
    /// From an inbound's bytes to what is admitted; its reply waits for nothing.
    let judge: @Sendable (_ inbound: Int) async throws -> Verdict<Reply, Failure>

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
                let cost = try await measure(engine, callers) { at, _ in
                    _ = try await core.intake.admit(try await judge(at), instance: app)
                }
                let held = core.snapshot().reduce(0) { $0 + $1.inMemory }
                guard held == pushes else { throw BenchError(.setUpRefused) }
                return cost
            }
        }
    }

    /// The primitives alone. They take turns with the commits, as on the whole way: what two processors do at
    /// once, and what one does with memory that another task had, costs more than the same thing again and
    /// again.
    private func alone(from callers: Int) async throws -> Cost {
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
                return try await measure(engine, callers) { at, caller in
                    try await primitives(at, caller)
                    guard case .committed = try await store.accept(acceptances[at]) else {
                        throw BenchError(.setUpRefused)
                    }
                }
            }
        }
    }

    /// The primitives alone, with as many commits as that. As many callers as on the whole way make nearly as
    /// many; for the few more or less there are, the cost of one is taken from half as many callers, who make
    /// more commits of the same pushes.
    private func alone(commits: Int, _ forget: () throws -> Void) async throws -> Double {
        let wide = try await alone(from: callers)
        try forget()
        let narrow = try await alone(from: callers / 2)
        try forget()
        let more = narrow.commits - wide.commits
        // A disk that answers at once: the width changes nothing.
        guard more * 4 > wide.commits else { return wide.time.inSeconds }
        let share = Double(commits - wide.commits) / Double(more)
        return wide.time.inSeconds + share * (narrow.time.inSeconds - wide.time.inSeconds)
    }

    /// Measures the way, turn by turn with the primitives alone.
    ///
    /// - Returns: the primitives beside the whole.
    func measure(
        rounds: Int, forget: () throws -> Void = {}, _ name: String, _ report: inout BenchReport
    ) async throws -> Double {
        let costs = try await Rounds(rounds) {
            let cost = try await hand()
            try forget()
            let alone = try await alone(commits: cost.commits, forget)
            return [
                "whole": cost.time.inSeconds / Double(count), "primitives": alone / Double(count),
                "commits": Double(cost.commits)
            ]
        }
        let ratio = costs["primitives"] / costs["whole"]
        report.add("\(name)_commits", Int(costs["commits"].median))
        report.add("\(name)_to_lane", microseconds: costs["whole"], digits: 2)
        report.add("\(name)_to_lane_primitives", microseconds: costs["primitives"], digits: 2)
        report.add("\(name)_to_lane_to_primitives", ratio: ratio)
        return ratio.median
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
        _ engine: SQLiteStore, _ callers: Int,
        _ one: @escaping @Sendable (_ inbound: Int, _ caller: Int) async throws -> Void
    ) async throws -> Cost {
        let before = engine.commits
        let start = ProcessUsage.ownCPU()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for caller in 0..<callers {
                group.addTask {
                    for at in stride(from: caller, to: count, by: callers) { try await one(at, caller) }
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
