import Primitives
package import PushModel
import WireFormats

/// The device: one account on one phone, in any profile. A value; it sends nothing.
///
/// At each start the app gives it what it kept (``init(keeping:)``) and ``ZulipDeviceEvent/start(_:)``, and
/// then whatever else happens: ``take(_:now:beside:using:)`` says what to do. ``status(of:now:)`` is for the
/// settings page, ``open(delivered:for:now:)`` for what arrives.
///
/// The calls below that name no event are the deployed profile's own steps (§8), for an app that has a
/// routine already.
package struct ZulipRoutine: Sendable {
    package let account: ZulipAccount
    /// Of v12, oldest first.
    package internal(set) var keys: [HeldPushKey]
    var routine = DeviceRoutine()

    /// - Parameter keys: as kept from the last run, oldest first.
    package init(account: ZulipAccount, keys: [HeldPushKey] = []) {
        self.account = account
        self.keys = keys.sorted { $0.createdAt < $1.createdAt }
    }

    /// The key that new notifications should be sealed with.
    package var newestKey: HeldPushKey? { keys.last }

    /// Makes a key where there is none or the newest is 30 days old, marks superseded keys, and deletes those
    /// that were superseded 30 days ago (§8).
    ///
    /// - Parameter taken: ids that other accounts of this phone use.
    package mutating func tendKeys(
        now: UnixTime, taken: Set<UInt32> = [], using generator: inout some RandomNumberGenerator
    ) {
        if newestKey.map({ now.since($0.createdAt) >= ZulipLimits.pushKeyLife }) ?? true {
            let used = taken.union(keys.map(\.id))
            var id = UInt32.random(in: .min ... .max, using: &generator)
            // Ends: a phone has a few dozen keys out of four thousand million.
            while used.contains(id) { id = UInt32.random(in: .min ... .max, using: &generator) }
            keys.append(HeldPushKey(id: id, key: PushKey(key: randomSecret(32, &generator)), createdAt: now))
        }
        supersede(now)
        deleteKeys(now)
    }

    /// Notes what the server shows: keys older than the one it has are superseded.
    package mutating func observe(_ state: ZulipDeviceState, now: UnixTime) {
        guard let shown = keys.firstIndex(where: { $0.id == state.pushKeyID }) else { return }
        for index in 0..<shown where keys[index].supersededAt == nil { keys[index].supersededAt = now }
    }

    /// What to tell the server now (§8).
    ///
    /// - Parameter state: what the server shows of this device.
    /// - Parameter bouncerKey: base64 of the relay's key, 32 bytes.
    /// - Returns: `nil` when there is nothing to send.
    /// - Throws: `.unknownPushKey` before ``tendKeys(now:taken:using:)`` has made a key;
    ///   `.invalidRegistration` for a token that no relay takes; `.unknownBouncerKey` for a key that is none.
    package func register(
        _ state: ZulipDeviceState, token: DevicePushToken, bouncerKey: String, now: UnixTime,
        using generator: inout some RandomNumberGenerator
    ) throws(ZulipError) -> DeviceRegistrationCall? {
        guard let newest = newestKey else { throw ZulipError(.unknownPushKey) }
        let tokenID = TokenID(token: token.token)
        let key =
            state.pushKeyID == newest.id
            ? nil : DeviceRegistrationCall.KeyGroup(id: newest.id, key: newest.key.base64)
        guard needsToken(state, tokenID, now) else {
            return key.map { DeviceRegistrationCall(key: $0, token: nil) }
        }
        let sealed = try Self.seal(token, bouncerKey, now, &generator)
        return DeviceRegistrationCall(
            key: key,
            token: DeviceRegistrationCall.TokenGroup(
                kind: token.kind, tokenID: tokenID, bouncerKey: bouncerKey, sealedRegistration: sealed))
    }

    /// Opens what arrived.
    ///
    /// - Parameter pushKeyID: `push_key_id` of the push.
    /// - Parameter encryptedData: `encrypted_data` of the push, base64.
    /// - Returns: `nil` for a type that this version does not know: to be dropped silently.
    /// - Throws: `.unknownPushKey`, `.doesNotOpen`, `.malformedContent`, `.foreignContent`.
    package func open(pushKeyID: UInt32, encryptedData: Secret) throws(ZulipError) -> ZulipNotification? {
        guard let held = keys.first(where: { $0.id == pushKeyID }) else { throw ZulipError(.unknownPushKey) }
        return try ZulipNotification.read(try ContentBox.open(encryptedData, with: held.key), for: account)
    }

    // MARK: parts

    /// The server speaks another profile now: what is still under way opens for 30 days.
    mutating func retireKeys(_ now: UnixTime) {
        for index in keys.indices where keys[index].supersededAt == nil { keys[index].supersededAt = now }
        deleteKeys(now)
    }

    private mutating func deleteKeys(_ now: UnixTime) {
        keys.removeAll { key in
            key.supersededAt.map { now.since($0) >= ZulipLimits.pushKeyAfterlife } ?? false
        }
    }

    /// An older key is superseded too when a newer one is 15 days old.
    private mutating func supersede(_ now: UnixTime) {
        guard let settled = keys.lastIndex(where: { now.since($0.createdAt) >= ZulipLimits.pushKeyOverlap })
        else {
            return
        }
        for index in 0..<settled where keys[index].supersededAt == nil { keys[index].supersededAt = now }
    }

    func needsToken(_ state: ZulipDeviceState, _ tokenID: TokenID, _ now: UnixTime) -> Bool {
        guard state.pushKeyID != nil, state.errorCode == nil, let updated = state.tokenUpdatedAt else {
            return true
        }
        if state.pendingTokenID ?? state.tokenID != tokenID { return true }
        return now.since(UnixTime(seconds: updated)) >= ZulipLimits.registrationRepeat
    }

    static func seal(
        _ token: DevicePushToken, _ bouncerKey: String, _ now: UnixTime,
        _ generator: inout some RandomNumberGenerator
    ) throws(ZulipError) -> Secret {
        let plain = RegistrationPlaintext(
            kind: token.kind, token: token.token, timestamp: now.seconds, appID: token.appID)
        // The relay would refuse it; the phone finds out first.
        _ = try RegistrationPlaintext(parsing: plain.serialized())
        let recipient: [UInt8]
        let ephemeral: X25519KeyPair
        do {
            recipient = try Base64.decode(bouncerKey)
            ephemeral = try X25519KeyPair(privateKey: randomSecret(32, &generator))
        } catch { throw ZulipError(.unknownBouncerKey) }
        return try RegistrationBox.seal(plain, to: recipient, ephemeral: ephemeral)
    }
}

/// Random bytes of a generator; on a phone the system's.
func randomSecret(_ count: Int, _ generator: inout some RandomNumberGenerator) -> Secret {
    Secret(count: count) { out in
        for start in stride(from: 0, to: count, by: 8) {
            let word = generator.next()
            withUnsafeBytes(of: word) { bytes in
                UnsafeMutableRawBufferPointer(rebasing: out[start..<min(start + 8, count)])
                    .copyBytes(from: bytes.prefix(min(8, count - start)))
            }
        }
    }
}
