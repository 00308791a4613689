import PushModel
import WireFormats

/// Reads the parameters of a client's calls.
enum OriginFields {
    private static let zapMarks = ["push_key", "device_id", "token_id", "push_key_id"]

    /// `mobile_push/register`: which of the three forms it is follows from the names that are there (§14.1).
    static func registration(_ form: Form) throws(OriginRefusal) -> (OriginCall, known: [String]) {
        func has(_ name: String) -> Bool { form[name] != nil }
        if has("push_public_key") {
            guard !zapMarks.contains(where: has) else { throw OriginRefusal(.mixedProfiles) }
            return (.registerAccount(try zap(form)), zapNames)
        }
        if has("device_id") { return (.registerDevice(try device(form)), deviceNames) }
        if has("push_key") { return (.registerAccount(try v11(form)), v11Names) }
        if has("push_account_id") { return (.registerAccount(try zap(form)), zapNames) }
        throw OriginRefusal(.missing, "device_id")
    }

    private static let zapNames = [
        "push_account_id", "encrypted_push_registration", "bouncer_public_key", "push_public_key",
        "token_kind"
    ]
    private static let v11Names = [
        "push_account_id", "push_key", "token_kind", "bouncer_public_key", "encrypted_push_registration"
    ]
    private static let deviceNames = [
        "device_id", "push_key_id", "push_key", "token_kind", "token_id", "bouncer_public_key",
        "encrypted_push_registration"
    ]

    /// First what is missing, then the forms, both in the order of §14.4.
    private static func zap(_ form: Form) throws(OriginRefusal) -> OriginAccountForm {
        let id = try require(form, "push_account_id")
        let blob = try require(form, "encrypted_push_registration")
        let bouncer = try require(form, "bouncer_public_key")
        let key = try require(form, "push_public_key")
        let kind = try require(form, "token_kind")
        let account = try integer(id, "push_account_id")
        let sealed = try sealed(blob)
        let bouncerKey = try bouncerKey(bouncer)
        let recipient: PushPublicKey
        do {
            let text = key.reveal { String(decoding: $0, as: UTF8.self) }
            recipient = try PushPublicKey(base64: text)
        } catch { throw OriginRefusal(.malformed, "push_public_key") }
        return OriginAccountForm(
            id: account, kind: try self.kind(kind), bouncerKey: bouncerKey, sealed: sealed,
            key: .zap(recipient))
    }

    /// The same, in the order of §3.7.
    private static func v11(_ form: Form) throws(OriginRefusal) -> OriginAccountForm {
        let id = try require(form, "push_account_id")
        let key = try require(form, "push_key")
        let kind = try require(form, "token_kind")
        let bouncer = try require(form, "bouncer_public_key")
        let blob = try require(form, "encrypted_push_registration")
        let account = try integer(id, "push_account_id")
        let pushKey: PushKey
        do { pushKey = try PushKey(base64: key) } catch { throw OriginRefusal(.invalidPushKey) }
        return OriginAccountForm(
            id: account, kind: try self.kind(kind), bouncerKey: try bouncerKey(bouncer),
            sealed: try sealed(blob), key: .v11(pushKey))
    }

    private static func device(_ form: Form) throws(OriginRefusal) -> OriginDeviceForm {
        let id = try integer(form, "device_id")
        let number = try form["push_key_id"].map { (text) throws(OriginRefusal) in
            try integer(Secret(text), "push_key_id")
        }
        var keyID: UInt32?
        if let number {
            guard let narrow = UInt32(exactly: number) else { throw OriginRefusal(.malformed, "push_key_id") }
            keyID = narrow
        }
        let kind = try form["token_kind"].map { (text) throws(OriginRefusal) in try self.kind(Secret(text)) }
        return OriginDeviceForm(
            deviceID: id, keyID: keyID, key: form["push_key"].map { Secret($0) }, kind: kind,
            tokenID: form["token_id"].map { Secret($0) },
            bouncerKey: form["bouncer_public_key"].map { Secret($0) },
            sealed: form["encrypted_push_registration"].map { Secret($0) })
    }

    /// Of a test notification: one of the two names, or none.
    static func subject(_ form: Form) throws(OriginRefusal) -> ZulipQueueItem.Subject? {
        switch (form["device_id"], form["push_account_id"]) {
        case (nil, nil): return nil
        case (let id?, nil): return .device(try integer(Secret(id), "device_id"))
        case (nil, let id?): return .account(try integer(Secret(id), "push_account_id"))
        case (.some, .some): throw OriginRefusal(.mixedProfiles)
        }
    }

    // MARK: values

    /// A body that is a form, within its bounds.
    static func form(_ body: Secret) throws(OriginRefusal) -> Form {
        guard body.count <= ZulipOriginLimits.formBodyBytes else { throw OriginRefusal(.malformedForm) }
        do {
            return try body.reveal { (bytes) throws(FormatError) in
                try Form.parse(bytes, fieldLimit: ZulipLimits.formFields)
            }
        } catch { throw OriginRefusal(.malformedForm) }
    }

    static func integer(_ form: Form, _ name: StaticString) throws(OriginRefusal) -> Int64 {
        try integer(try require(form, name), name)
    }

    /// Canonical decimal within 64 bits with a sign (§14.2).
    private static func integer(_ text: Secret, _ name: StaticString) throws(OriginRefusal) -> Int64 {
        guard let value = text.reveal({ CanonicalInteger.read($0) }) else {
            throw OriginRefusal(.malformed, name)
        }
        return value
    }

    /// 1 to 128 characters, not interpreted: the relay looks at them (§14.4).
    static func bouncerKey(_ text: Secret) throws(OriginRefusal) -> String {
        let key = text.count <= 4 * ZulipOriginLimits.bouncerKeyCharacters ? text : Secret([])
        let written = key.reveal { String(decoding: $0, as: UTF8.self) }
        guard (1...ZulipOriginLimits.bouncerKeyCharacters).contains(written.unicodeScalars.count) else {
            throw OriginRefusal(.malformed, "bouncer_public_key")
        }
        return written
    }

    /// Canonical base64 of a sealed box with at least a byte in it (§14.4). Only the relay can open it.
    static func sealed(_ text: Secret) throws(OriginRefusal) -> Secret {
        let isBox = text.reveal { bytes in
            guard bytes.count <= ZulipOriginLimits.sealedRegistrationCharacters,
                let count = Base64.decodedCount(bytes), count > AccountBox.overheadBytes
            else { return false }
            do throws(FormatError) {
                var plain = try Base64.decode(bytes)
                plain.withUnsafeMutableBytes { wipe($0) }
                return true
            } catch { return false }
        }
        guard isBox else { throw OriginRefusal(.malformed, "encrypted_push_registration") }
        return text
    }

    private static func kind(_ text: Secret) throws(OriginRefusal) -> TokenKind {
        let written = text.count <= 4 ? text.reveal { String(decoding: $0, as: UTF8.self) } : ""
        guard let kind = TokenKind(rawValue: written) else { throw OriginRefusal(.malformed, "token_kind") }
        return kind
    }

    private static func require(_ form: Form, _ name: StaticString) throws(OriginRefusal) -> Secret {
        guard let value = form["\(name)"] else { throw OriginRefusal(.missing, name) }
        return Secret(value)
    }
}
