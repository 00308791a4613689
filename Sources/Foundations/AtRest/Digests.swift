import Primitives
import PushModel
import Synchronization

/// Keyed digests: what engines know instead of names. Each space has a key of its own, so that equal names in
/// two spaces look unrelated.
final class Digests: Sendable {
    private let lookup: Secret
    private let originKey: Secret
    private let markKey: Secret
    private let sending: KeyedPermutation
    /// Spaces come from the configuration and from static words: a handful.
    private let spaces = Mutex<[Space: Secret]>([:])

    init(lookup: Secret) {
        self.lookup = lookup
        originKey = Self.derive(lookup, "origin", "")
        markKey = Self.derive(lookup, "mark", "")
        sending = KeyedPermutation(
            key: Self.derive(lookup, "sent", "").reveal {
                Secret(copying: UnsafeRawBufferPointer(rebasing: $0[..<16]))
            })
    }

    private static func derive(_ key: Secret, _ use: StaticString, _ name: String) -> Secret {
        KeyedHash.digest32(key: key) { hash in
            hash.update("sealbell/\(use)/")
            hash.update(name)
        }
    }

    /// A value that shows whether a key file fits: sealed at the first start and opened at each later one.
    var check: [UInt8] { Self.derive(lookup, "check", "").reveal { [UInt8]($0) } }

    /// Distinguishes the keys of two stores and reveals nothing about the keys: 16 hex digits at most.
    static func name(of lookup: Secret) -> String {
        derive(lookup, "name", "").reveal { digest in
            String(UInt64(littleEndian: digest.loadUnaligned(as: UInt64.self)), radix: 16)
        }
    }

    func digest(_ key: RecordKey) -> Digest16 {
        let secret = spaces.withLock { spaces in
            if let secret = spaces[key.space] { return secret }
            let secret = Self.derive(lookup, "space", key.space.text)
            spaces[key.space] = secret
            return secret
        }
        return KeyedHash.digest16(key: secret) { $0.update(key.name) }
    }

    func digest(origin: Secret, at instance: ConfiguredName) -> Digest16 {
        KeyedHash.digest16(key: originKey) { hash in
            hash.update(count: instance.text.utf8.count)
            hash.update(instance.text)
            hash.update(origin)
        }
    }

    /// - Parameter identity: address and ciphertext. `occurrence`: how many equal ones the same call held
    ///   before this one, so that a repeat of the whole call meets each of them again.
    func mark(origin: Digest16, identity: Secret, occurrence: Int) -> Digest16 {
        KeyedHash.digest16(key: markKey) { hash in
            withUnsafeBytes(of: (origin.high, origin.low, UInt64(occurrence))) { hash.update($0) }
            hash.update(identity)
        }
    }

    /// The name under which a push is sent, from the name of its row: a UUID of version 4, which shows
    /// nothing. A row of an earlier version may already have been sent under its own name, and keeps it.
    func sentAs(_ id: PushID) -> PushID {
        guard id.version == 8 else { return id }
        let free = sending.forward(id.free)
        return PushID(version: 4, left: free.left, right: free.right)
    }

    /// The other way round.
    func row(sentAs id: PushID) -> PushID {
        guard id.version == 4 else { return id }
        let free = sending.back(id.free)
        return PushID(version: 8, left: free.left, right: free.right)
    }
}
