import Delivery
import PushModel

/// From a configuration to what the delivery core runs: lanes, the directory of apps, each protocol's
/// overrides.
struct DeliverySetup {
    let configuration: RelayConfiguration
    private let context: LaneContext

    init(configuration: RelayConfiguration, _ around: Surroundings) {
        self.configuration = configuration
        context = LaneContext(
            proxy: configuration.proxy, group: around.group, world: around.world, journal: around.journal,
            options: around.spans.pushServices)
    }

    /// - Throws: `CommandFailure` that names the file or the app at fault.
    func make(
        _ cache: inout CredentialCache, for instances: [any HostedInstance]
    ) throws(CommandFailure) -> DeliveryService.Setup {
        var specs: [DeliveryService.LaneSpec] = []
        for app in configuration.apps {
            for settings in app.services {
                specs += try settings.laneSpecs(of: app.name, on: context, &cache)
            }
        }
        let own = instances.compactMap(\.ownLanes)
        specs += own.flatMap(\.specs)
        var overrides: [ConfiguredName: @Sendable (Answer) -> Outcome?] = [:]
        for instance in instances { overrides[instance.name] = instance.override }
        return DeliveryService.Setup(apps: directory(own), lanes: specs, overrides: overrides)
    }

    private func directory(_ own: [OwnLanes]) -> AppDirectory {
        let brought = own.map(\.directory)
        return AppDirectory(
            configuration
                .instances.filter { instance in !brought.contains { $0.name == instance.name } }
                .map { instance in
                    let apps = instance.apps.compactMap(configuration.app).map { app in
                        AppDirectory.App(
                            name: app.name,
                            outlets: app.services.map { $0.outlet(of: app.name, in: instance) })
                    }
                    return AppDirectory.Instance(name: instance.name, apps: apps)
                } + brought)
    }
}
