import PushModel

/// A named protocol endpoint.
struct InstanceConfiguration: Sendable {
    /// Also the record space of the instance, so a renamed instance has lost its registrations.
    var name: ConfiguredName
    /// The protocol's own keys.
    var settings: any InstanceSettings
    /// Apps served, in the file's order; none where something else has the credentials.
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
        let theirs = other.settings.paths(of: other.name)
        return settings.paths(of: name).contains { own in
            theirs.contains { Self.holds($0, own) || Self.holds(own, $0) }
        }
    }

    private static func holds(_ path: String, _ other: String) -> Bool {
        path == other || path.hasSuffix("/") && other.hasPrefix(path)
    }
}
