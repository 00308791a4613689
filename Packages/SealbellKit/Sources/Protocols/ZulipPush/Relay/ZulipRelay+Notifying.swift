import PushModel
import WireFormats

/// `push/e2ee/notify` (§5.5, §6, §14.6).
extension ZulipRelay {
    func notify(
        _ request: NotifyRequest, _ credentials: ServerCredentials, _ references: PushReferences? = nil
    ) async throws(ZulipError) -> ZulipVerdict {
        switch request.asked {
        case .given(let items): return try await notify(items, request.realm, credentials, references)
        case .sealed(let items): return try await notify(items, request.realm, credentials, references)
        }
    }

    /// Devices are looked up only for the realm's owner: in the same look-up if the caller is known to be the
    /// owner, otherwise in a second one.
    private func notify<Item: NotifiedItem>(
        _ items: [Item], _ asked: UUIDText, _ credentials: ServerCredentials, _ references: PushReferences?
    ) async throws(ZulipError) -> ZulipVerdict {
        let known = memory.owner(asked, credentials)
        if let known, let sights = known.sights {
            let devices = items.map { keys.device(known.tenancy, $0.device) }
            // The conclusion holds as long as the rows that it was drawn from are unchanged. Asked here,
            // because another waiting function in between would cost nearly every call a turn of its task.
            let stood: [Record?]?
            do { stood = try await registry.find(devices, while: sights) } catch {
                throw ZulipError(.overloaded)
            }
            if let found = stood {
                return try pushes(items, found[...], devices[...], known.realm, references)
            }
        }
        return try await notify(items, asked, credentials, references, known)
    }

    /// The same by what is stored. Not part of the other, as few calls come here, and all would hold the room
    /// for what it keeps while it waits.
    @inline(never)
    private func notify<Item: NotifiedItem>(
        _ items: [Item], _ asked: UUIDText, _ credentials: ServerCredentials, _ references: PushReferences?,
        _ known: CallerMemory.Owner?
    ) async throws(ZulipError) -> ZulipVerdict {
        var names = [serverKey(credentials), keys.realm(asked)]
        if let known {
            names.reserveCapacity(items.count + 2)
            for item in items { names.append(keys.device(known.tenancy, item.device)) }
            let (found, sights) = try await findSeeing(names)
            // Who was known is judged by what is stored now, like everybody.
            let realm = try await authorise(asked, credentials, found, sights)
            if realm.realm.naming == known.tenancy.naming {
                return try pushes(items, found[2...], names[2...], realm, references)
            }
            names.removeLast(items.count)
        }
        let (found, sights) = try await findSeeing(names)
        let realm = try await authorise(asked, credentials, found, sights)
        let tenancy = realm.realm.tenancy
        let devices = items.map { keys.device(tenancy, $0.device) }
        return try pushes(items, try await find(devices)[...], devices[...], realm, references)
    }

    /// - Throws: what ``NotifiedItem/check(_:)`` throws.
    private func pushes<Item: NotifiedItem>(
        _ items: [Item], _ found: ArraySlice<Record?>, _ names: ArraySlice<RecordKey>,
        _ realm: AuthorisedRealm, _ references: PushReferences?
    ) throws(ZulipError) -> ZulipVerdict {
        let (server, now) = (realm.caller.server, world.now())
        let endings = realm.caller.endings(keys, now: now)
        let origin = server.id.secret
        var counts = NotifyCounts(of: items.first?.device)
        var (pushes, sent): ([Push], [Sent]) = ([], [])
        pushes.reserveCapacity(items.count)
        sent.reserveCapacity(items.count)
        // By place, field by field, and each push made where it is kept: a record that is taken out, and a
        // push that a function returns, is copied whole, and a sequence of pairs copies each record three
        // times.
        let (firstFound, firstName) = (found.startIndex, names.startIndex)
        for place in 0..<min(items.count, found.count, names.count) {
            let item = items[place]
            let at = firstFound + place
            // Not registered, or no longer.
            guard let body = found[at]?.body, let registration = ZulipRegistration(body: body) else {
                counts.add(dead: item.device)
                continue
            }
            try item.check(registration)
            guard let state = found[at]?.state, state == .live, let touchedAt = found[at]?.touchedAt else {
                counts.add(dead: item.device)
                continue
            }
            pushes.append(
                Push(
                    message: item.message(to: registration, fallbacks),
                    pushClass: item.pushClass, origin: origin, record: names[firstName + place],
                    recordDigest: found[at]?.digest, touchedAt: touchedAt,
                    registeredAddress: found[at]?.addressDigest,
                    custodyEnds: now + ZulipLimits.custody,
                    repeatIdentity: item.identity(registration.token)))
            sent.append(Sent(device: item.device, kind: registration.kind))
        }
        let dead = counts.deadCount
        let notes = dead == 0 ? [] : [NoteCode("zulip.unknown-or-expired-token")]
        // Look-ups that find nothing are charged too.
        let charge = dead == 0 ? nil : OriginCharge(of: origin, units: dead)
        if pushes.isEmpty {
            return Verdict(
                changes: endings, reply: .now(.notified(counts)), notes: notes, quota: server.quota,
                charge: charge, references: references)
        }
        let (known, awaited) = (counts, sent)
        // Made as a whole, here: a verdict is large, and one that is completed later is copied.
        return Verdict(
            pushes: pushes, changes: endings,
            reply: .afterFirstAttempt(deadline: replyDeadline) { outcomes in
                var counts = Self.count(outcomes, awaited, known)
                if let ids = references?.all { counts.references = Self.pairs(awaited, ids) }
                return .notified(counts)
            },
            notes: notes, quota: server.quota, charge: charge,
            // The owner of a domain can have any number of host names.
            turns: admission == .open ? .byClient : .byOrigin, references: references)
    }

    /// What the reply needs to know of one push.
    private struct Sent: Sendable {
        let device: DeviceName
        let kind: TokenKind
    }

    private static func pairs(_ sent: [Sent], _ ids: [PushID?]) -> [(device: DeviceName, push: PushID)] {
        zip(sent, ids).compactMap { sent, id in id.map { (sent.device, $0) } }
    }

    /// Accepted and not yet answered count as sent; refused for good is dead; the rest is neither
    /// (docs/architecture.md).
    private static func count(
        _ outcomes: [FirstOutcome], _ sent: [Sent], _ known: NotifyCounts
    ) -> NotifyCounts {
        var counts = known
        for (outcome, push) in zip(outcomes, sent) {
            switch outcome {
            case .known(.accepted), .pending:
                switch push.kind {
                case .apns: counts.apple += 1
                case .fcm: counts.android += 1
                }
            case .known(.unregistered): counts.add(dead: push.device)
            case .known(.retry), .known(.rejected), .known(.misconfigured), .dropped: break
            }
        }
        return counts
    }
}
