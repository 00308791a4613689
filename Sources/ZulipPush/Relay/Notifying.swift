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
        let isKnown = memory.knows(request.realm, of: credentials)
        var found: [Record?] = []
        if !isKnown {
            found = try await find(names)
            _ = try authorise(request.realm, credentials, found)
        }
        for item in request.items { names.append(keys.device(request.realm, item.tokenID)) }
        // Who was known is judged by what is stored now, like everybody.
        found += try await find(isKnown ? names : Array(names[2...]))
        return try pushes(
            request.items, found, names, try authorise(request.realm, credentials, found))
    }

    private func pushes(
        _ items: [NotifyItem], _ found: [Record?], _ names: [RecordKey], _ realm: AuthorisedRealm
    ) throws(ZulipError) -> ZulipVerdict {
        let now = world.now()
        let origin = Secret(realm.server.id.bytes)
        var counts = NotifyCounts()
        var pushes: [Push] = []
        var sent: [Sent] = []
        pushes.reserveCapacity(items.count)
        sent.reserveCapacity(items.count)
        for (index, item) in items.enumerated() {
            guard let record = found[index + 2], let registration = ZulipRegistration(body: record.body)
            else {
                counts.dead.append(item.tokenID)
                continue
            }
            guard registration.kind == item.target.kind else { throw ZulipError(.kindMismatch) }
            guard record.state == .live else {
                counts.dead.append(item.tokenID)
                continue
            }
            pushes.append(push(item, registration, record, names[index + 2], origin, now))
            sent.append(Sent(tokenID: item.tokenID, kind: registration.kind))
        }
        let notes = counts.dead.isEmpty ? [] : [NoteCode("zulip.unknown-or-expired-token")]
        if pushes.isEmpty { return Verdict(reply: .now(.notified(counts)), notes: notes) }
        let (known, awaited) = (counts, sent)
        return Verdict(
            pushes: pushes,
            reply: .afterFirstAttempt(deadline: replyDeadline) { outcomes in
                .notified(Self.count(outcomes, awaited, known))
            },
            notes: notes, quota: realm.server.quota)
    }

    /// What the reply needs to know of one push.
    private struct Sent: Sendable {
        let tokenID: TokenID
        let kind: TokenKind
    }

    /// Accepted and not yet answered count as sent; refused for good is dead; the rest is neither (DESIGN
    /// §2.6).
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
    ) -> Push {
        let message: ProviderMessage
        let pushClass: PushClass
        switch item.target {
        case .apns(let priority, let type):
            message = .apns(
                APNsMessage(
                    token: registration.token, bundle: registration.appID ?? "", topicForm: .asNamed,
                    pushType: type, priority: priority, payload: item.payload))
            pushClass = Self.pushClass(priority, type)
        case .fcm(let priority):
            message = .fcm(FCMMessage(address: registration.token, priority: priority, data: item.payload))
            pushClass = priority == .high ? .normal : .background
        }
        return Push(
            message: message, pushClass: pushClass, origin: origin, record: name, touchedAt: record.touchedAt,
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
