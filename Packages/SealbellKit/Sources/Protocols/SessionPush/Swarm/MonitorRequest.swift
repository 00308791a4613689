package import PushModel
package import WireFormats

/// One watch as it is shown to a storage server: one dictionary of `monitor.messages` (§10.3).
///
/// The server puts the signed text together from these values, so they go on exactly as the device signed
/// them.
package struct MonitorRequest: Sendable {
    /// An owner's token for somebody else, and the owner's signature over it.
    package struct Delegation: Sendable {
        /// 36 bytes.
        package var token: Secret
        /// 64 bytes.
        package var signature: Secret

        package init(token: Secret, signature: Secret) {
            self.token = token
            self.signature = signature
        }
    }

    package var account: AccountID
    /// For accounts of prefix 05: their Ed25519 key, 32 bytes.
    package var ed25519: Secret?
    package var delegation: Delegation?
    package var wantsData: Bool
    /// Rising, each once.
    package var namespaces: [Int16]
    /// 64 bytes.
    package var signature: Secret
    /// Unix seconds.
    package var sigTimestamp: Int64

    package init(
        account: AccountID, ed25519: Secret?, delegation: Delegation?, wantsData: Bool, namespaces: [Int16],
        signature: Secret, sigTimestamp: Int64
    ) {
        self.account = account
        self.ed25519 = ed25519
        self.delegation = delegation
        self.wantsData = wantsData
        self.namespaces = namespaces
        self.signature = signature
        self.sigTimestamp = sigTimestamp
    }

    /// What a subscription is shown as; `nil` for one that no storage server would take.
    package init?(_ subscription: SessionSubscription) {
        guard !subscription.isLocal else { return nil }
        self.init(
            account: subscription.account, ed25519: subscription.sessionKey,
            delegation: subscription.subaccount.map { Delegation(token: $0.token, signature: $0.signature) },
            wantsData: subscription.wantsData, namespaces: subscription.namespaces,
            signature: subscription.signature, sigTimestamp: subscription.signedAt)
    }

    /// What a row of the registry is shown as.
    package init?(_ record: Record) {
        guard let subscription = SessionSubscription(record) else { return nil }
        self.init(subscription)
    }

    /// Whether storage servers still take the signature.
    package func isValid(at now: UnixTime) -> Bool {
        UnixTime(seconds: sigTimestamp) > now - SwarmFormLimits.signatureLife
    }

    package func write(into writer: inout BencodeWriter) {
        writer.beginDictionary()
        if let ed25519 {
            writer.key("P")
            ed25519.reveal { writer.string($0) }
        }
        if let delegation {
            writer.key("S")
            delegation.signature.reveal { writer.string($0) }
            writer.key("T")
            delegation.token.reveal { writer.string($0) }
        }
        if wantsData {
            writer.key("d")
            writer.int(Int64(1))
        }
        writer.key("n")
        writer.beginList()
        for namespace in namespaces { writer.int(Int64(namespace)) }
        writer.endList()
        if ed25519 == nil {
            writer.key("p")
            account.bytes.reveal { writer.string($0) }
        }
        writer.key("s")
        signature.reveal { writer.string($0) }
        writer.key("t")
        writer.int(sigTimestamp)
        writer.endDictionary()
    }

    /// The dictionary by itself.
    package func serialized() -> Secret {
        var writer = BencodeWriter(reserving: 512 + 8 * namespaces.count)
        write(into: &writer)
        return writer.takeSecret()
    }
}
