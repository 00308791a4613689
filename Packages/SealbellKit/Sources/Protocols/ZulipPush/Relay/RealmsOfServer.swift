import PushModel
import WireFormats

/// One realm as it stands in the store.
struct KnownRealm {
    let realm: ZulipRealm
    let revision: UInt64
}

extension Registry {
    private static var realmPage: Int { 1_000 }

    /// All realms of one server, those that it reports no longer too; at most some
    /// ``ZulipLimits/realmsPerServer``.
    func realms(of server: UUIDText, _ keys: ZulipRecordNames) async throws(StoreError) -> [KnownRealm] {
        var found: [KnownRealm] = []
        var after: UInt64 = 0
        // Ends: the revisions rise, and a server's realms are bounded.
        while true {
            let page = try await page(.owner(keys.server(server)), after: after, limit: Self.realmPage)
            for record in page where record.key.space == keys.realmSpace {
                guard let realm = ZulipRealm(body: record.body) else { continue }
                found.append(KnownRealm(realm: realm, revision: record.revision))
            }
            // A page may be short before the end, because a row that does not open is left out.
            guard let last = page.last else { return found }
            after = last.revision
        }
    }
}
