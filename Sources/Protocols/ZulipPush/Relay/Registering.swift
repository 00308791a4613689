import Primitives
import PushModel
import WireFormats

/// `push/e2ee/register` (§5.4).
extension ZulipRelay {
    /// Steps in the deployed order: who, realm, key, box, token id, age. Who asks is looked up before any
    /// public-key operation, and the device only for the realm's owner.
    func register(_ form: RegisterForm, _ credentials: ServerCredentials) async throws(ZulipError)
        -> ZulipVerdict
    {
        let found = try await find([serverKey(credentials), keys.realm(form.realm)])
        let realm = try await authorise(form.realm, credentials, found)
        guard let pair = bouncerKeys[form.bouncerKey] else { throw ZulipError(.unknownBouncerKey) }
        let plain = try RegistrationBox.open(form.sealed, with: pair)
        let tokenID = TokenID(token: plain.token)
        guard form.tokenID == tokenID else { throw ZulipError(.invalidRegistration) }
        let now = world.now()
        try checkAge(plain.timestamp, now)
        let name = keys.device(realm.realm.tenancy, tokenID)
        let known = try await find([name])[0]
        var verdict = verdict(plain, realm, name, known, form, now)
        // A repeat takes no more room.
        if known == nil { try await takeRoom(plain.token.count + Self.recordBytes, in: realm) }
        verdict.charge = OriginCharge(
            of: Secret(realm.caller.server.id.bytes), units: 1 + plain.token.count / 1_024)
        return verdict
    }

    /// Exactly 86,400 s pass, one more does not (§5.4 step 6). The future is bounded generously (§10).
    private func checkAge(_ timestamp: Int64, _ now: UnixTime) throws(ZulipError) {
        let oldest = now.seconds - ZulipLimits.registrationAge.components.seconds
        guard timestamp >= oldest else { throw ZulipError(.registrationExpired) }
        guard timestamp <= now.seconds + ZulipLimits.registrationSkew.components.seconds else {
            throw ZulipError(.invalidRegistration)
        }
    }

    /// What a sealed record has beside its token, about.
    private static let recordBytes = 320

    private func verdict(
        _ plain: RegistrationPlaintext, _ realm: AuthorisedRealm, _ name: RecordKey, _ known: Record?,
        _ form: RegisterForm, _ now: UnixTime
    ) -> ZulipVerdict {
        let reply = ReplyTiming<ZulipReply>.now(.done(ignored: form.ignored))
        let endings = realm.caller.endings(keys, now: now)
        // A refused token comes back to life only by a registration that was made after the refusal: the
        // phone has been told a token again. An older one, or a replay, succeeds and changes nothing. The
        // phone's time has whole seconds, so one of the refusal's own second may be later and counts as that;
        // where it was not, the next push finds the token dead again.
        if case .expired(let at)? = known?.state, plain.timestamp < at.seconds {
            return Verdict(
                changes: endings, reply: reply, notes: [NoteCode("zulip.registered-while-expired")],
                quota: realm.caller.server.quota)
        }
        let registration = ZulipRegistration(kind: plain.kind, token: plain.token, appID: plain.appID)
        // A repeat is written too: it is how the row knows that a client still exists.
        let record = Record(
            key: name, owner: keys.devices(of: realm.realm.tenancy),
            address: keys.address(registration), touchedAt: now,
            expiresAt: now + ZulipLimits.registrationLife,
            body: registration.body)
        return Verdict(
            changes: [.put(record, if: .any)] + endings, reply: reply,
            notes: [known == nil ? NoteCode("zulip.registered") : NoteCode("zulip.registered-again")],
            quota: realm.caller.server.quota)
    }
}
