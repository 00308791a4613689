import Crypto
import CryptoExtras
package import PushModel

/// The key with which payloads of a topic are sealed that are for whoever knows its name.
package enum TopicKey {
    /// PBKDF2 with HMAC-SHA256 of the name's text, no salt, 65356 rounds: 32 bytes.
    ///
    /// It takes some milliseconds (7.5 of a server's core), so it is made once for a topic, away from event
    /// loops, and kept.
    package static func derive(from topic: WakuTopic) -> Secret {
        var name = topic.name.reveal { Array($0) }
        defer { name.withUnsafeMutableBytes { wipe($0) } }
        // Only a length of nothing and too many bytes are refused.
        guard
            let key = try? KDF.Insecure.PBKDF2.deriveKey(
                from: name, salt: [UInt8](), using: .sha256, outputByteCount: StatusLimits.keyBytes,
                unsafeUncheckedRounds: StatusLimits.topicKeyRounds)
        else { preconditionFailure("PBKDF2 derives 32 bytes from any text") }
        return key.withUnsafeBytes { Secret(copying: $0) }
    }
}
