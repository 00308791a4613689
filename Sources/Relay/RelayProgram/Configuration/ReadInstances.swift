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

    /// The instances that stand in sections of their own.
    func sections(_ root: MappingCursor) -> [InstanceConfiguration] {
        vocabulary.sections.compactMap { kind in
            guard let name = ConfiguredName(kind.word),
                let cursor = root.cursor(kind.word, keys: kind.keys)
            else { return nil }
            if instanceNames.contains(name) {
                cursor.fault(
                    .conflict, "", "An instance has the name of this section; give the instance another one.")
            }
            let reader = InstanceReader(
                name: name, apps: [], cursor: cursor, appNodes: self.root["apps"], appNames: appNames)
            return kind.read(reader).map { InstanceConfiguration(name: name, settings: $0, apps: []) }
        }
    }

    private func instance(
        of spoken: Vocabulary.InstanceKind, _ name: ConfiguredName, _ node: ConfigurationNode,
        _ path: ConfigurationPath
    ) -> InstanceConfiguration? {
        guard let cursor = MappingCursor(node, path, keys: spoken.keys, context) else { return nil }
        let needsApps = needsApps(node, spoken)
        let apps = instanceApps(cursor, areNeeded: needsApps)
        let settings = spoken.read(
            InstanceReader(
                name: name, apps: apps, cursor: cursor, appNodes: root["apps"], appNames: appNames))
        guard let settings, !(needsApps && apps.isEmpty) else { return nil }
        return InstanceConfiguration(name: name, settings: settings, apps: apps)
    }

    /// Whether the instance delivers by credentials of apps: something else may have them, and then apps that
    /// are named bound what it is given.
    private func needsApps(_ node: ConfigurationNode, _ spoken: Vocabulary.InstanceKind) -> Bool {
        node["apps"] != nil || spoken.keyInsteadOfApps.flatMap { node[$0] } == nil
    }

    /// Whether no instance of the tree needs an app.
    var needsNoApps: Bool {
        let nodes = (root["instances"]?.keys ?? []).compactMap { root["instances"]?[$0] }
        return !nodes.isEmpty
            && nodes.allSatisfy { node in
                guard case .scalar(let word)? = node["protocol"]?.value,
                    let spoken = vocabulary.protocols.first(where: { $0.word == word })
                else { return false }
                return !needsApps(node, spoken)
            }
    }

    private func instanceApps(_ cursor: MappingCursor, areNeeded: Bool) -> [ConfiguredName] {
        guard cursor.node["apps"] != nil else {
            if areNeeded {
                cursor.missing("apps", "Say which apps this instance serves: apps: [acme-chat].")
            }
            return []
        }
        guard let texts = cursor.list("apps") else { return [] }
        if texts.isEmpty { cursor.fault(.badValue, "apps", "An instance serves at least one app.") }
        return context.references(texts, to: appNames, "app")
    }
}
