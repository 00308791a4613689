package import PushModel

/// One message that a storage server tells of (§10.4).
package struct StoragePush: Sendable {
    package let account: AccountID
    /// Opaque text of 32 to 99 bytes.
    package let hash: Secret
    package let namespace: Int16
    package let timestamp: UnixTime
    package let expiry: UnixTime
    /// `nil`: no watch of ours asked for it.
    package let data: Secret?

    package init(
        account: AccountID, hash: Secret, namespace: Int16, timestamp: UnixTime, expiry: UnixTime,
        data: Secret?
    ) {
        self.account = account
        self.hash = hash
        self.namespace = namespace
        self.timestamp = timestamp
        self.expiry = expiry
        self.data = data
    }
}
