package import PushModel
import WireFormats

/// Sign-up, change of contact, host or key (§5.2).
extension ZulipRelay {
    func signUp(_ form: SignUpForm) async throws(ZulipError) -> ZulipVerdict {
        let found = try await find([
            keys.server(form.id), keys.host(form.hostname), keys.name(form.hostname),
            keys.invitation(form.hostname)
        ])
        let room = HostRoom(
            host: found[1], name: found[2], invitation: found[3],
            others: try await others(at: form.hostname, besides: form.id))
        guard let record = found[0], let server = ZulipServer(body: record.body) else {
            let verdict = try create(form, room)
            try await checkDomain(of: form.mail)
            return verdict
        }
        guard server.isKey(form.keyHash) else {
            var error = ZulipError(.keyOfOtherServer)
            error.role = Secret(form.id.text.utf8)
            throw error
        }
        guard server.standing == .active else { throw ZulipError(.serverIsDeactivated) }
        let verdict = try await update(server, record, form, room)
        if !(server.mail == form.mail.text) { try await checkDomain(of: form.mail) }
        return verdict
    }

    /// Whether the form shows the key of a server that is known: no stranger, then, whose sign-ups are
    /// counted all together.
    ///
    /// - Throws: `.overloaded` when the store is out.
    package func vouches(for form: SignUpForm) async throws(ZulipError) -> Bool {
        let record = try await find([keys.server(form.id)])[0]
        guard let server = record.flatMap({ ZulipServer(body: $0.body) }) else { return false }
        return server.standing == .active && server.isKey(form.keyHash)
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

    private func create(_ form: SignUpForm, _ room: HostRoom) throws(ZulipError) -> ZulipVerdict {
        guard room.host == nil else { throw ZulipError(.hostnameTaken) }
        // A new key is for a server that is known. One that is not keeps the key it signs up with: told
        // `created`, deployed servers throw the new one away.
        let server = ZulipServer(
            id: form.id, keyHash: form.keyHash, standing: .active, hostname: form.hostname.text,
            mail: form.mail.text)
        let now = world.now()
        let changes = [.put(server.record(keys, now: now), if: .absent)] + (try admit(form, room, now))
        return Verdict(
            changes: changes, reply: .now(.signedUp(created: true)), refusal: hostRefusal(changes),
            notes: [NoteCode("zulip.server-signed-up")])
    }

    private func update(
        _ known: ZulipServer, _ record: Record, _ form: SignUpForm, _ room: HostRoom
    ) async throws(ZulipError) -> ZulipVerdict {
        var server = known
        let now = world.now()
        server.mail = form.mail.text
        server.hostname = form.hostname.text
        // A caller who changes a record shows the current key, and with that the former one ends.
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
        if room.host == nil {
            changes = try await move(known, form, room, now)
        } else if room.host?.holder != form.id {
            throw ZulipError(.hostnameTaken)
        }
        changes.append(.put(server.record(keys, now: now), if: .revision(record.revision)))
        changes += keyChanges
        return Verdict(
            changes: changes, reply: .now(.signedUp(created: false)), refusal: hostRefusal(changes),
            notes: form.newKeyHash == nil ? [] : [NoteCode("zulip.key-rotated")])
    }
}

/// An invitation, as `sealbell origins invite HOST` writes it.
package enum ZulipInvitation {
    /// - Parameter record: as ``change(_:instance:now:)`` writes it.
    static func read(_ record: Record) -> OriginInvitation {
        OriginInvitation(
            host: record.body.reveal { String(decoding: $0, as: UTF8.self) }, expiresAt: record.expiresAt)
    }

    /// The change to apply; an existing invitation starts again.
    ///
    /// - Parameter host: a host name; a port is ignored. `nil` when it is none.
    package static func change(_ host: String, instance: ConfiguredName, now: UnixTime) -> Change? {
        guard let name = ZulipHostname(Array(host.utf8)) else { return nil }
        let record = Record(
            key: ZulipRecordNames(instance).invitation(name), touchedAt: now,
            expiresAt: now + ZulipLimits.invitationLife,
            body: Secret(name.name.utf8))
        return .put(record, if: .any)
    }
}
