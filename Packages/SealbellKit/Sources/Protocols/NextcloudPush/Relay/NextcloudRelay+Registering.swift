import PushModel
import RSAKeys

/// `POST /devices` and `DELETE /devices` (§5.2 to §5.4).
extension NextcloudRelay {
    func register(
        _ form: RegistrationForm, _ inbound: NextcloudInbound
    ) async throws(NextcloudError) -> NextcloudVerdict {
        let client = apps.knows(inbound.client) || !apps.knows(form.client) ? inbound.client : form.client
        let app = try apps.app(prefix: inbound.prefix, client: client, for: form.tokens)
        let owner = form.ownership
        guard work.isSigned(owner) else { throw NextcloudError(.signatureMismatch) }
        if !inbound.isRepeated { try chargeDevice(owner) }
        let record = try await find([keys.pin(owner.identifier)])[0]
        let isAlertOnly = client.isAlertOnly
        guard let record, let pin = NextcloudPin(body: record.body) else {
            try await chargeGuess(at: owner.identifier, nil, inbound)
            try await proveIfNeeded(form, inbound)
            return written(form, app, isAlertOnly, over: record)
        }
        standIn.note(owner.identifier)
        if pin.isOf(owner.key) { return written(form, app, isAlertOnly, over: record) }
        if isKnown(form, by: pin) { return replaced(form, app, isAlertOnly, over: record, pin) }
        try await chargeGuess(at: owner.identifier, pin, inbound)
        // Another key: without a proof the row stays as it is.
        if !inbound.isRepeated { note(NoteCode("nextcloud.key-conflict")) }
        guard let cloudID = try form.provable(by: web) else { throw NextcloudError(.keyConflict) }
        try await prove(cloudID, owner, inbound)
        return replaced(form, app, isAlertOnly, over: record, pin)
    }

    /// Whether a device that shows another key shows its push token instead (decision 0120). Where first
    /// registrations need the word of certain instances, another key needs it too.
    private func isKnown(_ form: RegistrationForm, by pin: NextcloudPin) -> Bool {
        policy.newKey == .byToken && policy.provenServers.isEmpty
            && TokenHash(of: form.pushToken) == pin.tokenHash
    }

    func unregister(
        _ form: OwnershipForm, _ inbound: NextcloudInbound
    ) async throws(NextcloudError) -> NextcloudVerdict {
        // Verified with the key in the form: nothing is looked up for an unsigned form.
        guard work.isSigned(form) else { throw NextcloudError(.unknownDevice) }
        let record = try await find([keys.pin(form.identifier)])[0]
        let pin = record.flatMap { NextcloudPin(body: $0.body) }
        if pin != nil { standIn.note(form.identifier) }
        guard let record, let pin, pin.isOf(form.key) else {
            try await chargeGuess(at: form.identifier, pin, inbound)
            await level([
                Guess(identifier: form.identifier, pinned: pin?.keyDER, records: .pin, hasReadKey: true)
            ])
            // With another key nothing is registered either, as far as its owner may know.
            switch policy.missingDelete {
            case .forbidden: throw NextcloudError(.unknownDevice)
            case .success: return Verdict(reply: .now(.done))
            }
        }
        if !inbound.isRepeated { try chargeDevice(form) }
        standIn.forget(form.identifier)
        parsed.forget(pin.keyDER)
        return Verdict(
            changes: [.delete(record.key, if: .revision(record.revision))] + tokensDeleted(form.identifier),
            reply: .now(.done), refusal: { _ in NextcloudError(.overtaken) },
            notes: [NoteCode("nextcloud.unregistered")])
    }

    /// Deletes whatever tokens an identifier has.
    func tokensDeleted(_ identifier: DeviceIdentifier) -> [Change] {
        [.delete(keys.alert(identifier), if: .any), .delete(keys.voip(identifier), if: .any)]
    }

    // MARK: writing

    private func replaced(
        _ form: RegistrationForm, _ app: NextcloudApp, _ isAlertOnly: Bool, over record: Record,
        _ pin: NextcloudPin
    ) -> NextcloudVerdict {
        parsed.forget(pin.keyDER)
        var verdict = written(form, app, isAlertOnly, over: record)
        verdict.notes.append(NoteCode("nextcloud.key-replaced"))
        return verdict
    }

    /// Pin and tokens as the form has them; an older call token goes.
    private func written(
        _ form: RegistrationForm, _ app: NextcloudApp, _ isAlertOnly: Bool, over known: Record?
    ) -> NextcloudVerdict {
        let now = world.now()
        let tokens = targets(form, app, isAlertOnly)
        let pad = tokens.voip.map { Secret(world.randomBytes($0.token.count)) }
        let pin = NextcloudPin(
            keyDER: form.ownership.key.der, tokenHash: TokenHash(of: form.pushToken), app: app.name,
            registeredAt: now, voipPad: pad)
        let identifier = form.ownership.identifier
        sights.forget(identifier)
        let address = address(tokens.alert, app)
        let pinned = Record(
            key: keys.pin(identifier), address: address, touchedAt: now,
            expiresAt: now + NextcloudLimits.pinLife, body: pin.body)
        var changes: [Change] = [
            .put(pinned, if: known.map { .revision($0.revision) } ?? .absent),
            .put(
                Record(
                    key: keys.alert(identifier), owner: pinned.key, address: address, touchedAt: now,
                    expiresAt: now + NextcloudLimits.registrationLife, body: tokens.alert.body), if: .any)
        ]
        if let voip = tokens.voip, let pad, let crossed = voip.crossed(with: pad) {
            changes.append(
                .put(
                    Record(
                        key: keys.voip(identifier), owner: pinned.key, address: self.address(voip, app),
                        touchedAt: now, expiresAt: now + NextcloudLimits.registrationLife,
                        body: crossed.body), if: .any))
        } else {
            changes.append(.delete(keys.voip(identifier), if: .any))
        }
        return Verdict(
            changes: changes, reply: .now(.done),
            // Two registrations of one device at one time: it is judged again.
            refusal: { _ in NextcloudError(.overtaken) },
            notes: [NoteCode(known == nil ? "nextcloud.registered" : "nextcloud.renewed")])
    }

    private func targets(
        _ form: RegistrationForm, _ app: NextcloudApp, _ isAlertOnly: Bool
    ) -> (alert: NextcloudTarget, voip: NextcloudTarget?) {
        func target(_ kind: NextcloudTarget.Kind, _ token: Secret) -> NextcloudTarget {
            NextcloudTarget(kind: kind, token: token, app: app.name, environment: form.environment)
        }
        switch form.tokens {
        case .fcm(let token): return (target(.fcm, token), nil)
        case .apns(let alert, let voip):
            // A build of before 2020 took everything as a call; an app without PushKit takes none.
            let isCalled = app.hasVoIP && !isAlertOnly
            return (target(.apns, alert), isCalled ? voip.map { target(.apns, $0) } : nil)
        }
    }

    private func address(_ target: NextcloudTarget, _ app: NextcloudApp) -> RecordKey {
        keys.address(of: target.token, bundle: target.kind == .apns ? app.bundle : nil)
    }
}
