import Primitives
import PushModel

/// Names of this protocol's records at one instance.
///
/// A row that outlives its content must not name it: names are hashes (docs/decisions/0095). Subscriptions of
/// earlier versions are named by account, service and token themselves; they are read under those names, and
/// renewed under them, because what is owed to a row goes with it.
package struct SessionKeys: Sendable {
    /// Subscriptions. Their owners are accounts, so that a message finds all of its account.
    package let subscriptions: Space
    /// When subscriptions ended. They have no owner, and fill no page.
    package let ends: Space
    /// One empty row beside each subscription, owned by whoever signed it, so that each signer's are counted
    /// without reading the others'.
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

    /// What a subscription is unique by (§3.4): a hash of account ‖ service ‖ 0 ‖ token.
    ///
    /// - Parameter token: Apple's in small letters.
    package func subscription(_ account: AccountID, _ service: SessionService, _ token: Secret) -> RecordKey {
        RecordKey(subscriptions, Self.name(account, service, token))
    }

    /// The end of the same subscription.
    package func end(_ account: AccountID, _ service: SessionService, _ token: Secret) -> RecordKey {
        RecordKey(ends, Self.name(account, service, token))
    }

    /// The same of one whose name is its content, as earlier versions wrote it.
    ///
    /// - Returns: `nil` for a name that is a hash, or has another form.
    package func end(former: RecordKey) -> RecordKey? {
        guard former.space == subscriptions, former.name.count > SessionLimits.accountBytes else {
            return nil
        }
        return RecordKey(ends, Blake2b.digest32 { $0.update(former.name) })
    }

    func slot(_ account: AccountID, _ service: SessionService, _ token: Secret) -> RecordKey {
        RecordKey(slots, Self.name(account, service, token))
    }

    /// The subscription that a slot stands beside.
    func subscription(beside slot: RecordKey) -> RecordKey { RecordKey(subscriptions, slot.name) }

    /// As earlier versions named it.
    package func former(_ account: AccountID, _ service: SessionService, _ token: Secret) -> RecordKey {
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

    /// Whose slots they are: a hash of account ‖ key.
    ///
    /// - Parameter signer: the key that signs for the account: its own, or a subaccount's.
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

    /// The same where slots are found by it: a hash, for a slot may outlive its subscription.
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

/// Versions of the records: a signature's seconds, twice, so that an end stands above what was subscribed in
/// its own second.
package enum SessionVersion {
    package static func live(_ signedAt: Int64) -> UInt64 { 2 * UInt64(max(0, signedAt)) }
    package static func end(_ signedAt: Int64) -> UInt64 { live(signedAt) + 1 }

    /// The signature's second.
    package static func signedAt(_ version: UInt64) -> Int64 { Int64(version / 2) }
}
