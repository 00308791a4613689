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
        let signer = try prove(
            claim,
            over: SignedText.monitor(
                claim.account, at: claim.signedAt, wantsData: form.wantsData, form.namespaces))
        try charge(signer, claim.account)
        let known = try await find(claim)
        if let record = known.subscription {
            guard SignatureOrder.renews(claim.signedAt, record, now: now) else {
                throw SessionError(record.state == .live ? .subscribedSince : .unsubscribedSince)
            }
        }
        if let end = known.end, !SignatureOrder.follows(claim, end, now: now) {
            throw SessionError(.unsubscribedSince)
        }
        let isNew = known.subscription?.state != .live
        let room = isNew ? try await makeRoom(signer, claim) : []
        var notes = [NoteCode(isNew ? "session.subscribed" : "session.renewed")]
        if signer.isSubkey { notes.append(NoteCode("session.subkey")) }
        let subscription = SessionSubscription(form, app: app.name, isLocal: signer.isSubkey)
        let record = subscription.record(keys, bundle: app.bundle, now: now)
        let slot = subscription.slot(keys, signer: signer.key, bundle: app.bundle, now: now)
        return Verdict(
            changes: [
                .put(record, if: known.condition(record)),
                // An end may have arrived in the meantime.
                .delete(known.endName, if: Self.unchanged(known.end)), .put(slot, if: .any)
            ] + room,
            reply: .now(isNew ? .added : .updated), refusal: { _ in SessionError(.overloaded) }, notes: notes)
    }

    func unsubscribe(_ form: UnsubscribeForm) async throws(SessionError) -> SessionVerdict {
        let claim = form.claim
        guard apps[claim.service] != nil else { throw SessionError(.unavailableService) }
        let now = world.now()
        let distance = now.since(UnixTime(seconds: claim.signedAt))
        let window = .zero - SessionLimits.unsubscribeWindow...SessionLimits.unsubscribeWindow
        guard window.contains(distance) else { throw SessionError(.outsideTimeWindow) }
        let signer = try prove(claim, over: SignedText.unsubscribe(claim.account, at: claim.signedAt))
        try charge(signer, claim.account)
        let known = try await find(claim)
        let living = known.subscription.flatMap { $0.state == .live ? $0 : nil }
        if let living, !SignatureOrder.ends(claim.signedAt, living, now: now) {
            throw SessionError(.subscribedSince)
        }
        let standing = max(known.end?.version ?? 0, known.subscription.map { $0.version | 1 } ?? 0)
        let version = max(SessionVersion.end(claim.signedAt), standing)
        if living == nil, known.end?.version == version {
            return Verdict(reply: .now(.removed(false)))
        }
        let end = SubscriptionEnd(
            isOfThatSecond: SessionVersion.signedAt(version) == claim.signedAt,
            signature: living.flatMap { SessionSubscription($0)?.signature }, after: known.end)
        let tombstone = Record(
            key: known.endName, version: version, state: .tombstone, touchedAt: now,
            // Everything that it blocks is too old from then on.
            expiresAt: UnixTime(seconds: SessionVersion.signedAt(version)) + SessionLimits.signatureLife,
            body: end.body)
        return Verdict(
            changes: [
                .put(tombstone, if: Self.unchanged(known.end)),
                .delete(known.name, if: Self.unchanged(known.subscription)),
                .delete(keys.slot(claim.account, claim.service, claim.token), if: .any)
            ],
            reply: .now(.removed(living != nil)), refusal: { _ in SessionError(.overloaded) },
            notes: living == nil ? [] : [NoteCode("session.unsubscribed")])
    }

    /// As it was when it was read.
    private static func unchanged(_ record: Record?) -> Condition {
        record.map { .revision($0.revision) } ?? .absent
    }

    // MARK: what stands

    /// What is known of one subscription.
    private struct Known {
        /// Decides the order of signatures.
        let subscription: Record?
        let end: Record?
        /// The rows under these names.
        let name: RecordKey
        let endName: RecordKey

        /// A later signature may have arrived in the meantime, and wins.
        func condition(_ record: Record) -> Condition {
            guard let subscription, subscription.version > record.version else {
                return .versionBelow(record.version + 1)
            }
            return .revision(subscription.revision)
        }
    }

    private func find(_ claim: SessionClaim) async throws(SessionError) -> Known {
        let (account, service, token) = (claim.account, claim.service, claim.token)
        let names = [keys.subscription(account, service, token), keys.end(account, service, token)]
        let rows = try await find(names)
        return Known(subscription: rows[0], end: rows[1], name: names[0], endName: names[1])
    }

    // MARK: room

    /// Makes sure that the signer has fewer subscriptions than allowed.
    ///
    /// - Returns: what is deleted to make room: slots whose subscriptions have ended by themselves.
    private func makeRoom(
        _ signer: ClaimProof.Signer, _ claim: SessionClaim
    ) async throws(SessionError) -> [Change] {
        let slots = try await page(
            .owner(keys.owner(claim.account, signer: signer.key)),
            limit: SessionLimits.subscriptionsPerSigner)
        // A token that was reported dead may still have its slot, which is written again.
        let own = keys.slot(claim.account, claim.service, claim.token).name
        guard slots.count == SessionLimits.subscriptionsPerSigner,
            !slots.contains(where: { $0.key.name == own })
        else { return [] }
        let standing = try await find(slots.map { keys.subscription(beside: $0.key) })
        var ended: [Change] = []
        for (slot, subscription) in zip(slots, standing) where subscription?.state != .live {
            ended.append(.delete(slot.key, if: .revision(slot.revision)))
            if let subscription {
                ended.append(.delete(subscription.key, if: .revision(subscription.revision)))
            }
        }
        guard !ended.isEmpty else { throw SessionError(.tooManySubscriptions) }
        return ended
    }
}
