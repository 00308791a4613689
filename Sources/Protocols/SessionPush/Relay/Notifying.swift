import Primitives
import PushModel
import WireFormats

/// `notify.message` (§10.4).
extension SessionRelay {
    /// A message that was not handed on may be told of again.
    package func release(_ push: StoragePush) { seen.leave(push) }

    func notify(_ push: StoragePush) async throws(SessionError) -> SessionVerdict {
        guard push.hash.reveal({ PlainText.run($0, from: 0) == $0.count }) else {
            return Self.nothing(NoteCode("session.odd-hash"))
        }
        let now = world.now()
        guard push.expiry > now else { return Self.nothing(NoteCode("session.expired")) }
        guard seen.enter(push, now: world.instant()) else {
            return Self.nothing(NoteCode("session.duplicate"))
        }
        do throws(SessionError) {
            return judged(push, try await rows(push.account), now)
        } catch {
            seen.leave(push)
            throw error
        }
    }

    private static func nothing(_ note: NoteCode) -> SessionVerdict {
        Verdict(reply: .now(.taken), notes: [note])
    }

    /// A push for each subscription that asked for the namespace.
    private func judged(_ push: StoragePush, _ rows: [Record], _ now: UnixTime) -> SessionVerdict {
        var pushes: [Push] = []
        var notes: Set<NoteCode> = []
        for record in rows where record.state == .live {
            record.body.reveal { body in
                guard let view = SubscriptionView(body) else { return }
                guard view.wants(push.namespace) else { return }
                guard let app = apps[view.service, view.app] else {
                    notes.insert(NoteCode("session.app-gone"))
                    return
                }
                guard let message = message(push, view, app, now) else {
                    notes.insert(NoteCode("session.too-large"))
                    return
                }
                pushes.append(
                    Push(
                        message: message, pushClass: Self.pushClass(push.namespace),
                        origin: push.account.bytes, record: record.key, touchedAt: record.touchedAt,
                        custodyEnds: min(push.expiry, now + SessionLimits.custody),
                        repeatIdentity: Self.identity(push, view)))
            }
        }
        notes.insert(NoteCode(pushes.isEmpty ? "session.unwanted" : "session.notified"))
        return Verdict(pushes: pushes, reply: .now(.taken), notes: Array(notes))
    }

    /// What people read waits for nothing but calls, of which the relay cannot tell one; the rest keeps a
    /// device's state.
    private static func pushClass(_ namespace: Int16) -> PushClass {
        isMessage(namespace) ? .normal : .background
    }

    /// Messages of people, and of groups (§4).
    private static func isMessage(_ namespace: Int16) -> Bool { namespace == 0 || namespace == 11 }

    /// BLAKE2b of service, token and hash.
    static func identity(_ push: StoragePush, _ view: SubscriptionView) -> Secret {
        let word = view.service.word
        let service = UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        return push.hash.reveal { Blake2b.digest32([service, view.token, $0]) }
    }

    private func message(
        _ push: StoragePush, _ view: SubscriptionView, _ app: SessionApp, _ now: UnixTime
    ) -> ProviderMessage? {
        let end = min(push.expiry, now + SessionLimits.custody)
        let token = Secret(copying: view.token)
        if view.service.isApple {
            guard let bundle = app.bundle else { return nil }
            guard let payload = applePayload(push, view, app) else { return nil }
            return .apns(
                APNsMessage(
                    token: token, bundle: bundle, environment: view.service.environment, pushType: .alert,
                    priority: 10, expiration: end, payload: payload))
        }
        let sealing = PushSealing(push, wantsData: view.wantsData, policy.metadata)
        let isHigh = policy.fcmHigh == .always || Self.isMessage(push.namespace)
        return .fcm(
            FCMMessage(
                address: token, app: app.name, priority: isHigh ? .high : .normal, ttl: end.since(now),
                data: sealing.payload(key: view.encryptionKey, world, in: .google)))
    }

    /// Where a fallback of the app's own leaves too little room, the message stays behind.
    private func applePayload(
        _ push: StoragePush, _ view: SubscriptionView, _ app: SessionApp
    ) -> Secret? {
        for most in [SessionLimits.pushMessageBytes, 0] {
            let payload = PushSealing(push, wantsData: view.wantsData, policy.metadata, most: most)
                .payload(key: view.encryptionKey, world, in: app.envelope)
            if payload.count <= SessionLimits.apnsBytes { return payload }
        }
        return nil
    }
}
