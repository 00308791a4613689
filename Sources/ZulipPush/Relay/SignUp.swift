package import PushModel
import WireFormats

/// Sign-up, change of contact, host or key (§5.2).
extension ZulipRelay {
    func signUp(_ form: SignUpForm) async throws(ZulipError) -> ZulipVerdict {
        let found = try await find([
            keys.server(form.id), keys.host(form.hostname), keys.invitation(form.hostname)
        ])
        let holder = found[1].flatMap { UUIDText(bytes: $0.body.reveal { Array($0) }) }
        guard let record = found[0], let server = ZulipServer(body: record.body) else {
            let verdict = try create(form, holder: holder, invitation: found[2])
            try await checkDomain(of: form.mail)
            return verdict
        }
        guard server.isKey(form.keyHash) else {
            var error = ZulipError(.keyOfOtherServer)
            error.role = Secret(form.id.text.utf8)
            throw error
        }
        guard server.standing == .active else { throw ZulipError(.serverIsDeactivated) }
        let verdict = try update(server, record, form, holder: holder, invitation: found[2])
        if !(server.mail == form.mail.text) { try await checkDomain(of: form.mail) }
        return verdict
    }

    /// Asked last, so that only who is let in can make this relay ask a name server.
    private func checkDomain(of mail: ContactMail) async throws(ZulipError) {
        guard let mailDomains else { return }
        try chargeFetch()
        switch await mailDomains.takesMail(mail.domain) {
        case true?: return
        case false?: throw ZulipError(.mailDomainRefused)
        case nil: throw ZulipError(.mailDomainUnknown)
        }
    }

    private func create(
        _ form: SignUpForm, holder: UUIDText?, invitation: Record?
    ) throws(ZulipError) -> ZulipVerdict {
        guard holder == nil else { throw ZulipError(.hostnameTaken) }
        let used = try admit(form.hostname, invitation)
        // A new key is for a server that is known. One that is not keeps the key it signs up with: told
        // `created`, deployed servers throw the new one away.
        let server = ZulipServer(
            id: form.id, keyHash: form.keyHash, standing: .active, hostname: form.hostname.text,
            mail: form.mail.text)
        let now = world.now()
        let changes: [Change] =
            [.put(server.record(keys, now: now), if: .absent), .put(hostRecord(form, now), if: .absent)]
            + used
        return Verdict(
            changes: changes, reply: .now(.signedUp(created: true)),
            refusal: { ZulipError($0 == 1 ? .hostnameTaken : .overloaded) },
            notes: [NoteCode("zulip.server-signed-up")])
    }

    private func update(
        _ known: ZulipServer, _ record: Record, _ form: SignUpForm, holder: UUIDText?, invitation: Record?
    ) throws(ZulipError) -> ZulipVerdict {
        var server = known
        let now = world.now()
        server.mail = form.mail.text
        server.hostname = form.hostname.text
        // Whoever changes a record shows the key that is current, and with that the one of before ends.
        var keyChanges: [Change] = []
        if known.oldKeyEnds != nil {
            keyChanges.append(.delete(keys.oldKey(of: known.id, before: known.keyHash), if: .any))
            server.oldKeyEnds = nil
        }
        if let newKey = form.newKeyHash, !(newKey == known.keyHash) {
            let end = now + ZulipLimits.oldKeyLife
            let old = Record(
                key: keys.oldKey(of: known.id, before: newKey), touchedAt: now, expiresAt: end,
                body: known.keyHash)
            keyChanges.append(.put(old, if: .any))
            server.keyHash = newKey
            server.oldKeyEnds = end
            memory.forget(server.id)
        }
        var changes: [Change] = []
        if holder == nil {
            // A change of host: the old name becomes free, and the new one must be admitted like a sign-up's.
            changes.append(.put(hostRecord(form, now), if: .absent))
            if let old = ZulipHostname(Array(known.hostname.utf8)), old != form.hostname {
                changes.append(.delete(keys.host(old), if: .any))
            }
            changes += try admit(form.hostname, invitation)
        } else if holder != form.id {
            throw ZulipError(.hostnameTaken)
        }
        let hostChange = changes.isEmpty ? nil : 0
        changes.append(.put(server.record(keys, now: now), if: .revision(record.revision)))
        changes += keyChanges
        return Verdict(
            changes: changes, reply: .now(.signedUp(created: false)),
            refusal: { ZulipError($0 == hostChange ? .hostnameTaken : .overloaded) },
            notes: form.newKeyHash == nil ? [] : [NoteCode("zulip.key-rotated")])
    }

    /// Whether the policy lets this host in.
    ///
    /// - Returns: what the admission uses up.
    private func admit(_ host: ZulipHostname, _ invitation: Record?) throws(ZulipError) -> [Change] {
        switch admission {
        case .open: return []
        case .allowList(let names):
            guard names.contains(host.name) else { throw ZulipError(.notAdmitted) }
            return []
        case .invitation:
            guard let invitation, invitation.expiresAt > world.now() else { throw ZulipError(.notAdmitted) }
            return [.delete(keys.invitation(host), if: .revision(invitation.revision))]
        }
    }

    private func hostRecord(_ form: SignUpForm, _ now: UnixTime) -> Record {
        Record(key: keys.host(form.hostname), touchedAt: now, body: Secret(form.id.bytes))
    }
}

/// An invitation, as `sealbell origins invite HOST` writes it.
package enum ZulipInvitation {
    /// The change to apply; an invitation that stands already begins anew.
    ///
    /// - Parameter host: a host name; a port is ignored. `nil` when it is none.
    package static func change(_ host: String, instance: ConfiguredName, now: UnixTime) -> Change? {
        guard let name = ZulipHostname(Array(host.utf8)) else { return nil }
        let record = Record(
            key: ZulipKeys(instance).invitation(name), touchedAt: now,
            expiresAt: now + ZulipLimits.invitationLife,
            body: Secret(name.name.utf8))
        return .put(record, if: .any)
    }
}
