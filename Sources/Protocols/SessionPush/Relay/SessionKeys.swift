package import PushModel

/// Names of this protocol's records at one instance.
package struct SessionKeys: Sendable {
    /// Subscriptions, and tombstones of those that ended.
    package let subscriptions: Space
    private let accounts: Space

    package init(_ instance: ConfiguredName) {
        subscriptions = Space(instance, "sub")
        accounts = Space(instance, "account")
    }

    /// Account ‖ service ‖ 0 ‖ token: what a subscription is unique by (§3.4).
    package func subscription(_ account: AccountID, _ service: SessionService, _ token: Secret) -> RecordKey {
        let word = Array(service.rawValue.utf8) + [0]
        let start = SessionLimits.accountBytes + word.count
        let name = Secret(count: start + token.count) { out in
            account.bytes.reveal { out.copyMemory(from: $0) }
            UnsafeMutableRawBufferPointer(rebasing: out[SessionLimits.accountBytes...]).copyBytes(from: word)
            token.reveal { UnsafeMutableRawBufferPointer(rebasing: out[start...]).copyMemory(from: $0) }
        }
        return RecordKey(subscriptions, name)
    }

    /// Whose subscriptions they are.
    package func owner(_ account: AccountID) -> RecordKey { RecordKey(accounts, account.bytes) }

    /// One address of one app: bundle id ‖ 0 ‖ token, with no bundle id for FCM.
    package static func address(of token: Secret, bundle: String?) -> RecordKey {
        let token = bundle == nil ? token : APNsMessage.canonical(token)
        let name = token.reveal { Secret(Array((bundle ?? "").utf8) + [0] + $0) }
        return RecordKey(Space(core: "address"), name)
    }
}

/// Versions of the records: a signature's seconds, twice, so that a tombstone stands above what was
/// subscribed in its own second.
package enum SessionVersion {
    package static func live(_ signedAt: Int64) -> UInt64 { 2 * UInt64(max(0, signedAt)) }
    package static func tombstone(_ signedAt: Int64) -> UInt64 { live(signedAt) + 1 }

    /// The signature's second.
    static func signedAt(_ version: UInt64) -> Int64 { Int64(version / 2) }
}
