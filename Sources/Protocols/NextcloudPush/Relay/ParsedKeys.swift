import RSAKeys
import Synchronization

/// Pinned keys that were used lately, parsed: to parse one costs nearly as much as to verify with it.
///
/// When there are as many as may be, all are forgotten; they are public keys of users.
final class ParsedKeys: Sendable {
    private let keys = Mutex<[[UInt8]: RSAPublicKey]>([:])

    /// `nil` for what is none, which the relay would not have stored.
    func key(_ der: [UInt8]) -> RSAPublicKey? {
        if let known = keys.withLock({ $0[der] }) { return known }
        // The relay has stored it itself; if it is none all the same, nothing verifies.
        guard let key = try? RSAPublicKey(der: der) else { return nil }
        keys.withLock { keys in
            if keys.count >= NextcloudLimits.parsedKeys { keys.removeAll(keepingCapacity: true) }
            keys[der] = key
        }
        return key
    }
}
