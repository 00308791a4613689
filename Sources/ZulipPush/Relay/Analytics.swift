import PushModel
import WireFormats

/// `server/analytics` makes realms known (§5.3). Counts are not kept, only how far they went.
extension ZulipRelay {
    func analytics(_ form: AnalyticsForm, _ inbound: ZulipInbound) async throws(ZulipError) -> ZulipVerdict {
        let credentials = try credentials(inbound)
        let reported = form.realms ?? []
        let found = try await find([serverKey(credentials)] + reported.map { keys.realm($0) })
        let caller = try AuthorisedServer.authorise(credentials, found[0])
        let now = world.now()
        var changes: [Change] = []
        for (id, record) in zip(reported, found.dropFirst()) {
            let realm = ZulipRealm(id: id, server: caller.server.id, isLocallyDeleted: false)
            guard let record else {
                changes.append(.put(realm.record(keys, now: now), if: .absent))
                continue
            }
            let known = ZulipRealm(body: record.body)
            guard known?.server == caller.server.id else { throw ZulipError(.realmRegisteredElsewhere) }
            if known != realm {
                changes.append(.put(realm.record(keys, now: now), if: .revision(record.revision)))
            }
        }
        if form.realms != nil { changes += try await missing(Set(reported), of: caller.server.id, now) }
        if let server = advanced(caller.server, form) {
            changes.append(.put(server.record(keys, now: now), if: .revision(caller.revision)))
        }
        return Verdict(
            changes: changes, reply: .now(.realms(reported)),
            // Somebody else's change came between: the server uploads again within the hour, or at once.
            refusal: { _ in ZulipError(.overloaded) })
    }

    /// The server's record with higher ids, or `nil` when nothing rose.
    private func advanced(_ known: ZulipServer, _ form: AnalyticsForm) -> ZulipServer? {
        var server = known
        server.lastRealmCount = max(known.lastRealmCount, form.lastRealmCount)
        server.lastInstallationCount = max(known.lastInstallationCount, form.lastInstallationCount)
        server.lastAuditLog = max(known.lastAuditLog, form.lastAuditLog)
        let rose =
            server.lastRealmCount > known.lastRealmCount
            || server.lastInstallationCount > known.lastInstallationCount
            || server.lastAuditLog > known.lastAuditLog
        return rose ? server : nil
    }

    /// Marks realms that the server no longer reports.
    private func missing(
        _ reported: Set<UUIDText>, of server: UUIDText, _ now: UnixTime
    ) async throws(ZulipError) -> [Change] {
        var changes: [Change] = []
        var after: UInt64 = 0
        var seen = 0
        let page = 512
        // Ends: each page begins behind the last, and there are no more realms than the limit.
        while seen < ZulipLimits.realmsPerServer {
            let records: [Record]
            do {
                records = try await registry.page(.owner(keys.server(server)), after: after, limit: page)
            } catch {
                throw ZulipError(.overloaded)
            }
            for record in records where record.key.space == keys.realmSpace {
                guard var realm = ZulipRealm(body: record.body), !realm.isLocallyDeleted,
                    !reported.contains(realm.id)
                else { continue }
                realm.isLocallyDeleted = true
                changes.append(.put(realm.record(keys, now: now), if: .revision(record.revision)))
            }
            guard records.count == page, let last = records.last else { break }
            after = last.revision
            seen += records.count
        }
        return changes
    }
}
