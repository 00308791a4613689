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
        // The name is free again: this relay's policy says who may take it (docs/configuration.md).
        if let host = ZulipHostname(Array(server.hostname.utf8)) {
            changes += try await freed(host, of: server.id)
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
        for note in leaving where now.since(note.touchedAt) >= Self.grace {
            guard let server = UUIDText(bytes: note.body.reveal { Array($0) }) else { continue }
            // What others took over, and where nobody is left the rest.
            var owners = [keys.leaving(server)]
            if try await isGone(server) { owners.append(keys.server(server)) }
            for owner in owners {
                let gone = try await sweepPage(of: owner)
                if gone > 0 { return gone }
            }
            // The note that there is something to do goes last, and only as it was seen.
            let applied = try await registry.apply([.delete(note.key, if: .revision(note.revision))])
            if applied == .committed { return 1 }
        }
        return 0
    }

    private func isGone(_ server: UUIDText) async throws(StoreError) -> Bool {
        let record = try await registry.find([keys.server(server)])[0]
        return record.map { $0.serverStanding == .deactivated } ?? true
    }

    /// Removes devices of the realms that this owner has, and the realms whose devices are gone.
    ///
    /// - Returns: how many records went; 0 when nothing is left.
    private func sweepPage(of owner: RecordKey) async throws(StoreError) -> Int {
        var gone = 0
        var empty: [Record] = []
        let left = try await registry.page(.owner(owner), after: 0, limit: Self.page)
        for record in left {
            if let realm = ZulipRealm(body: record.body) {
                let room = Self.page - gone
                let devices = try await registry.forget(owner: keys.devices(of: realm.tenancy), limit: room)
                gone += devices
                if devices == room { break }
            }
            // What is no realm has no devices.
            empty.append(record)
        }
        gone += try await delete(empty)
        // Rows that do not open are none of those that were listed, and stand before whatever was not.
        return gone > 0 ? gone : try await registry.forget(owner: owner, limit: Self.page)
    }

    /// Each only as it was seen, because the realm may be another server's by now.
    private func delete(_ records: [Record]) async throws(StoreError) -> Int {
        let changes = records.map { PushModel.Change.delete($0.key, if: .revision($0.revision)) }
        if changes.isEmpty { return 0 }
        if try await registry.apply(changes) == .committed { return changes.count }
        var count = 0
        for change in changes where try await registry.apply([change]) == .committed { count += 1 }
        return count
    }
}
