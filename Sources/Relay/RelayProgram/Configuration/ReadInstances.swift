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
                        "Say which protocol this instance speaks: protocol: "
                            + "\(vocabulary.protocols.first?.word ?? "").")
                }
                return nil
            }
            guard let spoken = vocabulary.protocols.first(where: { $0.word == word.text }) else {
                // The other keys are another protocol's, so nothing is said about them.
                let isPlanned = vocabulary.plannedProtocols.contains(word.text)
                cursor.fault(
                    isPlanned ? .notBuiltYet : .badValue, "protocol",
                    (isPlanned ? "This protocol is not built yet" : "There is no such protocol")
                        + "; this release speaks \(vocabulary.spoken).")
                return nil
            }
            return instance(of: spoken, entry.name, entry.node, entry.path)
        }
    }

    private func instance(
        of spoken: Vocabulary.InstanceKind, _ name: ConfiguredName, _ node: ConfigurationNode,
        _ path: ConfigurationPath
    ) -> InstanceConfiguration? {
        guard let cursor = MappingCursor(node, path, keys: spoken.keys, context) else { return nil }
        let apps = instanceApps(cursor)
        let settings = spoken.read(
            InstanceReader(
                name: name, apps: apps, cursor: cursor, appNodes: root["apps"], appNames: appNames))
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
        return context.references(texts, to: appNames, "app")
    }
}
