import PushModel

/// Words of `sign_up`.
private enum SignUpWord: String, CaseIterable {
    case open
    case allowList = "allow-list"
    case invite
}

extension ConfigurationReader {
    func instances(_ root: MappingCursor) -> [InstanceConfiguration] {
        guard let cursor = root.cursor("instances", keys: nil) else { return [] }
        return cursor.named().compactMap { entry in
            guard let cursor = MappingCursor(entry.node, entry.path, keys: nil, context) else { return nil }
            guard let word = cursor.text("protocol") else {
                if cursor.node["protocol"] == nil {
                    cursor.missing("protocol", "Say which protocol this instance speaks: protocol: zulip.")
                }
                return nil
            }
            switch word.text {
            case "zulip":
                return MappingCursor(entry.node, entry.path, keys: ConfigurationKeys.zulip, context)
                    .flatMap { zulip(entry.name, $0) }
            case "marmot":
                return MappingCursor(entry.node, entry.path, keys: ConfigurationKeys.marmot, context)
                    .flatMap { marmot(entry.name, $0) }
            default:
                // The other keys are the other protocol's, so nothing is said about them.
                let isUnbuilt = ConfigurationKeys.unbuiltProtocols.contains(word.text)
                cursor.fault(
                    isUnbuilt ? .notBuiltYet : .badValue, "protocol",
                    isUnbuilt
                        ? "This protocol is not built yet; this release speaks zulip and marmot."
                        : "There is no such protocol; this release speaks zulip and marmot.")
                return nil
            }
        }
    }

    private func zulip(_ name: ConfiguredName, _ cursor: MappingCursor) -> InstanceConfiguration? {
        let apps = instanceApps(cursor)
        let keys = cursor.file("keys", .bouncerKeys)
        if cursor.node["keys"] == nil {
            cursor.missing("keys", "Name the file of the bouncer's keys; sealbell keys new zulip makes one.")
        }
        let fcmApp = fcmApp(cursor, apps)
        let signUp = signUp(cursor)
        let mxLookup = cursor.flag("mx_lookup", default: false)
        checkBundles(cursor, apps)
        guard let keys, !apps.isEmpty else { return nil }
        let zulip = ZulipInstanceConfiguration(
            fcmApp: fcmApp, keysFile: keys, signUp: signUp, mxLookup: mxLookup)
        return InstanceConfiguration(name: name, kind: .zulip(zulip), apps: apps)
    }

    func instanceApps(_ cursor: MappingCursor) -> [ConfiguredName] {
        guard cursor.node["apps"] != nil else {
            cursor.missing("apps", "Say which apps this instance serves: apps: [acme-chat].")
            return []
        }
        guard let texts = cursor.list("apps") else { return [] }
        if texts.isEmpty { cursor.fault(.badValue, "apps", "An instance serves at least one app.") }
        return references(texts, to: appNames, "app")
    }

    /// The app of FCM registrations: the one named, else the only one with FCM.
    private func fcmApp(_ cursor: MappingCursor, _ served: [ConfiguredName]) -> ConfiguredName? {
        let capable = served.filter { hasFCM($0) }
        guard let text = cursor.text("fcm_app") else {
            if cursor.node["fcm_app"] == nil, capable.count > 1 {
                cursor.missing(
                    "fcm_app", "Several apps have FCM and a registration names none: say which one it is.")
            }
            return capable.first
        }
        guard let name = references([text], to: appNames, "app").first else { return nil }
        if !served.contains(name) {
            cursor.fault(.conflict, "fcm_app", "This app is not among the instance's apps; add it there.")
        } else if !hasFCM(name) {
            cursor.fault(.conflict, "fcm_app", "This app has no fcm section.")
        }
        return name
    }

    func hasFCM(_ name: ConfiguredName) -> Bool {
        root["apps"]?[name.text]?["fcm"] != nil
    }

    private func signUp(_ cursor: MappingCursor) -> SignUpPolicy {
        let word = cursor.choice("sign_up", default: context.isSandbox ? SignUpWord.open : .invite)
        let hosts = hosts(cursor)
        if word != .allowList, cursor.node["hosts"] != nil {
            cursor.fault(.conflict, "hosts", "Hosts are read with sign_up: allow-list alone.")
        }
        switch word {
        case .open:
            if !context.isSandbox {
                context.warn(
                    .openSignUp, cursor.path / "sign_up",
                    "Anybody who reaches this relay may sign a server up.")
            }
            return .open
        case .invite:
            return .invite
        case .allowList:
            if cursor.node["hosts"] == nil {
                cursor.missing(
                    "hosts", "An allow-list needs hosts: the names of the servers that may sign up.")
            }
            return .allowList(Set(hosts))
        }
    }

    private func hosts(_ cursor: MappingCursor) -> [String] {
        (cursor.list("hosts") ?? []).compactMap { text in
            guard isHostName(text.text) else {
                context.fault(
                    .badValue, text.path, text.source,
                    "A host name, without https:// and without a port.")
                return nil
            }
            return text.text.lowercased()
        }
    }

    /// Within one instance a bundle id must lead to one app.
    private func checkBundles(_ cursor: MappingCursor, _ apps: [ConfiguredName]) {
        var owners: [String: ConfiguredName] = [:]
        for name in apps {
            guard case .list(let bundles)? = root["apps"]?[name.text]?["apns"]?["bundles"]?.value else {
                continue
            }
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
