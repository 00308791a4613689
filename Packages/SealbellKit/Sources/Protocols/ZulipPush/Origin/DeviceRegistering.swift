public import PushModel

/// What a client of v12 asks of `mobile_push/register` (§3.3): numbers and kinds well-formed, the rest as it
/// came, because what is wrong with it is said after what is missing.
public struct OriginDeviceForm: Sendable {
    /// `device_id`, as `register_client_device` answered it.
    public let deviceID: Int64
    /// `push_key_id`, 32 bits; `nil` where no push key is told.
    public let keyID: UInt32?
    /// `push_key`: Base64 as it came; there with ``keyID`` alone.
    public let key: Secret?
    /// `token_kind`; `nil` where no token is told.
    public let kind: TokenKind?
    /// `token_id`: Base64 as it came.
    public let tokenID: Secret?
    /// `bouncer_public_key`: Base64 as it came.
    public let bouncerKey: Secret?
    /// `encrypted_push_registration`: Base64 as it came.
    public let sealed: Secret?

    /// The two groups, each whole or not there.
    fileprivate struct Groups {
        var key: (id: UInt32, key: PushKey)?
        var token: SealedRegistration?
        var tokenID: TokenID?
    }

    /// - Parameter hasKey: the device has a push key already.
    fileprivate func groups(hasKey: Bool) throws(OriginRefusal) -> Groups {
        let token = [kind != nil, tokenID != nil, bouncerKey != nil, sealed != nil]
        guard (keyID != nil) == (key != nil), Set(token).count == 1, keyID != nil || token[0] else {
            throw OriginRefusal(.incompleteGroups)
        }
        if !hasKey, keyID == nil { throw OriginRefusal(.noRegistrationForToken) }
        if !hasKey, !token[0] { throw OriginRefusal(.noRegistrationForKey) }
        var groups = Groups()
        if let keyID, let key {
            do { groups.key = (keyID, try PushKey(base64: key)) } catch {
                throw OriginRefusal(.invalidPushKey)
            }
        }
        if let kind, let tokenID, let bouncerKey, let sealed {
            guard let id = tokenID.reveal({ TokenID($0) }) else { throw OriginRefusal(.invalidTokenID) }
            groups.tokenID = id
            groups.token = SealedRegistration(
                .token(id), kind: kind, bouncerKey: try OriginFields.bouncerKey(bouncerKey),
                sealed: try OriginFields.sealed(sealed))
        }
        return groups
    }
}

extension ZulipRegistrations {
    /// `register_client_device` (§3.1): another device each time. ``ZulipStep/deviceID`` is the answer.
    mutating func addDevice(
        using generator: inout some RandomNumberGenerator
    ) throws(OriginRefusal) -> ZulipStep {
        guard devices.count < limit else { throw OriginRefusal(.tooManyDevices) }
        // Up to 2⁵³, which readers with doubles hold, too.
        var id = Int64.random(in: 1..<1 << 53, using: &generator)
        while devices[id] != nil { id = Int64.random(in: 1..<1 << 53, using: &generator) }
        var step = ZulipStep()
        write(ZulipDeviceRow(id: id), &step)
        step.events.append(.deviceAdded(id))
        step.deviceID = id
        return step
    }

    /// `remove_client_device` (§3.2).
    ///
    /// - Returns: nothing for an id that is none of the user's.
    mutating func removeDevice(_ id: Int64) -> ZulipStep {
        var step = ZulipStep()
        guard let row = devices[id] else { return step }
        drop(row.registration, &step)
        devices[id] = nil
        step.changes.append(.removeDevice(id))
        step.events.append(.deviceRemoved(id))
        return step
    }

    /// `mobile_push/register` of v12. A registration that is under way is replaced: the deployed server
    /// refuses the new one, and a device whose answer was lost stays pending for ever (docs/decisions/0116).
    mutating func register(
        _ form: OriginDeviceForm, now: UnixTime, using generator: inout some RandomNumberGenerator
    ) throws(OriginRefusal) -> ZulipStep {
        guard var row = devices[form.deviceID] else { throw OriginRefusal(.invalidDeviceID) }
        let groups = try form.groups(hasKey: row.key != nil)
        var step = ZulipStep()
        var change = ZulipEvent.DeviceChange()
        if let (id, key) = groups.key, id != row.keyID || !(row.key?.isSame(key) ?? false) {
            row.keyID = id
            row.key = key
            change.keyID = id
        }
        if let token = groups.token, let id = groups.tokenID, !row.knows(id, token.kind, now) {
            row.pendingTokenID = id
            row.updatedAt = now.seconds
            row.errorCode = nil
            row.registration = enqueue(
                token, for: .device(row.id), replacing: row.registration, now: now, &step, &generator)
            change.pendingTokenID = .some(id)
            change.updatedAt = now.seconds
            change.errorCode = .some(nil)
        }
        guard !change.isEmpty else { return step }
        write(row, &step)
        step.events.append(.deviceUpdated(row.id, change))
        return step
    }
}

extension ZulipDeviceRow {
    /// Exactly this is stored and confirmed. What was told a day ago or earlier is a repeat, which the relay
    /// wants to see, because it forgets devices that are never repeated.
    fileprivate func knows(_ id: TokenID, _ kind: TokenKind, _ now: UnixTime) -> Bool {
        guard tokenID == id, self.kind == kind, pendingTokenID == nil, errorCode == nil, let updatedAt else {
            return false
        }
        return now.since(UnixTime(seconds: updatedAt)) < ZulipOriginLimits.repeatInterval
    }
}

extension PushKey {
    fileprivate func isSame(_ other: PushKey) -> Bool { key == other.key }
}
