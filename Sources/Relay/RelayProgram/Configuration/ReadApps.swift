import PushModel

extension ConfigurationReader {
    func apps(_ root: MappingCursor) -> [AppConfiguration] {
        guard let cursor = root.cursor("apps", keys: nil) else { return [] }
        let words = vocabulary.services.map(\.word)
        return cursor.named().compactMap { entry -> AppConfiguration? in
            let keys = words + ConfigurationKeys.app + vocabulary.plannedServices
            guard let cursor = MappingCursor(entry.node, entry.path, keys: keys, context) else { return nil }
            for key in vocabulary.plannedServices where cursor.node[key] != nil {
                cursor.fault(.notBuiltYet, key, "This push service is not built yet.")
            }
            let found = vocabulary.services.compactMap { service in
                cursor.cursor(service.word, keys: service.keys).flatMap { service.read($0) }
            }
            if words.allSatisfy({ cursor.node[$0] == nil }) {
                cursor.missing(words.first ?? "", vocabulary.neededService)
            }
            let fallback = cursor.cursor("fallback", keys: ConfigurationKeys.fallback).map(fallback)
            return AppConfiguration(name: entry.name, services: found, fallback: fallback ?? .standard)
        }
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
    /// Apple's bodies hold 4,096 bytes, and the largest sealed body that deployed senders make takes 3.4 kB
    /// of them (docs/conformance/zulip.md, docs/push-services.md §2.4).
    static let limitBytes = 512
}
