import PushModel

/// `POST /subscribe` and `POST /unsubscribe`, element by element (§3).
extension SessionRelay {
    func subscribe(_ form: SubscribeForm) async throws(SessionError) -> SessionVerdict {
        let claim = form.claim
        guard let app = apps[claim.service] else { throw SessionError(.unavailableService) }
        let now = world.now()
        let age = now.since(UnixTime(seconds: claim.signedAt))
        let isInTime = age < SessionLimits.signatureLife && .zero - SessionLimits.futureSignature < age
        guard claim.signedAt > 0, isInTime else { throw SessionError(.outsideTimeWindow) }
        let signer = try ClaimProof.verify(
            claim,
            over: SignedText.monitor(
                claim.account, at: claim.signedAt, wantsData: form.wantsData, form.namespaces),
            takesSubkeys: policy.takesSubkeys)
        try charge(claim.account)
        let (known, former) = try await find(claim)
        let version = SessionVersion.live(claim.signedAt)
        if let known, known.version > version {
            // An older signature: what is newer stays, whether it is a subscription or the end of one.
            guard known.state == .live else { throw SessionError(.unsubscribedSince) }
            return Verdict(reply: .now(.updated), notes: [NoteCode("session.older-signature")])
        }
        let isNew = known?.state != .live
        if isNew { try await leaveRoom(claim.account) }
        var notes = [NoteCode(isNew ? "session.subscribed" : "session.renewed")]
        if signer == .subkey { notes.append(NoteCode("session.subkey")) }
        let record = SessionSubscription(form, app: app.name, isLocal: signer == .subkey)
            .record(keys, bundle: app.bundle, now: now)
        return Verdict(
            // A newer signature, or the end of the subscription, may have come in between.
            changes: [.put(record, if: .versionBelow(version + 1))] + former,
            reply: .now(isNew ? .added : .updated), refusal: { _ in SessionError(.overloaded) }, notes: notes)
    }

    /// What stands of a subscription, and what goes when it is written. Earlier versions named it by its
    /// token as it was spelled: then it is among the account's rows, goes, and is written under the one
    /// spelling.
    private func find(_ claim: SessionClaim) async throws(SessionError) -> (Record?, former: [Change]) {
        if let known = try await find(keys.subscription(claim.account, claim.service, claim.token)) {
            return (known, [])
        }
        guard claim.service.isApple else { return (nil, []) }
        let former = try await rows(claim.account).first { row in
            SessionSubscription(row).map {
                $0.service == claim.service && APNsMessage.canonical($0.token) == claim.token
            } ?? false
        }
        guard let former else { return (nil, []) }
        return (former, [.delete(former.key, if: .revision(former.revision))])
    }

    private func leaveRoom(_ account: AccountID) async throws(SessionError) {
        let rows = try await rows(account)
        let live = rows.reduce(0) { $0 + ($1.state == .live ? 1 : 0) }
        guard live < SessionLimits.subscriptionsPerAccount, rows.count < SessionLimits.rowsPerLookup else {
            throw SessionError(.tooManySubscriptions)
        }
    }

    func unsubscribe(_ form: UnsubscribeForm) async throws(SessionError) -> SessionVerdict {
        let claim = form.claim
        guard apps[claim.service] != nil else { throw SessionError(.unavailableService) }
        let now = world.now()
        let distance = now.since(UnixTime(seconds: claim.signedAt))
        let window = .zero - SessionLimits.unsubscribeWindow...SessionLimits.unsubscribeWindow
        guard window.contains(distance) else { throw SessionError(.outsideTimeWindow) }
        _ = try ClaimProof.verify(
            claim, over: SignedText.unsubscribe(claim.account, at: claim.signedAt),
            takesSubkeys: policy.takesSubkeys)
        try charge(claim.account)
        let key = keys.subscription(claim.account, claim.service, claim.token)
        let (known, former) = try await find(claim)
        let wasThere = known?.state == .live
        if known == nil { try await leaveRoom(claim.account) }
        // Above what it ends, even where that was signed later: who asks for the end is asked nothing more.
        let version = max(SessionVersion.tombstone(claim.signedAt), (known?.version ?? 0) | 1)
        if let known, known.state == .tombstone, known.version >= version {
            return Verdict(reply: .now(.removed(false)))
        }
        let tombstone = Record(
            key: key, owner: keys.owner(claim.account), version: version, state: .tombstone, touchedAt: now,
            // Whatever it holds off is too old from then on.
            expiresAt: UnixTime(seconds: SessionVersion.signedAt(version)) + SessionLimits.signatureLife,
            body: Secret([]))
        return Verdict(
            changes: [
                .put(
                    tombstone,
                    if: former.isEmpty ? known.map { .revision($0.revision) } ?? .absent : .absent)
            ] + former,
            reply: .now(.removed(wasThere)), refusal: { _ in SessionError(.overloaded) },
            notes: wasThere ? [NoteCode("session.unsubscribed")] : [])
    }
}
