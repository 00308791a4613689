import Primitives
package import PushModel
package import Secp256k1Keys
import WireFormats

/// A topic: its name, and what Waku sees of it.
package struct WakuTopic: Sendable {
    /// The text, which contains a key or a hash of one.
    package let name: Secret
    /// The first four bytes of the name's Keccak-256. Two topics may have the same.
    package let id: UInt32

    package init(name: Secret) {
        self.name = name
        id = Keccak.hash256(name).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// `/waku/1/0x` and eight hex digits, `/rfc26`.
    package var contentTopic: String { Self.contentTopic(of: id) }

    package static func contentTopic(of id: UInt32) -> String {
        let digits = Hex.encode(withUnsafeBytes(of: id.bigEndian) { Array($0) })
        return prefix + digits + suffix
    }

    /// - Returns: `nil` for content topics of another form.
    package static func id(ofContentTopic text: String) -> UInt32? {
        guard text.hasPrefix(prefix), text.hasSuffix(suffix), text.utf8.count == 24 else { return nil }
        let digits = text.dropFirst(prefix.utf8.count).dropLast(suffix.utf8.count)
        guard digits.utf8.allSatisfy({ Hex.value(ofDigit: $0) != nil }) else { return nil }
        return UInt32(digits, radix: 16)
    }

    private static let prefix = "/waku/1/0x"
    private static let suffix = "/rfc26"

    /// Shared by one in 5000 of all keys; messages for a key are sealed to it.
    package static func partitioned(of key: PublicPoint) -> WakuTopic {
        WakuTopic(name: Secret("contact-discovery-\(partition(of: key))".utf8))
    }

    /// X modulo 5000.
    package static func partition(of key: PublicPoint) -> Int {
        key.x.reduce(0) { ($0 << 8 | Int($1)) % StatusLimits.partitions }
    }

    /// For one key alone; deployed clients send registrations there.
    package static func personal(of key: PublicPoint) -> WakuTopic {
        WakuTopic(name: Secret(Array("contact-discovery-".utf8) + Hex.encode(key.uncompressed).utf8))
    }

    /// Where messages are sealed to a server's own key, by the four bytes of their content topics.
    package static func own(of key: PublicPoint) -> Set<UInt32> {
        [partitioned(of: key).id, personal(of: key).id]
    }

    /// Here the owner of a key publishes how to reach its devices.
    package static func contactCode(of key: PublicPoint) -> WakuTopic {
        WakuTopic(name: Secret(Array("0x".utf8) + Hex.encode(key.uncompressed).utf8 + "-contact-code".utf8))
    }

    /// Here clients ask servers about a key.
    ///
    /// - Parameter hash: SHAKE-256 of the compressed key.
    package static func query(of hash: Secret) -> WakuTopic { WakuTopic(name: hash.hexDigits) }

    /// The same in the seed's spelling, which no deployed client uses.
    package static func prefixedQuery(of hash: Secret) -> WakuTopic {
        let digits = hash.hexDigits
        return WakuTopic(
            name: Secret(count: digits.count + 2) { out in
                out[0] = UInt8(ascii: "0")
                out[1] = UInt8(ascii: "x")
                digits.reveal { UnsafeMutableRawBufferPointer(rebasing: out[2...]).copyMemory(from: $0) }
            })
    }
}

extension WakuTopic {
    /// The person that a query topic of either spelling is about, by its name.
    ///
    /// - Returns: `nil` for other names.
    package static func person(ofQuery name: Secret) -> Secret? {
        name.reveal { name in
            let digits = 2 * StatusLimits.hashBytes
            let hasPrefix =
                name.count == digits + 2 && name[0] == UInt8(ascii: "0")
                && name[1] == UInt8(ascii: "x")
            guard hasPrefix || name.count == digits else { return nil }
            return Hex.secret(UnsafeRawBufferPointer(rebasing: name[(hasPrefix ? 2 : 0)...]))
        }
    }
}

/// Hashes that identify people and chats.
package enum StatusHash {
    package static let personBytes = 64

    /// A person: the hash of the compressed key. 64 bytes.
    package static func person(_ key: PublicPoint) -> Secret { Secret(SHAKE256.hash64(key.compressed)) }

    /// An author, or a chat with one person: the hash of the contact id's text. Not the same as
    /// ``person(_:)``.
    package static func author(_ key: PublicPoint) -> Secret { chat(contactID(key)) }

    /// A chat: the hash of its id as text.
    package static func chat(_ id: Secret) -> Secret { Secret(SHAKE256.hash64(id)) }

    /// `0x` and the uncompressed key's 130 hex digits.
    package static func contactID(_ key: PublicPoint) -> Secret {
        Secret(Array("0x".utf8) + Hex.encode(key.uncompressed).utf8)
    }
}
