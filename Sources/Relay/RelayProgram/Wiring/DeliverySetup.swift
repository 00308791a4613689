import Delivery
import PushModel

/// From a configuration to what the delivery core runs: lanes, the directory of apps, each protocol's
/// overrides.
struct DeliverySetup {
    let configuration: RelayConfiguration
    private let ground: LaneGround

    init(configuration: RelayConfiguration, _ around: Surroundings) {
        self.configuration = configuration
        ground = LaneGround(
            proxy: configuration.proxy, group: around.group, world: around.world, journal: around.journal,
            options: around.spans.pushServices)
    }

    /// - Throws: `CommandFailure` that names the file or the app at fault.
    func make(
        _ shelf: inout CredentialShelf, for instances: [any HostedInstance]
    ) throws(CommandFailure) -> DeliveryService.Setup {
        var specs: [DeliveryService.LaneSpec] = []
        for app in configuration.apps {
            for settings in app.services {
                specs += try settings.laneSpecs(of: app.name, on: ground, &shelf)
            }
        }
        var overrides: [ConfiguredName: @Sendable (Answer) -> Outcome?] = [:]
        for instance in instances { overrides[instance.name] = instance.override }
        return DeliveryService.Setup(apps: directory, lanes: specs, overrides: overrides)
    }

    private var directory: AppDirectory {
        AppDirectory(
            configuration.instances.map { instance in
                let apps = instance.apps.compactMap(configuration.app).map { app in
                    AppDirectory.App(
                        name: app.name, outlets: app.services.map { $0.outlet(of: app.name, in: instance) })
                }
                return AppDirectory.Instance(name: instance.name, apps: apps)
            })
    }
}
