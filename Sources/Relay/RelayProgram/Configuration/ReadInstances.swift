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
    fileprivate let reader: ConfigurationReader

    var context: ReadingContext { reader.context }

    func hasFCM(_ app: ConfiguredName) -> Bool {
        reader.root["apps"]?[app.text]?["fcm"] != nil
    }

    /// The bundle ids of an app, as the file has them.
    func bundles(of app: ConfiguredName) -> [String] {
        guard case .list(let items)? = reader.root["apps"]?[app.text]?["apns"]?["bundles"]?.value else {
            return []
        }
        return items.compactMap { if case .scalar(let text) = $0.value { text } else { nil } }
    }

    /// The app of FCM registrations: the one named, else the only one with FCM.
    func fcmApp() -> ConfiguredName? {
        let capable = apps.filter { hasFCM($0) }
        guard let text = cursor.text("fcm_app") else {
            if cursor.node["fcm_app"] == nil, capable.count > 1 {
                cursor.missing(
                    "fcm_app", "Several apps have FCM and a registration names none: say which one it is.")
            }
            return capable.first
        }
        guard let name = reader.references([text], to: reader.appNames, "app").first else { return nil }
        if !apps.contains(name) {
            cursor.fault(.conflict, "fcm_app", "This app is not among the instance's apps; add it there.")
        } else if !hasFCM(name) {
            cursor.fault(.conflict, "fcm_app", "This app has no fcm section.")
        }
        return name
    }

    /// Within one instance a bundle id must lead to one app.
    func checkBundles() {
        var owners: [String: ConfiguredName] = [:]
        for name in apps {
            guard case .list(let bundles)? = reader.root["apps"]?[name.text]?["apns"]?["bundles"]?.value
            else { continue }
            for bundle in bundles {
                guard case .scalar(let text) = bundle.value else { continue }
                if let owner = owners[text], owner != name {
                    context.fault(
                        .conflict, cursor.path / "apps", bundle.source,
                        "The apps \(owner) and \(name) of this instance claim the same bundle id."
                    )
                }
                owners[text] = name
            }
        }
    }
}
