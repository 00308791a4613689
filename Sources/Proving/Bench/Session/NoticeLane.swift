import AtRest
import Delivery
import PushModel
import PushTesting
import SQLiteStore
import SessionPush
import SwarmIngress

/// The way of messages up to their lanes, over a file of SQLite; and what the commits alone cost, with the
/// same pushes from as many callers. Each time with a store of its own, which remembers no push.
///
/// The lanes send nothing: whoever waits for a slot waits until the end.
struct NoticeLane: Sendable {
    private let relay: SessionRelay
    private let bodies: [Secret]
    /// That all messages have together.
    private let pushes: Int
    private let instance: ConfiguredName
    private let app: ConfiguredName
    private let world: World
    /// As many messages as a relay takes in at once.
    private static let callers = SwarmLimits().workers

    init(_ parts: NoticeParts, world: World) throws {
        (relay, bodies, pushes) = (parts.relay, parts.bodies, parts.bodies.count * parts.devices)
        self.world = world
        app = try SessionMaterial.app().name
        instance = app
    }

    /// - Returns: CPU time from the first message's bytes until the last one's pushes stand in the store and
    ///   in the memory of their lanes.
    func hand() async throws -> Duration {
        let lanes = [PushService.apns, .fcm].map { lane($0) }
        return try await withStore { engine, store in
            let core = DeliveryService(
                outbox: store, registry: store,
                setup: DeliveryService.Setup(
                    apps: apps,
                    lanes: lanes.map {
                        DeliveryService.LaneSpec(ClosedProvider(lane: $0), credential: Credential())
                    },
                    overrides: [:]), world: world, journal: .silent)
            return try await withThrowingTaskGroup(of: Void.self) { services in
                services.addTask { try await engine.run() }
                services.addTask { try await core.run() }
                defer { services.cancelAll() }
                let time = try await measure { at in
                    let push = try StoragePush(parsing: bodies[at])
                    let verdict = try await relay.receive(.notified(push))
                    _ = try await core.intake.admit(verdict, instance: instance)
                }
                let held = core.snapshot().reduce(0) { $0 + $1.inMemory }
                guard held == pushes else { throw BenchError(.setUpRefused) }
                try forget()
                return time
            }
        }
    }

    /// - Returns: CPU time of the commits alone.
    func commit() async throws -> Duration {
        var acceptances: [Acceptance] = []
        for body in bodies {
            let pushes = try await relay.receive(.notified(try StoragePush(parsing: body))).pushes
            acceptances.append(
                Acceptance(
                    instance: instance,
                    items: pushes.map {
                        Acceptance.Item(push: $0, lane: lane($0.message.service), parked: false)
                    }, changes: []))
        }
        try forget()
        return try await withStore { [acceptances] engine, store in
            try await withThrowingTaskGroup(of: Void.self) { services in
                services.addTask { try await engine.run() }
                defer { services.cancelAll() }
                try await store.renew(for: .seconds(60))
                return try await measure { at in
                    guard case .committed = try await store.accept(acceptances[at]) else {
                        throw BenchError(.setUpRefused)
                    }
                }
            }
        }
    }

    /// Lets the relay's filter take all messages again.
    private func forget() throws {
        for body in bodies { relay.release(try StoragePush(parsing: body)) }
    }

    private func lane(_ service: PushService) -> LaneName {
        LaneName(app: app, service: service, environment: .production)
    }

    private var apps: AppDirectory {
        AppDirectory([
            AppDirectory.Instance(
                name: instance,
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

    private func measure(_ one: @escaping @Sendable (Int) async throws -> Void) async throws -> Duration {
        let count = bodies.count
        let start = ProcessUsage.ownCPU()
        try await withThrowingTaskGroup(of: Void.self) { callers in
            for caller in 0..<Self.callers {
                callers.addTask {
                    for at in stride(from: caller, to: count, by: Self.callers) { try await one(at) }
                }
            }
            try await callers.waitForAll()
        }
        return ProcessUsage.ownCPU() - start
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
