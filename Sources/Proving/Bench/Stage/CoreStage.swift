import AtRest
import Delivery
import PushModel
import SQLiteStore

/// The delivery core over a file of SQLite, in this process, with one lane: the stage of what needs no relay.
struct CoreStage: Sendable {
    let engine: SQLiteStore
    let store: SealedStore
    let app: ConfiguredName
    let instance: ConfiguredName
    private let world: World

    /// - Parameters:
    ///   - name: of the app and of the file.
    ///   - world: the core's.
    /// - Throws: `BenchError`, `StoreError`.
    init(_ name: String, in directory: String, world: World) async throws {
        guard let app = ConfiguredName(name), let instance = ConfiguredName("\(name)-main") else {
            throw BenchError(.badPlan)
        }
        (self.app, self.instance, self.world) = (app, instance, world)
        let owner = OwnerID(Digest16(high: world.random(), low: world.random()))
        engine = try SQLiteStore(path: "\(directory)/\(name).sqlite", owner: owner, world: world)
        store = try await SealedStore(engine: engine, keys: .generate(world), world: world)
    }

    /// The core, which sends by this provider.
    func makeCore(
        _ provider: some Provider, _ outlet: any ServiceOutlet, limits: DeliveryLimits = DeliveryLimits()
    ) -> DeliveryService {
        let apps = AppDirectory([
            AppDirectory.Instance(name: instance, apps: [AppDirectory.App(name: app, outlets: [outlet])])
        ])
        return DeliveryService(
            outbox: store, registry: store,
            setup: DeliveryService.Setup(
                apps: apps, lanes: [DeliveryService.LaneSpec(provider, credential: Credential())],
                overrides: [:]), limits: limits, world: world, journal: .silent)
    }

    /// Lets store and core run beside `body`.
    func run<Result: Sendable>(
        _ core: DeliveryService, beside body: () async throws -> Result
    ) async throws -> Result {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await engine.run() }
            group.addTask { try await core.run() }
            defer { group.cancelAll() }
            return try await body()
        }
    }

    /// One call with these pushes.
    func admit(_ pushes: [Push], _ core: DeliveryService) async throws {
        var verdict = Verdict<Void, BenchError>(pushes: pushes, reply: .now(()))
        verdict.turns = .byOrigin
        try await core.intake.admit(verdict, instance: instance)
    }
}
