import PushModel

extension ConfigurationReader {
    func apps(_ root: MappingCursor) -> [AppConfiguration] {
        guard let cursor = root.cursor("apps", keys: nil) else { return [] }
        return cursor.named().compactMap { entry in
            let keys = ConfigurationKeys.app + ConfigurationKeys.unbuiltServices
            guard let cursor = MappingCursor(entry.node, entry.path, keys: keys, context) else { return nil }
            for key in ConfigurationKeys.unbuiltServices where cursor.node[key] != nil {
                cursor.fault(.notBuiltYet, key, "This push service is not built yet.")
            }
            let apns = cursor.cursor("apns", keys: ConfigurationKeys.apns).flatMap(apns)
            let fcm = cursor.cursor("fcm", keys: ConfigurationKeys.fcm).flatMap(fcm)
            if cursor.node["apns"] == nil, cursor.node["fcm"] == nil {
                cursor.missing("apns", "An app has apns, fcm, or both.")
            }
            let fallback = cursor.cursor("fallback", keys: ConfigurationKeys.fallback).map(fallback)
            return AppConfiguration(name: entry.name, apns: apns, fcm: fcm, fallback: fallback ?? .standard)
        }
    }

    private func apns(_ cursor: MappingCursor) -> APNsAppConfiguration? {
        for key in ["team", "key_id", "key_file", "bundles"] where cursor.node[key] == nil {
            cursor.missing(key, "APNs needs team, key_id, key_file and bundles; this one is not there.")
        }
        let rule = "Ten capital letters and digits, as Apple's developer pages show it."
        let team = cursor.parsed("team", appleIdentifier, rule)
        let keyID = cursor.parsed("key_id", appleIdentifier, rule)
        let keyFile = cursor.file("key_file", .apnsKey)
        let bundles = bundles(cursor)
        let base = "The https:// address of a host, with a port if need be and no path."
        let url = cursor.parsed("url", HTTPSBase.init, base)
        let sandboxURL = cursor.parsed("sandbox_url", HTTPSBase.init, base)
        let environment = cursor.choice("environment", default: APNsAppConfiguration.Environment.production)
        let voip = cursor.flag("voip", default: false)
        let ca = cursor.file("ca", .authority)
        guard let team, let keyID, let keyFile, !bundles.isEmpty else { return nil }
        return APNsAppConfiguration(
            team: team, keyID: keyID, keyFile: keyFile, bundles: bundles, environment: environment,
            voip: voip,
            url: url, sandboxURL: sandboxURL ?? url, caFile: ca)
    }

    private func bundles(_ cursor: MappingCursor) -> [String] {
        guard let texts = cursor.list("bundles") else { return [] }
        if texts.isEmpty { cursor.fault(.badValue, "bundles", "At least one bundle id.") }
        var seen: Set<String> = []
        return texts.compactMap { text in
            guard isBundle(text.text) else {
                context.fault(
                    .badValue, text.path, text.source,
                    "1 to 155 letters, digits, dots and hyphens, without a suffix such as .voip."
                )
                return nil
            }
            guard seen.insert(text.text).inserted else {
                context.fault(.conflict, text.path, text.source, "This bundle id stands twice in the list.")
                return nil
            }
            return text.text
        }
    }

    private func fcm(_ cursor: MappingCursor) -> FCMAppConfiguration? {
        let account = cursor.file("service_account", .serviceAccount)
        if cursor.node["service_account"] == nil {
            cursor.missing(
                "service_account", "Name the service account's JSON file, from Firebase's project settings.")
        }
        let address = cursor.choice("address", default: FCMAppConfiguration.Address.auto)
        let url = cursor.parsed(
            "url", HTTPSBase.init, "The https:// address of a host, with a port if need be and no path.")
        let tokenURL = cursor.parsed("token_url", HTTPSURL.init, "An https:// address.")
        let ca = cursor.file("ca", .authority)
        guard let account else { return nil }
        return FCMAppConfiguration(
            serviceAccountFile: account, address: address, url: url, caFile: ca, tokenURL: tokenURL)
    }

    private func fallback(_ cursor: MappingCursor) -> FallbackAlert {
        let alert = FallbackAlert(
            title: cursor.text("title")?.text, body: cursor.text("body")?.text,
            titleLocKey: cursor.text("title_loc_key")?.text, locKey: cursor.text("loc_key")?.text,
            sound: cursor.text("sound")?.text, category: cursor.text("category")?.text)
        if alert.title != nil, alert.titleLocKey != nil {
            cursor.fault(.conflict, "title_loc_key", "Give the title as text or as a key, not both.")
        }
        if alert.body != nil, alert.locKey != nil {
            cursor.fault(.conflict, "loc_key", "Give the body as text or as a key, not both.")
        }
        guard alert.title ?? alert.body ?? alert.titleLocKey ?? alert.locKey != nil else {
            context.fault(
                .missingKey, cursor.path, cursor.node.source,
                "Without a visible text iOS does not wake the app's extension: give title or body."
            )
            return .standard
        }
        let count = alert.aps.count
        if count > FallbackAlert.limitBytes {
            context.fault(
                .tooLarge, cursor.path, cursor.node.source,
                "The alert takes \(count) bytes as JSON, and at most "
                    + "\(FallbackAlert.limitBytes) leave room for the ciphertext.")
        }
        return alert
    }
}

extension FallbackAlert {
    /// An APNs body holds 4,096 bytes, and the largest sealed body that deployed senders make takes 3.4 kB
    /// of them (docs/conformance/zulip.md, docs/push-services.md §2.4).
    static let limitBytes = 512
}

private func appleIdentifier(_ text: String) -> String? {
    let isForm =
        text.utf8.count == 10
        && text.utf8.allSatisfy {
            (0x30...0x39).contains($0) || (0x41...0x5A).contains($0)
        }
    return isForm ? text : nil
}

private func isBundle(_ text: String) -> Bool {
    (1...155).contains(text.utf8.count) && !text.hasSuffix(".voip") && !text.hasSuffix(".complication")
        && text.utf8.allSatisfy {
            (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
                || $0 == 0x2D
                || $0 == 0x2E
        }
}
