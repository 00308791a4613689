import PushModel

extension ConfigurationReader {
    func instances(_ root: MappingCursor) -> [InstanceConfiguration] {
        guard let cursor = root.cursor("instances", keys: nil) else { return [] }
        return cursor.named().compactMap { entry in
            guard let cursor = MappingCursor(entry.node, entry.path, keys: nil, context) else { return nil }
            guard let word = cursor.text("protocol") else {
                if cursor.node["protocol"] == nil {
                    cursor.missing(
                        "protocol",
                        "Say which protocol this instance speaks: protocol: \(protocols.words.first ?? "").")
                }
                return nil
            }
            guard let spoken = protocols[word.text] else {
                // The other keys are another protocol's, so nothing is said about them.
                let isPlanned = HostedProtocols.planned.contains(word.text)
                cursor.fault(
                    isPlanned ? .notBuiltYet : .badValue, "protocol",
                    (isPlanned ? "This protocol is not built yet" : "There is no such protocol")
                        + "; this release speaks \(protocols.sentence).")
                return nil
            }
            return instance(of: spoken, entry.name, entry.node, entry.path)
        }
    }

    private func instance<Spoken: HostedProtocol>(
        of spoken: Spoken.Type, _ name: ConfiguredName, _ node: ConfigurationNode, _ path: ConfigurationPath
    ) -> InstanceConfiguration? {
        guard let cursor = MappingCursor(node, path, keys: Spoken.keys, context) else { return nil }
        let apps = instanceApps(cursor)
        let settings = Spoken.read(InstanceReader(name: name, apps: apps, cursor: cursor, reader: self))
        guard let settings, !apps.isEmpty else { return nil }
        return InstanceConfiguration(name: name, settings: settings, apps: apps)
    }

    private func instanceApps(_ cursor: MappingCursor) -> [ConfiguredName] {
        guard cursor.node["apps"] != nil else {
            cursor.missing("apps", "Say which apps this instance serves: apps: [acme-chat].")
            return []
        }
        guard let texts = cursor.list("apps") else { return [] }
        if texts.isEmpty { cursor.fault(.badValue, "apps", "An instance serves at least one app.") }
        return references(texts, to: appNames, "app")
    }
}

/// What a protocol reads the keys of one instance with.
struct InstanceReader {
    let name: ConfiguredName
    /// Apps that the instance serves; none after a fault.
    let apps: [ConfiguredName]
    let cursor: MappingCursor
    let reader: ConfigurationReader

    var context: ReadingContext { reader.context }

    /// What the file says below a push service's word in an app.
    func node(of app: ConfiguredName, _ service: String) -> ConfigurationNode? {
        reader.root["apps"]?[app.text]?[service]
    }

    /// The app that a text names; a fault when there is none.
    func app(named text: LocatedText) -> ConfiguredName? {
        reader.references([text], to: reader.appNames, "app").first
    }
}
