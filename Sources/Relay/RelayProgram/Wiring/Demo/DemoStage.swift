import NIOCore
import PushModel

/// A protocol's part of the demo.
protocol ProtocolDemo: Sendable {
    /// Holds its conversations over real sockets; a fault is a report.
    func run() async -> [DemoReport]
}

/// A running sandbox with its relay, as a demo finds it.
struct DemoStage: Sendable {
    let configuration: RelayConfiguration
    /// Of listeners, by name.
    let urls: [String: String]
    /// Of instances, by name.
    let publicKeys: [String: [String]]
    let sandbox: Sandbox
    let group: any EventLoopGroup
    let world: World
    /// How long each step may take before a demo says that it failed.
    var patience: Duration = .seconds(60)

    /// The first instance with settings of that kind that a listener without TLS serves, and the listener's
    /// URL.
    func served<Settings: InstanceSettings>(
        _: Settings.Type
    ) -> (instance: InstanceConfiguration, url: String)? {
        for listener in configuration.listeners where !listener.isAdmin && listener.tls == nil {
            guard let url = urls[listener.name.text] else { continue }
            let instances = listener.serves.compactMap(configuration.instance)
            if let found = instances.first(where: { $0.settings is Settings }) { return (found, url) }
        }
        return nil
    }
}
