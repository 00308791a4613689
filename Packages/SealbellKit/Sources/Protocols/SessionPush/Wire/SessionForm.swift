package import PushModel
import WireFormats

/// What an element of either call says about its signer and its device (§3.1, §3.3).
package struct SessionClaim: Sendable {
    package let account: AccountID
    /// Of a person; another account's key is in its id.
    package let sessionKey: Secret?
    package let subaccount: Subaccount?
    /// Of the withdrawn scheme.
    package let subkeyTag: Secret?
    /// Unix seconds.
    package let signedAt: Int64
    package let signature: Secret
    package let service: SessionService
    package let token: Secret

    package struct Subaccount: Sendable {
        /// 36 bytes.
        package let token: Secret
        /// The owner's, over the token.
        package let signature: Secret
    }

    /// The fields that stand before the service in the deployed server's order of checks.
    private struct Signer {
        let account: AccountID
        let sessionKey: Secret?
        let subaccount: Subaccount?
        let subkeyTag: Secret?
        let signature: Secret

        init(_ fields: SessionFields) throws(SessionError) {
            let id = try SessionFields.bytes(fields.account, "pubkey", SessionLimits.accountBytes)
            guard let account = AccountID(id) else {
                throw SessionError(.malformedField, field: "pubkey")
            }
            self.account = account
            sessionKey =
                account.prefix == AccountID.personPrefix
                ? try SessionFields.bytes(fields.sessionKey, "session_ed25519", SessionLimits.keyBytes) : nil
            subaccount = try Self.subaccount(fields)
            // Of the withdrawn scheme (§5.2): a value of another form counts as absent. Deployed servers
            // never look at the field, and a deployed client once put its subaccount there.
            subkeyTag =
                subaccount == nil
                ? try? SessionFields.optionalBytes(
                    fields.subkeyTag, "subkey_tag", SessionLimits.subkeyTagBytes) : nil
            signature = try SessionFields.bytes(
                fields.signature, "signature", SessionLimits.signatureBytes)
        }

        private static func subaccount(_ fields: SessionFields) throws(SessionError) -> Subaccount? {
            let token = try SessionFields.optionalBytes(
                fields.subaccount, "subaccount", SessionLimits.subaccountBytes)
            let signature = try SessionFields.optionalBytes(
                fields.subaccountSignature, "subaccount_sig", SessionLimits.signatureBytes)
            switch (token, signature) {
            case (nil, nil): return nil
            case (let token?, let signature?): return Subaccount(token: token, signature: signature)
            case (nil, _): throw SessionError(.missingField, field: "subaccount")
            case (_, nil): throw SessionError(.missingField, field: "subaccount_sig")
            }
        }
    }

    init(_ fields: SessionFields) throws(SessionError) {
        let signer = try Signer(fields)
        signedAt = try SessionFields.integer(fields.signedAt, "sig_ts")
        service = try SessionFields.service(fields.service)
        token = try SessionFields.token(fields.serviceInfo, for: service)
        account = signer.account
        sessionKey = signer.sessionKey
        subaccount = signer.subaccount
        subkeyTag = signer.subkeyTag
        signature = signer.signature
    }
}

/// One element of `POST /subscribe`: parsed and bounded, not yet verified.
package struct SubscribeForm: Sendable {
    package let claim: SessionClaim
    package let encryptionKey: Secret
    /// Strictly ascending.
    package let namespaces: [Int16]
    package let wantsData: Bool

    init(_ fields: SessionFields) throws(SessionError) {
        claim = try SessionClaim(fields)
        encryptionKey = try SessionFields.bytes(
            fields.encryptionKey, "enc_key", SessionLimits.keyBytes)
        namespaces = try SessionFields.namespaceList(fields.namespaces)
        wantsData = try SessionFields.flag(fields.wantsData, "data")
    }
}

/// One element of `POST /unsubscribe`.
package struct UnsubscribeForm: Sendable {
    package let claim: SessionClaim

    init(_ fields: SessionFields) throws(SessionError) { claim = try SessionClaim(fields) }
}
