package import PushModel

/// One message that a storage server tells of (§10.4).
package struct StoragePush: Sendable {
    package let account: AccountID
    /// Opaque text of 32 to 99 bytes.
    package let hash: SecretPart
    package let namespace: Int16
    package let timestamp: UnixTime
    package let expiry: UnixTime
    /// `nil`: no watch of ours asked for it.
    package let data: SecretPart?

    package init(
        account: AccountID, hash: Secret, namespace: Int16, timestamp: UnixTime, expiry: UnixTime,
        data: Secret?
    ) {
        self.init(
            account: account, hash: SecretPart(hash), namespace: namespace, timestamp: timestamp,
            expiry: expiry, data: data.map { SecretPart($0) })
    }

    package init(
        account: AccountID, hash: SecretPart, namespace: Int16, timestamp: UnixTime, expiry: UnixTime,
        data: SecretPart?
    ) {
        self.account = account
        self.hash = hash
        self.namespace = namespace
        self.timestamp = timestamp
        self.expiry = expiry
        self.data = data
    }
}
