public import PushModel

/// What a client asks of `mobile_push/register` by account id (§14.4, §3.7), well-formed.
public struct OriginAccountForm: Sendable {
    /// `push_account_id`, chosen by the client.
    public let id: Int64
    /// Which push service its token is of.
    public let kind: TokenKind
    /// `bouncer_public_key` as it came, at most ``ZulipOriginLimits/bouncerKeyCharacters``.
    public let bouncerKey: String
    /// Base64, canonical, of at least 49 bytes.
    public let sealed: Secret
    /// What contents are to be sealed with; tells the profile.
    public let key: ZulipAccountRow.Key

    /// The profile of ``key``: `.zap` (§14.4) or `.v11` (§3.7).
    public var profile: ZulipProfile {
        switch key {
        case .zap: .zap
        case .v11: .v11
        }
    }

    var registration: SealedRegistration {
        SealedRegistration(.account(id), kind: kind, bouncerKey: bouncerKey, sealed: sealed)
    }
}

extension ZulipRegistrations {
    /// A registration by account id: 200 as soon as the step is committed.
    ///
    /// The newer registration of an id replaces the other profile's (§14.1). In v11 a repeat without a
    /// recorded error changes nothing (§3.7); in the specification's own profile it is the monthly one, or
    /// takes the place of one that is still under way (§14.4).
    ///
    /// - Throws: where the user has as many records as one may have; nothing has changed then.
    mutating func register(
        _ form: OriginAccountForm, now: UnixTime, using generator: inout some RandomNumberGenerator
    ) throws(OriginRefusal) -> ZulipStep {
        let old = accounts[form.id]
        guard old != nil || accounts.count < limit else { throw OriginRefusal(.tooManyDevices) }
        var step = ZulipStep()
        switch (form.key, old?.key) {
        case (.zap, .zap?): repeated(form, now, &step, &generator)
        case (.zap, _):
            if let old { remove(old, &step) }
            removeNote(form.id, &step)
            make(form, now, &step, &generator)
            step.events.append(.accountAdded(form.id))
        case (.v11, .v11?) where old?.errorCode == nil: break
        case (.v11, _):
            if let old { remove(old, &step) }
            if old?.profile == .zap || removeNote(form.id, &step) {
                step.events.append(.accountRemoved(form.id, code: nil))
            }
            make(form, now, &step, &generator)
            step.events.append(.pushDevice(form.id, .pending, code: nil))
        }
        return step
    }

    /// Forgets a record or a note (§14.4). It always succeeds, and the relay is not told.
    public mutating func forget(_ id: Int64) -> ZulipStep {
        var step = ZulipStep()
        if let row = accounts[id] {
            remove(row, &step)
            if row.profile == .zap { step.events.append(.accountRemoved(id, code: nil)) }
        } else if removeNote(id, &step) {
            step.events.append(.accountRemoved(id, code: nil))
        }
        return step
    }

    /// The user is gone: everything goes.
    public mutating func leave() -> ZulipStep {
        var step = ZulipStep()
        for id in accounts.keys.sorted() + notes.keys.sorted() { step.append(forget(id)) }
        for id in devices.keys.sorted() { step.append(removeDevice(id)) }
        return step
    }

    // MARK: parts

    private mutating func make(
        _ form: OriginAccountForm, _ now: UnixTime, _ step: inout ZulipStep,
        _ generator: inout some RandomNumberGenerator
    ) {
        var row = ZulipAccountRow(id: form.id, kind: form.kind, key: form.key)
        row.registration = enqueue(
            form.registration, for: .account(form.id), replacing: nil, now: now, &step, &generator)
        write(row, &step)
    }

    /// The same record, which stays active where it is; a new key holds from now on.
    private mutating func repeated(
        _ form: OriginAccountForm, _ now: UnixTime, _ step: inout ZulipStep,
        _ generator: inout some RandomNumberGenerator
    ) {
        guard var row = accounts[form.id] else { return }
        row.kind = form.kind
        row.key = form.key
        row.registration = enqueue(
            form.registration, for: .account(form.id), replacing: row.registration, now: now, &step,
            &generator)
        write(row, &step)
    }
}
