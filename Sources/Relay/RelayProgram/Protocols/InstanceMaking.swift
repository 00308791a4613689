import Delivery
import PushModel

/// What an instance is made of, beside what its own keys say.
struct InstanceMaking: Sendable {
    let instance: InstanceConfiguration
    let configuration: RelayConfiguration
    let context: HostingContext
    /// What stood under its name before a reload, perhaps of another protocol.
    let old: (any HostedInstance)?

    var name: ConfiguredName { instance.name }
    /// Those that it serves.
    var apps: [AppConfiguration] { instance.apps.compactMap(configuration.app) }

    /// Takes a toll: how long to wait, or `nil` when it was taken.
    var charge: @Sendable (Toll) -> Duration? {
        let tolls = context.delivery.tolls(of: name)
        return { tolls.take($0) }
    }

    /// The way in for the instance's calls: judged by its role, and within the configuration's bounds.
    ///
    /// - Parameter tally: counts what the role notes, too.
    func reception<Role: RelayRole>(_ role: Role, tally: NoteTally? = nil) -> Reception<Role> {
        let notes = WordMeter.notes(of: name, context.metrics)
        return Reception(
            role, of: name, intake: context.delivery.intake,
            pushesPerMinute: configuration.limits.pushesPerMinute ?? 0,
            tolls: context.delivery.tolls(of: name)
        ) { note in
            notes.count(note)
            tally?.count(note)
        }
    }
}
