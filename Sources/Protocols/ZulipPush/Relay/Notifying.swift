import PushModel
import WireFormats

/// `push/e2ee/notify` (§5.5, §6).
extension ZulipRelay {
    /// Devices are looked up for the realm's owner alone: in the same look-up where the caller is known to be
    /// that, else in a second one.
    func notify(
        _ request: NotifyRequest, _ credentials: ServerCredentials
    ) async throws(ZulipError) -> ZulipVerdict {
        var names = [serverKey(credentials), keys.realm(request.realm)]
        names.reserveCapacity(request.items.count + 2)
        if let known = memory.tenancy(request.realm, of: credentials) {
            for item in request.items { names.append(keys.device(known, item.tokenID)) }
            let found = try await find(names)
            // Who was known is judged by what is stored now, like everybody.
            let realm = try await authorise(request.realm, credentials, found)
            if realm.realm.naming == known.naming {
                return try pushes(request.items, found[2...], names[2...], realm)
            }
            names.removeLast(request.items.count)
        }
        let realm = try await authorise(request.realm, credentials, try await find(names))
        let tenancy = realm.realm.tenancy
        let devices = request.items.map { keys.device(tenancy, $0.tokenID) }
        return try pushes(request.items, try await find(devices)[...], devices[...], realm)
    }

    private func pushes(
        _ items: [NotifyItem], _ found: ArraySlice<Record?>, _ names: ArraySlice<RecordKey>,
        _ realm: AuthorisedRealm
    ) throws(ZulipError) -> ZulipVerdict {
        let now = world.now()
        let server = realm.caller.server
        let endings = realm.caller.endings(keys, now: now)
        let origin = Secret(server.id.bytes)
        var counts = NotifyCounts()
        var pushes: [Push] = []
        var sent: [Sent] = []
        pushes.reserveCapacity(items.count)
        sent.reserveCapacity(items.count)
        for (item, (record, name)) in zip(items, zip(found, names)) {
            guard let record, let registration = ZulipRegistration(body: record.body)
            else {
                counts.dead.append(item.tokenID)
                continue
            }
            guard registration.kind == item.target.kind else { throw ZulipError(.kindMismatch) }
            guard record.state == .live else {
                counts.dead.append(item.tokenID)
                continue
            }
            pushes.append(try push(item, registration, record, name, origin, now))
            sent.append(Sent(tokenID: item.tokenID, kind: registration.kind))
        }
        let notes = counts.dead.isEmpty ? [] : [NoteCode("zulip.unknown-or-expired-token")]
        // What is looked up for nothing is paid for too.
        let charge = counts.dead.isEmpty ? nil : OriginCharge(of: origin, units: counts.dead.count)
        if pushes.isEmpty {
            var verdict = Verdict<ZulipReply, ZulipError>(
                changes: endings, reply: .now(.notified(counts)), notes: notes, quota: server.quota)
            verdict.charge = charge
            return verdict
        }
        let (known, awaited) = (counts, sent)
        var verdict = Verdict<ZulipReply, ZulipError>(
            pushes: pushes, changes: endings,
            reply: .afterFirstAttempt(deadline: replyDeadline) { outcomes in
                .notified(Self.count(outcomes, awaited, known))
            },
            notes: notes, quota: server.quota)
        verdict.charge = charge
        // Whoever has a domain has as many host names as they please.
        verdict.turns = admission == .open ? .byClient : .byOrigin
        return verdict
    }

    /// What the reply needs to know of one push.
    private struct Sent: Sendable {
        let tokenID: TokenID
        let kind: TokenKind
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
            case .known(.unregistered): counts.dead.append(push.tokenID)
            case .known(.retry), .known(.rejected), .known(.misconfigured), .dropped: break
            }
        }
        return counts
    }

    private func push(
        _ item: NotifyItem, _ registration: ZulipRegistration, _ record: Record, _ name: RecordKey,
        _ origin: Secret, _ now: UnixTime
    ) throws(ZulipError) -> Push {
        let message: ProviderMessage
        let pushClass: PushClass
        switch item.target {
        case .apns(let priority, let type):
            var sent = APNsMessage(
                token: registration.token, bundle: registration.appID ?? "", topicForm: .asNamed,
                pushType: type, priority: priority, payload: item.payload)
            if item.hasDefaultAps { sent.payload = try item.payload(fallback: fallbacks.aps(for: sent)) }
            message = .apns(sent)
            pushClass = Self.pushClass(priority, type)
        case .fcm(let priority):
            message = .fcm(FCMMessage(address: registration.token, priority: priority, data: item.payload))
            pushClass = priority == .high ? .normal : .background
        }
        return Push(
            message: message, pushClass: pushClass, origin: origin, record: name,
            touchedAt: record.touchedAt, registeredAddress: record.addressDigest,
            custodyEnds: now + ZulipLimits.custody,
            repeatIdentity: Self.identity(registration.token, item.payload, item.ciphertext))
    }

    /// Only a call is urgent; removals and the like are background.
    private static func pushClass(_ priority: UInt8, _ type: APNsPushType) -> PushClass {
        if type == .voip { return .urgent }
        return priority == 10 && type != .background ? .normal : .background
    }

    /// Address ‖ 0 ‖ ciphertext: the same nonce and key never come twice but in a repeat.
    private static func identity(_ address: Secret, _ payload: Secret, _ ciphertext: Range<Int>) -> Secret {
        address.reveal { address in
            payload.reveal { payload in
                Secret(count: address.count + 1 + ciphertext.count) { out in
                    out.copyMemory(from: address)
                    out[address.count] = 0
                    UnsafeMutableRawBufferPointer(rebasing: out[(address.count + 1)...])
                        .copyMemory(from: UnsafeRawBufferPointer(rebasing: payload[ciphertext]))
                }
            }
        }
    }
}
