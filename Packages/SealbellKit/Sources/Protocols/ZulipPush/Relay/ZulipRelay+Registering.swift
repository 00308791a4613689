import Primitives
import PushModel
import WireFormats

/// `push/e2ee/register` (§5.4).
extension ZulipRelay {
    /// Steps in the deployed order: who, realm, key, box, token id or kind, age. Who asks is looked up before
    /// any public-key operation, and the device only for the realm's owner.
    func register(_ form: RegisterForm, _ credentials: ServerCredentials) async throws(ZulipError)
        -> ZulipVerdict
    {
        let found = try await find([serverKey(credentials), keys.realm(form.realm)])
        let realm = try await authorise(form.realm, credentials, found)
        let now = world.now()
        let device: Asked
        do throws(ZulipError) { device = try open(form, in: realm.realm.tenancy, now) } catch {
            var error = error
            if case .account = form.handle { error.isOfAccountForm = true }
            throw error
        }
        let known = try await find([device.name])[0]
        // A repeat takes no more room.
        let size = device.registration.token.count
        if known == nil { try await takeRoom(size + Self.recordBytes, in: realm) }
        // It counts a use of the key, so what is refused never comes so far.
        var verdict = verdict(device, realm, known, form, now)
        verdict.charge = OriginCharge(of: Secret(realm.caller.server.id.bytes), units: 1 + size / 1_024)
        return verdict
    }

    /// A registration that may be written.
    private struct Asked {
        let registration: ZulipRegistration
        /// When the device made it: Unix seconds.
        let madeAt: Int64
        let name: RecordKey
        /// By which a server finds it that named an account id.
        let number: Int64?
    }

    private func open(
        _ form: RegisterForm, in tenancy: ZulipTenancy, _ now: UnixTime
    ) throws(ZulipError) -> Asked {
        guard let pair = bouncerKeys[form.bouncerKey] else { throw ZulipError(.unknownBouncerKey) }
        switch form.handle {
        case .token(let shown):
            let plain = try RegistrationBox.open(form.sealed, with: pair)
            let tokenID = TokenID(token: plain.token)
            guard shown == tokenID else { throw ZulipError(.invalidRegistration) }
            try checkAge(plain.timestamp, now)
            return Asked(
                registration: ZulipRegistration(kind: plain.kind, token: plain.token, appID: plain.appID),
                madeAt: plain.timestamp, name: keys.device(tenancy, tokenID), number: nil)
        case .account(let account, let kind):
            let plain = try RegistrationBox.open(form.sealed, with: pair, .account)
            let appID = plain.appID ?? (plain.kind == .apns ? defaultAppID : nil)
            guard plain.kind == .fcm || appID != nil, kind == nil || kind == plain.kind.rawValue else {
                throw ZulipError(.invalidRegistration)
            }
            try checkAge(plain.timestamp, now)
            let number = number(tenancy, account, plain.token)
            return Asked(
                registration: ZulipRegistration(
                    kind: plain.kind, token: plain.token, appID: appID, accountID: account),
                madeAt: plain.timestamp, name: keys.account(tenancy, number), number: number)
        }
    }

    /// The number of a device that names an account id: 63 bits of a hash under a key of the store, so that
    /// the same registration has the same number, and nobody can count them or tell them apart by realm
    /// (decision 0111). 1 to 2⁶³ − 1.
    private func number(_ tenancy: ZulipTenancy, _ account: Int64, _ token: Secret) -> Int64 {
        let digest = registry.digest(of: keys.number(tenancy, account: account, token: token))
        return max(1, Int64(digest.high >> 1))
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
        _ device: Asked, _ realm: AuthorisedRealm, _ known: Record?, _ form: RegisterForm, _ now: UnixTime
    ) -> ZulipVerdict {
        let reply: ReplyTiming<ZulipReply> =
            .now(
                device.number.map { .registered(deviceID: $0, ignored: form.ignored) }
                    ?? .done(ignored: form.ignored))
        var changes = realm.caller.endings(keys, now: now)
        if let use = uses.change(form.bouncerKey, keys, world) { changes.append(use) }
        // A refused token comes back to life only by a registration that was made after the refusal: the
        // phone has been told a token again. An older one, or a replay, succeeds and changes nothing. The
        // phone's time has whole seconds, so one of the refusal's own second may be later and counts as that;
        // where it was not, the next push finds the token dead again. A refusal of a time to come was stamped
        // by a clock ahead of ours, and says nothing of what came later: it would shut the phone out until
        // then.
        if case .expired(let at)? = known?.state, at <= now, device.madeAt < at.seconds {
            return Verdict(
                changes: changes, reply: reply, notes: [NoteCode("zulip.registered-while-expired")],
                quota: realm.caller.server.quota)
        }
        // A repeat is written too: it is how the row knows that a client still exists. The number stands in
        // `version`, by which the store lists what has expired (decision 0112).
        let record = Record(
            key: device.name, owner: keys.devices(of: realm.realm.tenancy),
            address: keys.address(device.registration),
            version: device.number.map { UInt64($0) } ?? 0, touchedAt: now,
            expiresAt: now + ZulipLimits.registrationLife,
            body: device.registration.body)
        return Verdict(
            changes: [.put(record, if: .any)] + changes, reply: reply,
            notes: [known == nil ? NoteCode("zulip.registered") : NoteCode("zulip.registered-again")],
            quota: realm.caller.server.quota)
    }
}
