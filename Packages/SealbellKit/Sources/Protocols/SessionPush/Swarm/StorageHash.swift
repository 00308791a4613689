import Primitives
import PushModel
import WireFormats

/// How storage servers make a message's hash (`computeMessageHash` of the storage server, unchanged since
/// January 2023): BLAKE2b-256 of account ‖ namespace in decimal, nothing for namespace 0 ‖ message, in base64
/// without padding.
package enum StorageHash {
    /// Characters of such a hash.
    private static let characters = 43

    /// Whether a message is the one that its hash names. One that is not may be of a server that makes hashes
    /// in another way; so it proves nothing, and nothing against it.
    package static func fits(_ notice: StorageNotice) -> Bool {
        guard notice.hash.count == characters, let data = notice.data else { return false }
        var text: [UInt8] = []
        if notice.namespace != 0 { Decimal.append(Int64(notice.namespace), to: &text) }
        let hash = Blake2b.digest32 { hash in
            hash.update(notice.account.bytes)
            hash.update(text)
            data.reveal { hash.update($0) }
        }
        return hash.reveal { hash in
            withUnsafeTemporaryAllocation(byteCount: Base64.encodedCount(hash.count), alignment: 1) { out in
                Base64.encode(hash, into: out)
                return notice.hash.reveal { $0.elementsEqual(out.prefix(characters)) }
            }
        }
    }
}
