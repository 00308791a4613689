package import Delivery
package import PushModel
package import PushTesting

/// One instance with one app, `acme`, or several, from intake to push services: the real store, sealed and in
/// memory, the real delivery, and services that answer as the test says.
package struct DeliveryRig: Sendable {
    package static let app = configured("acme")

    package let instance: ConfiguredName
    package let store: StoreSpy
    package let services: StubServices
    package let delivery: DeliveryService

    /// - Parameter outlets: the app's outlets; without any, the instance has no app.
    /// - Parameter rows: how many pushes the store owes at most.
    package init(
        _ instance: ConfiguredName, outlets: [any ServiceOutlet],
        override: (@Sendable (Answer) -> Outcome?)? = nil, rows: Int = 10_000,
        limits: DeliveryLimits = DeliveryLimits(), world: World
    ) async throws {
        let apps = outlets.isEmpty ? [] : [AppDirectory.App(name: Self.app, outlets: outlets)]
        try await self.init(
            instance, apps: apps, override: override, rows: rows, limits: limits, world: world)
    }

    /// The same with several apps.
    package init(
        _ instance: ConfiguredName, apps: [AppDirectory.App],
        override: (@Sendable (Answer) -> Outcome?)? = nil, rows: Int = 10_000,
        limits: DeliveryLimits = DeliveryLimits(), world: World
    ) async throws {
        self.instance = instance
        store = StoreSpy(try await SealedMemory(world, rows: rows).store)
        services = StubServices(now: world.now)
        let services = services
        let specs = apps.flatMap { app in
            app.outlets.map { outlet in
                let service = type(of: outlet).service
                let lane = LaneName(app: app.name, service: service, environment: .production)
                return DeliveryService.LaneSpec(services.provider(lane), credential: Credential())
            }
        }
        delivery = DeliveryService(
            outbox: store, registry: store,
            setup: DeliveryService.Setup(
                apps: AppDirectory([AppDirectory.Instance(name: instance, apps: apps)]), lanes: specs,
                overrides: override.map { [instance: $0] } ?? [:]),
            limits: limits, world: world, journal: .silent)
    }

    /// Runs the delivery while `body` runs.
    package func running<Result: Sendable>(_ body: () async throws -> Result) async throws -> Result {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await delivery.run() }
            let result = try await body()
            group.cancelAll()
            // A delivery under test ends by cancellation.
            do { try await group.waitForAll() } catch is CancellationError { return result }
            return result
        }
    }
}
