import PushModel
import RSAKeys
import Synchronization

/// A pinned key as a batch needs it.
struct ParsedKey: Sendable {
    let key: RSAPublicKey
    /// The key's digest: a server sends for each of its users as for itself.
    let origin: Secret

    init(_ key: RSAPublicKey) {
        self.key = key
        origin = Secret(KeyDigest.of(key.der))
    }
}

/// Pinned keys that were used lately, parsed: to parse one costs nearly as much as to verify with it.
///
/// When there are as many as may be, all are forgotten; they are public keys of users.
final class ParsedKeys: Sendable {
    private let keys = Mutex<[DER: ParsedKey]>([:])
    private let work: KeyWork

    init(_ work: KeyWork) { self.work = work }

    /// Hashed in one piece; an array is hashed byte by byte, which costs a tenth of a verification.
    private struct DER: Hashable {
        let bytes: [UInt8]

        func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }
    }

    /// `nil` for what is none, which the relay would not have stored. `isFresh`: it was read just now.
    func key(_ der: [UInt8]) -> (key: ParsedKey, isFresh: Bool)? {
        let name = DER(bytes: der)
        if let known = keys.withLock({ $0[name] }) { return (known, false) }
        guard let key = work.read(der) else { return nil }
        let parsed = ParsedKey(key)
        keys.withLock { keys in
            if keys.count >= NextcloudLimits.parsedKeys { keys.removeAll(keepingCapacity: true) }
            keys[name] = parsed
        }
        return (parsed, true)
    }

    /// A device with that key has gone; others of the same user have it read anew.
    func forget(_ der: [UInt8]) { keys.withLock { $0[DER(bytes: der)] = nil } }
}
