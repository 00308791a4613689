package import PushModel
package import WireFormats

/// `push/e2ee/register` (§5.4), not yet believed.
package struct RegisterForm: Sendable {
    package let realm: UUIDText
    /// `nil` when it is no token id; refused only after realm and key have been looked up.
    package let tokenID: TokenID?
    /// Base64 as sent.
    package let sealed: Secret
    /// Compared as an exact string with the keys held.
    package let bouncerKey: String
    /// Parameters that this call does not know.
    package let ignored: [String]

    /// - Throws: `.missingParameter`; `.wrongType` for a realm that is no UUID.
    package init(_ form: Form) throws(ZulipError) {
        let realm = try form.require("realm_uuid")
        let tokenID = try form.require("token_id")
        let sealed = try form.require("encrypted_push_registration")
        let key = try form.require("bouncer_public_key")
        guard let uuid = withBytes(realm, { UUIDText(anyCase: $0) }) else {
            throw ZulipError(.wrongType, parameter: "realm_uuid")
        }
        self.realm = uuid
        self.tokenID = withBytes(tokenID) { TokenID($0) }
        self.sealed = Secret(sealed)
        bouncerKey = String(decoding: key, as: UTF8.self)
        ignored = form.unknown(["realm_uuid", "token_id", "encrypted_push_registration", "bouncer_public_key"]
        )
    }
}
