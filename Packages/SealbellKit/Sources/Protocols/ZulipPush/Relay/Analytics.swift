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
        var realms = ReportedRealms(of: caller.server.id)
        for (id, record) in zip(reported, found.dropFirst()) { realms.note(id, record) }
        try await freeForeign(&realms)
        // As deployed, where there is nothing of its own in it.
        if !realms.refused.isEmpty, realms.refused.count == reported.count {
            throw ZulipError(.realmRegisteredElsewhere)
        }
        let isHeldElsewhere = !realms.refused.isEmpty
        if form.realms != nil { try await leaveOut(Set(reported), &realms) }
        let isFull = realms.fit(bounds.realms)
        var changes: [Change] = []
        if let server = advanced(caller.server, form) {
            changes.append(.put(server.record(keys, now: now), if: .revision(caller.revision)))
        }
        changes += caller.endings(keys, now: now)
        var verdict = Verdict<ZulipReply, ZulipError>(
            changes: changes, reply: .now(.realms(reported, refused: realms.refused)),
            // Somebody else's change came between: the server uploads again within the hour, or at once.
            refusal: { _ in ZulipError(.overloaded) }, quota: caller.server.quota)
        verdict.pages = pages(realms, now)
        verdict.charge = OriginCharge(
            of: Secret(caller.server.id.bytes), units: reported.count + realms.writes)
        if !realms.taken.isEmpty { verdict.notes.append(NoteCode("zulip.realm-taken-over")) }
        if isHeldElsewhere { verdict.notes.append(NoteCode("zulip.realm-held-elsewhere")) }
        if isFull { verdict.notes.append(NoteCode("zulip.realms-full")) }
        return verdict
    }

    /// Realms that another server reported first. They are free as soon as that one has deactivated itself,
    /// like its host name, or the operator has suspended it; what it registered there stays its
    /// own until ``ZulipServers/sweep()`` removes it.
    private func freeForeign(_ realms: inout ReportedRealms) async throws(ZulipError) {
        if realms.foreign.isEmpty { return }
        let holders = Array(Set(realms.foreign.map(\.realm.server)))
        // One that is not known at all was forgotten by the operator.
        let found = try await find(holders.map { keys.server($0) })
        let held = Set(zip(holders, found).filter { $1?.serverStanding == .active }.map(\.0))
        realms.free { !held.contains($0) }
    }

    /// Realms that the server has but did not report now: they are marked, and removed if they have no
    /// devices.
    private func leaveOut(
        _ reported: Set<UUIDText>, _ realms: inout ReportedRealms
    ) async throws(ZulipError) {
        let known: [KnownRealm]
        do throws(StoreError) { known = try await registry.realms(of: realms.server, keys) } catch {
            throw ZulipError(.overloaded)
        }
        realms.count += known.count
        let unreported = known.filter { !reported.contains($0.realm.id) }
        let looked = try await withoutDevices(unreported.map(\.realm))
        for one in unreported {
            if looked.contains(one.realm.id) {
                realms.gone.append(one)
                realms.count -= 1
            } else if !one.realm.isLocallyDeleted {
                realms.left.append(one)
            }
        }
    }

    /// Those of some realms that have no device. Not all are looked at in one call; which, changes.
    private func withoutDevices(_ realms: [ZulipRealm]) async throws(ZulipError) -> Set<UUIDText> {
        if realms.isEmpty { return [] }
        let first = Int(world.random(below: Int64(realms.count)))
        let some = (realms[first...] + realms[..<first]).prefix(ZulipLimits.realmsLookedInto)
        var empty: Set<UUIDText> = []
        for realm in some where try await page(.owner(keys.devices(of: realm.tenancy)), 0, 1).isEmpty {
            empty.insert(realm.id)
        }
        return empty
    }

    private func page(
        _ index: RecordIndex, _ after: UInt64, _ limit: Int
    ) async throws(ZulipError) -> [Record] {
        do { return try await registry.page(index, after: after, limit: limit) } catch {
            throw ZulipError(.overloaded)
        }
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

    /// The changes, in independent pages, because a large upload must not delay everybody's commits.
    private func pages(_ realms: ReportedRealms, _ now: UnixTime) -> [[Change]] {
        let server = realms.server
        var groups: [[Change]] = []
        for holder in Set(realms.taken.map(\.realm.server)) {
            // Anew, so that a sweep which has just found nothing more leaves it.
            groups.append([.put(leaving(holder, now), if: .any)])
        }
        for gone in realms.gone {
            groups.append([.delete(keys.realm(gone.realm.id), if: .revision(gone.revision))])
        }
        for id in realms.new {
            let realm = ZulipRealm(id: id, server: server, isLocallyDeleted: false)
            groups.append([.put(realm.record(keys, now: now), if: .absent)])
        }
        for old in realms.taken {
            let new = ZulipRealm(id: old.realm.id, server: server, isLocallyDeleted: false)
            groups.append([
                .put(new.record(keys, now: now), if: .revision(old.revision)),
                .put(old.realm.vacancy(keys, now: now), if: .any)
            ])
        }
        for (isDeleted, marked) in [(false, realms.back), (true, realms.left)] {
            for one in marked {
                var realm = one.realm
                realm.isLocallyDeleted = isDeleted
                groups.append([.put(realm.record(keys, now: now), if: .revision(one.revision))])
            }
        }
        return groups.inPages(of: Self.changesPerPage)
    }

    /// A few milliseconds of the writer.
    private static let changesPerPage = 128
}

/// What happens to the realms that a server reports, and to those that it does not report.
private struct ReportedRealms {
    let server: UUIDText
    /// No server had reported these before.
    var new: [UUIDText] = []
    /// Its own, which it had left out for a time.
    var back: [KnownRealm] = []
    /// Other servers'.
    var foreign: [KnownRealm] = []
    /// Those of them that are free.
    var taken: [KnownRealm] = []
    /// Not its own, or more than it may have.
    var refused: Set<UUIDText> = []
    /// Its own, reported no longer: with devices, and without.
    var left: [KnownRealm] = []
    var gone: [KnownRealm] = []
    /// Its own that stand and are not to go, reported or not.
    var count = 0

    init(of server: UUIDText) { self.server = server }

    mutating func note(_ id: UUIDText, _ record: Record?) {
        guard let record else { return new.append(id) }
        // One that a newer version wrote is somebody's.
        guard let known = ZulipRealm(body: record.body) else {
            refused.insert(id)
            return
        }
        if known.server != server {
            foreign.append(KnownRealm(realm: known, revision: record.revision))
        } else if known.isLocallyDeleted {
            back.append(KnownRealm(realm: known, revision: record.revision))
        }
    }

    mutating func free(where isFree: (UUIDText) -> Bool) {
        for known in foreign {
            if isFree(known.realm.server) { taken.append(known) } else { refused.insert(known.realm.id) }
        }
    }

    /// Leaves out what would be more than so many, newest first: what the server has already stays.
    ///
    /// - Returns: whether anything was left out.
    mutating func fit(_ most: Int) -> Bool {
        let over = count + new.count + taken.count - most
        guard over > 0 else { return false }
        let first = min(over, new.count)
        refused.formUnion(new.suffix(first))
        new.removeLast(first)
        let second = min(over - first, taken.count)
        refused.formUnion(taken.suffix(second).map(\.realm.id))
        taken.removeLast(second)
        return true
    }

    /// Records to write.
    var writes: Int { new.count + back.count + 2 * taken.count + left.count + gone.count }
}

extension [[Change]] {
    /// Joins groups that belong together into pages of about so many changes.
    fileprivate func inPages(of most: Int) -> [[Change]] {
        var pages: [[Change]] = []
        for group in self {
            if let last = pages.last, last.count + group.count <= most {
                pages[pages.count - 1] += group
            } else {
                pages.append(group)
            }
        }
        return pages
    }
}
