import Primitives
import PushModel

/// Names of this protocol's records at one instance.
///
/// A row may outlive its content and must not reveal it, so names are hashes (docs/decisions/0095).
package struct SessionRecordNames: Sendable {
    /// Subscriptions. Their owners are accounts, so that a message finds all of its account.
    package let subscriptions: Space
    /// When subscriptions ended. They have no owner, so they take no room in an account's pages.
    package let ends: Space
    /// One empty row for each subscription, owned by its signer, so that a signer's subscriptions are counted
    /// without reading those of others.
    package let slots: Space
    private let accounts: Space
    private let signers: Space
    private let addresses: Space
    private let slotAddresses: Space

    package init(_ instance: ConfiguredName) {
        subscriptions = Space(instance, "sub")
        ends = Space(instance, "end")
        slots = Space(instance, "slot")
        accounts = Space(instance, "account")
        signers = Space(instance, "signer")
        addresses = .addresses(of: instance)
        slotAddresses = Space(instance, "slot-address")
    }

    /// The key by which a subscription is unique (§3.4): a hash of account ‖ service ‖ 0 ‖ token.
    ///
    /// - Parameter token: Apple's in lower case.
    package func subscription(_ account: AccountID, _ service: SessionService, _ token: Secret) -> RecordKey {
        RecordKey(subscriptions, Self.name(account, service, token))
    }

    /// The end of the same subscription.
    package func end(_ account: AccountID, _ service: SessionService, _ token: Secret) -> RecordKey {
        RecordKey(ends, Self.name(account, service, token))
    }

    func slot(_ account: AccountID, _ service: SessionService, _ token: Secret) -> RecordKey {
        RecordKey(slots, Self.name(account, service, token))
    }

    /// The subscription to which a slot belongs.
    func subscription(beside slot: RecordKey) -> RecordKey { RecordKey(subscriptions, slot.name) }

    /// The owner of subscriptions.
    package func owner(_ account: AccountID) -> RecordKey { RecordKey(accounts, account.bytes) }

    /// The owner of slots: a hash of account ‖ key.
    ///
    /// - Parameter signer: the key that signs for the account: the account's own, or a subaccount's.
    package func owner(_ account: AccountID, signer: Secret) -> RecordKey {
        RecordKey(
            signers,
            Blake2b.digest32 { hash in
                hash.update(account.bytes)
                hash.update(signer)
            })
    }

    /// One address of one app: bundle id ‖ 0 ‖ token, with no bundle id for FCM.
    package func address(of token: Secret, bundle: String?) -> RecordKey {
        let token = bundle == nil ? token : APNsMessage.canonical(token)
        let name = token.reveal { Secret(Array((bundle ?? "").utf8) + [0] + $0) }
        return RecordKey(addresses, name)
    }

    /// The same for finding slots: a hash, because a slot may outlive its subscription.
    package func slotAddress(of token: Secret, bundle: String?) -> RecordKey {
        let name = address(of: token, bundle: bundle).name
        return RecordKey(slotAddresses, Blake2b.digest32 { $0.update(name) })
    }

    private static func name(_ account: AccountID, _ service: SessionService, _ token: Secret) -> Secret {
        Blake2b.digest32 { hash in
            hash.update(account.bytes)
            hash.update(service.rawValue)
            hash.update([0])
            hash.update(token)
        }
    }
}

/// Versions of the records: a signature's seconds, doubled, so that an end ranks above a subscription of the
/// same second.
package enum SessionVersion {
    package static func live(_ signedAt: Int64) -> UInt64 { 2 * UInt64(max(0, signedAt)) }
    package static func end(_ signedAt: Int64) -> UInt64 { live(signedAt) + 1 }

    /// The signature's second.
    package static func signedAt(_ version: UInt64) -> Int64 { Int64(version / 2) }
}
