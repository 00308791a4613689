package import PushModel

/// One message that a storage server tells of (§10.4).
package struct StorageNotice: Sendable {
    package let account: AccountID
    package let namespace: Int16
    package let timestamp: UnixTime
    package let expiry: UnixTime
    /// Which storage server tells of it, as a number; 0: it does not matter.
    package var teller: UInt64 = 0
    /// Where hash and data stand: one piece of memory, because a message is handed from call to call.
    private let text: Secret
    private let hashPlace: Range<Int>
    private let dataPlace: Range<Int>?

    package init(
        account: AccountID, hash: Secret, namespace: Int16, timestamp: UnixTime, expiry: UnixTime,
        data: Secret?
    ) {
        let (end, count) = (hash.count, data?.count ?? 0)
        let text = Secret(count: end + count) { out in
            hash.reveal { out.copyMemory(from: $0) }
            data?.reveal { UnsafeMutableRawBufferPointer(rebasing: out[end...]).copyMemory(from: $0) }
        }
        self.init(
            account: account, in: text, hash: 0..<end, namespace: namespace, timestamp: timestamp,
            expiry: expiry, data: data.map { _ in end..<end + count })
    }

    /// - Parameter text: what has the hash and the data at their places.
    init(
        account: AccountID, in text: Secret, hash: Range<Int>, namespace: Int16, timestamp: UnixTime,
        expiry: UnixTime, data: Range<Int>?
    ) {
        self.account = account
        self.namespace = namespace
        self.timestamp = timestamp
        self.expiry = expiry
        self.text = text
        (hashPlace, dataPlace) = (hash, data)
    }

    /// Opaque text of 32 to 99 bytes.
    package var hash: SecretPart { SecretPart(of: text, hashPlace) }
    /// `nil`: no watch of ours asked for it.
    package var data: SecretPart? { dataPlace.map { SecretPart(of: text, $0) } }

    /// Bytes of the data; 0 where there is none.
    package var dataCount: Int { dataPlace?.count ?? 0 }

    /// The same message without what it says.
    package var withoutData: StorageNotice {
        StorageNotice(
            account: account, in: text, hash: hashPlace, namespace: namespace, timestamp: timestamp,
            expiry: expiry, data: nil)
    }
}
