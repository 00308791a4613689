import PushModel
import WireFormats
import ZulipPush

/// The servers of a Zulip instance as origins.
extension ZulipServers: OriginControl {
    func origins(
        after revision: UInt64, limit: Int
    ) async throws(StoreError) -> (origins: [OriginFacts], next: UInt64?) {
        let page = try await page(after: revision, limit: limit)
        var origins: [OriginFacts] = []
        for listed in page.servers {
            let server = listed.server
            let held = try await holdings(of: server.id)
            origins.append(
                OriginFacts(
                    id: server.id, host: server.hostname, contact: server.mail,
                    standing: "\(server.standing)", seenAt: listed.seenAt, quota: server.quota,
                    counts: [
                        ("realms", held.realms), ("realms_deleted", held.deadRealms),
                        ("devices", held.devices)
                    ]))
        }
        return (origins, page.next)
    }

    func forgetOrigin(_ id: UUIDText) async throws(StoreError) -> [NamedCount]? {
        guard let forgotten = try await forget(id) else { return nil }
        return [
            ("origins", forgotten.servers), ("hosts", forgotten.hosts), ("realms", forgotten.realms),
            ("devices", forgotten.devices)
        ]
    }
}
