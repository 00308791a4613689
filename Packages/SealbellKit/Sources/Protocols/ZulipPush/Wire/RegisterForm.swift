package import PushModel
package import WireFormats

/// `push/e2ee/register` (§5.4, §14.5), not yet believed.
package struct RegisterForm: Sendable {
    /// The name under which the row will be found. `token_id` decides (§14.1): an account id beside it counts
    /// as an unknown parameter.
    package enum Handle: Sendable {
        /// v12. `nil` when it is no token id; refused only after realm and key have been looked up.
        case token(TokenID?)
        /// v11 and the specification's own: `push_account_id`, and `token_kind` as sent, where it was.
        case account(Int64, kind: String?)
    }

    package let realm: UUIDText
    package let handle: Handle
    /// Base64 as sent.
    package let sealed: Secret
    /// Compared as an exact string with the keys held.
    package let bouncerKey: String
    /// Parameters that this call does not know.
    package let ignored: [String]

    /// - Throws: `.missingParameter`; `.wrongType` for a realm that is no UUID, and for an account id that is
    ///   no canonical number (§14.2).
    package init(_ form: Form) throws(ZulipError) {
        let realm = try form.require("realm_uuid")
        let isAccount = form["token_id"] == nil && form["push_account_id"] != nil
        // With neither it is `token_id` that is missing.
        let handle = try form.require(isAccount ? "push_account_id" : "token_id")
        let sealed = try form.require("encrypted_push_registration")
        let key = try form.require("bouncer_public_key")
        guard let uuid = withBytes(realm, { UUIDText(anyCase: $0) }) else {
            throw ZulipError(.wrongType, parameter: "realm_uuid")
        }
        self.realm = uuid
        if isAccount {
            guard let account = CanonicalInteger.read(handle) else {
                throw ZulipError(.wrongType, parameter: "push_account_id")
            }
            self.handle = .account(account, kind: form.text("token_kind"))
        } else {
            self.handle = .token(withBytes(handle) { TokenID($0) })
        }
        self.sealed = Secret(sealed)
        bouncerKey = String(decoding: key, as: UTF8.self)
        let own = isAccount ? ["push_account_id", "token_kind"] : ["token_id"]
        ignored = form.unknown(
            own + ["realm_uuid", "encrypted_push_registration", "bouncer_public_key"])
    }

    /// The token id of a call of v12; `nil` where it is none, and in the account form.
    package var tokenID: TokenID? { if case .token(let id) = handle { id } else { nil } }
}
