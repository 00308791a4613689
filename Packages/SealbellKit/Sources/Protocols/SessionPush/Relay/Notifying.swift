import Primitives
import PushModel
import WireFormats

/// `notify.message` (§10.4).
extension SessionRelay {
    /// A message that was not handed on may be reported again.
    package func release(_ notice: StorageNotice) {
        seen.leave(notice, says: NoticeContent(notice, key: seen.key))
    }

    /// - Parameter revision: if an account has more rows than one commit takes, only the rows after this one
    ///   are read; 0: all.
    @inline(__always)
    func notify(
        _ notice: StorageNotice, after revision: UInt64
    ) async throws(SessionError) -> SessionVerdict {
        guard notice.hash.reveal({ PlainText.run($0, from: 0) == $0.count }) else {
            return Self.verdict([], NoticeNote.oddHash)
        }
        let now = world.now()
        guard notice.expiry > now else { return Self.verdict([], NoticeNote.expired) }
        let content = NoticeContent(notice, key: seen.key)
        guard revision > 0 || seen.enter(notice, says: content, now: now) else {
            return Self.verdict([], NoticeNote.duplicate)
        }
        do throws(SessionError) {
            let rows = try await page(
                .owner(keys.owner(notice.account)), after: revision, limit: SessionLimits.rowsPerLookup)
            var verdict = judged(notice, content, rows, now)
            if rows.count == SessionLimits.rowsPerLookup, let last = rows.last {
                verdict.reply = .now(.taken(restAfter: last.revision))
            }
            return verdict
        } catch {
            if revision == 0 { seen.leave(notice, says: content) }
            throw error
        }
    }

    /// The value from which every verdict on a message starts: making a new one costs as much as a look-up,
    /// because the compiler specialises none of it (decision 0073).
    private static let taken = SessionVerdict(reply: .now(.taken(restAfter: nil)))

    /// ``SessionLimits/custody`` in milliseconds: converting a duration costs more than adding it.
    private static let custody = SessionLimits.custody.wholeMilliseconds

    /// Not inlined, so that it is filled directly in the caller's memory.
    @inline(never)
    private static func verdict(_ pushes: consuming [Push], _ notes: [NoteCode]) -> SessionVerdict {
        var verdict = taken
        verdict.pushes = pushes
        verdict.notes = notes
        return verdict
    }

    /// A push for each subscription that asked for the namespace.
    private func judged(
        _ notice: StorageNotice, _ content: NoticeContent, _ rows: [Record], _ now: UnixTime
    ) -> SessionVerdict {
        let end = min(notice.expiry, UnixTime(milliseconds: now.milliseconds + Self.custody))
        let traits = PushTraits(isMessage: Self.isMessage(notice.namespace), end: end, now: now)
        var pushes: [Push] = []
        pushes.reserveCapacity(rows.count)
        var (isAppGone, isTooLarge) = (false, false)
        PushSealing.lend(policy.metadata, for: notice) { sealing in
            // Refers to rows by index: copying each row would retain everything in it.
            for at in rows.indices where rows[at].state == .live {
                rows[at].body.reveal { body in
                    guard let view = SubscriptionView(body) else { return }
                    guard view.wants(notice.namespace) else { return }
                    guard let app = apps[view.service, view.app] else { return isAppGone = true }
                    guard let message = message(notice, traits, view, app, &sealing) else {
                        return isTooLarge = true
                    }
                    pushes.append(
                        Push(
                            message: message, pushClass: Self.pushClass(traits), origin: notice.account.bytes,
                            record: rows[at].key, touchedAt: rows[at].touchedAt,
                            registeredAddress: rows[at].addressDigest, custodyEnds: end,
                            repeatIdentity: Self.identity(notice, content, view)))
                }
            }
        }
        var notes = pushes.isEmpty ? NoticeNote.unwanted : NoticeNote.notified
        if isAppGone { notes += NoticeNote.appGone }
        if isTooLarge { notes += NoticeNote.tooLarge }
        return Self.verdict(pushes, notes)
    }

    /// What the pushes of a message to all devices have in common.
    private struct PushTraits {
        let isMessage: Bool
        /// Until when they are owed.
        let end: UnixTime
        let now: UnixTime
    }

    /// Messages that people read come after calls alone, and the relay cannot recognise a call; the others
    /// only keep a device's state.
    private static func pushClass(_ traits: PushTraits) -> PushClass {
        traits.isMessage ? .normal : .background
    }

    /// Messages of people, and of groups (§4).
    private static func isMessage(_ namespace: Int16) -> Bool { namespace == 0 || namespace == 11 }

    /// BLAKE2b of service, token and hash. If the message itself is included, also of everything else
    /// reported about it, so that no report, at any relay on the store, can hide another.
    static func identity(_ notice: StorageNotice, _ content: NoticeContent, _ view: SubscriptionView)
        -> Secret
    {
        let word = view.service.word
        return Blake2b.digest32 { hash in
            hash.update(UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
            hash.update(view.token)
            notice.hash.reveal { hash.update($0) }
            guard notice.dataCount > 0 else { return }
            withUnsafeBytes(of: (notice.timestamp.milliseconds, notice.expiry.milliseconds)) {
                hash.update($0)
            }
            if !content.isProved { notice.data?.reveal { hash.update($0) } }
        }
    }

    private func message(
        _ notice: StorageNotice, _ traits: PushTraits, _ view: SubscriptionView, _ app: SessionApp,
        _ sealing: inout PushSealing
    ) -> ProviderMessage? {
        let token = Secret(copying: view.token)
        if view.service.isApple {
            guard let bundle = app.bundle, let payload = applePayload(notice, view, app, &sealing)
            else { return nil }
            return .apns(
                APNsMessage(
                    token: token, bundle: bundle,
                    environment: view.service.environment, pushType: .alert,
                    priority: 10, expiration: traits.end, payload: payload))
        }
        let isHigh = policy.fcmHigh == .always || traits.isMessage
        return .fcm(
            FCMMessage(
                address: token, app: app.name, priority: isHigh ? .high : .normal,
                ttl: traits.end.since(traits.now),
                data: sealing.payload(
                    notice, wantsData: view.wantsData, key: view.encryptionKey, world, in: .google)))
    }

    /// If the app's own fallback leaves too little room, the message is left out.
    private func applePayload(
        _ notice: StorageNotice, _ view: SubscriptionView, _ app: SessionApp, _ sealing: inout PushSealing
    ) -> Secret? {
        var most = SessionLimits.pushMessageBytes
        while true {
            let payload = sealing.payload(
                notice, wantsData: view.wantsData, most: most, key: view.encryptionKey, world,
                in: app.envelope)
            if payload.count <= SessionLimits.apnsBytes { return payload }
            guard most > 0 else { return nil }
            most = 0
        }
    }
}

/// The notes that are counted for messages, each as the list that most verdicts have: every message brings
/// one from every member of its swarm, and building a code's text allocates.
private enum NoticeNote {
    static let oddHash = [NoteCode("session.odd-hash")]
    static let expired = [NoteCode("session.expired")]
    static let duplicate = [NoteCode("session.duplicate")]
    static let appGone = [NoteCode("session.app-gone")]
    static let tooLarge = [NoteCode("session.too-large")]
    static let unwanted = [NoteCode("session.unwanted")]
    static let notified = [NoteCode("session.notified")]
}
