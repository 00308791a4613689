import PushModel
import WireFormats

/// `server/analytics` makes realms known (§5.3). Counts are not kept, only how far they went.
extension ZulipRelay {
    func analytics(_ form: AnalyticsForm, _ inbound: ZulipInbound) async throws(ZulipError) -> ZulipVerdict {
        let credentials = try credentials(inbound)
        let reported = form.realms ?? []
        let found = try await find([serverKey(credentials)] + reported.map { keys.realm($0) })
        let caller = try await authorise(credentials, found[0])
        let now = world.now()
        var changes: [Change] = []
        var foreign: [(realm: ZulipRealm, revision: UInt64)] = []
        for (id, record) in zip(reported, found.dropFirst()) {
            guard let record else {
                let realm = ZulipRealm(id: id, server: caller.server.id, isLocallyDeleted: false)
                changes.append(.put(realm.record(keys, now: now), if: .absent))
                continue
            }
            guard var known = ZulipRealm(body: record.body) else {
                throw ZulipError(.realmRegisteredElsewhere)
            }
            if known.server != caller.server.id {
                foreign.append((known, record.revision))
            } else if known.isLocallyDeleted {
                known.isLocallyDeleted = false
                changes.append(.put(known.record(keys, now: now), if: .revision(record.revision)))
            }
        }
        changes += try await takeOver(foreign, by: caller.server.id, now)
        if form.realms != nil { changes += try await missing(Set(reported), of: caller.server.id, now) }
        if let server = advanced(caller.server, form) {
            changes.append(.put(server.record(keys, now: now), if: .revision(caller.revision)))
        }
        changes += caller.endings(keys, now: now)
        return Verdict(
            changes: changes, reply: .now(.realms(reported)),
            // Somebody else's change came between: the server uploads again within the hour, or at once.
            refusal: { _ in ZulipError(.overloaded) },
            notes: foreign.isEmpty ? [] : [NoteCode("zulip.realm-taken-over")])
    }

    /// Realms that another server reported first. They are free as soon as that one has deactivated itself,
    /// like its host name; what it registered there stays its own until ``ZulipServers/sweep()`` removes it.
    ///
    /// - Throws: `.realmRegisteredElsewhere` when the server of one of them is still there.
    private func takeOver(
        _ foreign: [(realm: ZulipRealm, revision: UInt64)], by taker: UUIDText, _ now: UnixTime
    ) async throws(ZulipError) -> [Change] {
        if foreign.isEmpty { return [] }
        let holders = Array(Set(foreign.map(\.realm.server)))
        let found = try await find(holders.map { keys.server($0) } + holders.map { keys.leaving($0) })
        var changes: [Change] = []
        for (index, holder) in holders.enumerated() {
            // One that is not known at all was forgotten by whoever runs this relay.
            if let record = found[index] {
                guard ZulipServer(body: record.body)?.standing == .deactivated else {
                    throw ZulipError(.realmRegisteredElsewhere)
                }
            }
            if found[holders.count + index] == nil {
                changes.append(.put(leaving(holder, now), if: .any))
            }
        }
        for (old, revision) in foreign {
            let new = ZulipRealm(id: old.id, server: taker, isLocallyDeleted: false)
            changes.append(.put(new.record(keys, now: now), if: .revision(revision)))
            changes.append(.put(old.vacancy(keys, now: now), if: .any))
        }
        return changes
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
