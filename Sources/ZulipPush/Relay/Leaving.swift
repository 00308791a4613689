package import PushModel
import WireFormats

/// A server that goes (§5.2, "Deactivate"), and what it leaves behind.
///
/// With its own call go its host name, contact and key, in one commit: of its record enough stays to tell it
/// that it was deactivated (``ZulipServer/remains``). Its realms and their devices serve nobody any more, but
/// may be many; they go afterwards, a page at a time, by ``ZulipServers/sweep()``.
extension ZulipRelay {
    func deactivate(_ caller: AuthorisedServer) async throws(ZulipError) -> ZulipVerdict {
        let now = world.now()
        let server = caller.server
        memory.forget(server.id)
        var changes: [Change] = [
            .put(server.remains.record(keys, now: now), if: .revision(caller.revision)),
            .put(leaving(server.id, now), if: .any)
        ]
        if server.oldKeyEnds != nil {
            changes.append(.delete(keys.oldKey(of: server.id, before: server.keyHash), if: .any))
        }
        if let host = ZulipHostname(Array(server.hostname.utf8)) {
            let found = try await find([keys.host(host)])
            // The name is free again: this relay's policy says who may take it (docs/configuration.md).
            if let holder = found[0], holder.body == Secret(server.id.bytes) {
                changes.append(.delete(keys.host(host), if: .revision(holder.revision)))
            }
            changes.append(.delete(keys.challenge(host), if: .any))
        }
        return Verdict(
            changes: changes, reply: .now(.done(ignored: [])), refusal: { _ in ZulipError(.overloaded) },
            notes: [NoteCode("zulip.server-deactivated")])
    }

    /// That a server has left something behind.
    func leaving(_ server: UUIDText, _ now: UnixTime) -> Record {
        Record(key: keys.leaving(server), touchedAt: now, body: Secret(server.bytes))
    }
}

extension ZulipServers {
    /// A request that began before its server was deactivated has ended by then, so nothing comes after what
    /// is removed.
    private static let grace = Duration.seconds(60)
    /// Records removed in one commit: a few milliseconds of the writer.
    private static let page = 256

    /// Removes one page of what servers have left behind.
    ///
    /// - Returns: how many records went; 0 when there is nothing left to do for now.
    package func sweep() async throws(StoreError) -> Int {
        let leaving = try await registry.page(.space(keys.leavingSpace), after: 0, limit: Self.page)
        let now = world.now()
        for record in leaving where now.since(record.touchedAt) >= Self.grace {
            guard let server = UUIDText(bytes: record.body.reveal { Array($0) }) else { continue }
            // A realm, or what was left of one that another server has since.
            let left = try await registry.page(.owner(keys.server(server)), after: 0, limit: 1).first
            if let realm = left.flatMap({ ZulipRealm(body: $0.body) }) {
                let owner = keys.devices(of: realm.tenancy)
                let devices = try await registry.forget(owner: owner, limit: Self.page)
                if devices > 0 { return devices }
            }
            // Devices first, then their realm, then the note that there is something to do; each only as it
            // was seen, for the realm may be another server's by now.
            let done = left ?? record
            _ = try await registry.apply([.delete(done.key, if: .revision(done.revision))])
            return 1
        }
        return 0
    }
}
