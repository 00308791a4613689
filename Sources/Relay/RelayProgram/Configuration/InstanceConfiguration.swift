import PushModel

/// A named protocol endpoint.
struct InstanceConfiguration: Sendable {
    /// Also the record space of the instance, so a renamed instance has lost its registrations.
    var name: ConfiguredName
    /// The protocol's own keys.
    var settings: any InstanceSettings
    /// Apps served, at least one, in the file's order.
    var apps: [ConfiguredName]
}

extension InstanceConfiguration: Hashable {
    static func == (left: InstanceConfiguration, right: InstanceConfiguration) -> Bool {
        left.name == right.name && left.apps == right.apps
            && AnyHashable(left.settings) == AnyHashable(right.settings)
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(apps)
        hasher.combine(AnyHashable(settings))
    }
}

extension InstanceConfiguration {
    /// Whether two instances would answer to the same paths on one listener.
    func clashes(with other: InstanceConfiguration) -> Bool {
        let theirs = type(of: other.settings).paths
        return type(of: settings).paths.contains { own in
            theirs.contains { $0.hasPrefix(own) || own.hasPrefix($0) }
        }
    }
}
