import EdwardsKeys
package import Primitives
import PushModel

/// The pair of one push service's worker, derived from the core's (§9.2). This relay has no workers that talk
/// to it over the network; whoever moves here from the deployed server may still have some.
package enum NotifierKey {
    /// - Throws: `.malformedKey` when the derived bytes form no key, which 32 bytes always do.
    package static func pair(core: X25519KeyPair, worker name: String) throws(CryptoError) -> X25519KeyPair {
        let parts = [core.privateKey, Secret(name.utf8)]
        return try X25519KeyPair(
            privateKey: ScalarHash.blake2b(parts, key: Secret("notifier".utf8), count: 32))
    }
}
