import Crypto
import CryptoExtras
package import PushModel

/// The key that seals a topic's payloads for everybody who knows the topic's name.
package enum TopicKey {
    /// PBKDF2 with HMAC-SHA256 of the name's text, no salt, 65356 rounds: 32 bytes.
    ///
    /// Deriving it takes milliseconds (7.5 on a server's core), so it is made once for each topic, away from
    /// event loops, and kept.
    package static func derive(from topic: WakuTopic) -> Secret {
        var name = topic.name.reveal { Array($0) }
        defer { name.withUnsafeMutableBytes { wipe($0) } }
        // It fails only for a length of zero or too many bytes.
        guard
            let key = try? KDF.Insecure.PBKDF2.deriveKey(
                from: name, salt: [UInt8](), using: .sha256, outputByteCount: StatusLimits.keyBytes,
                unsafeUncheckedRounds: StatusLimits.topicKeyRounds)
        else { preconditionFailure("PBKDF2 derives 32 bytes from any text") }
        return key.withUnsafeBytes { Secret(copying: $0) }
    }
}
