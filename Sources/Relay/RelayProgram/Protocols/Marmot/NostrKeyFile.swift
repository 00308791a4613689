import PushModel
import Secp256k1Keys
import WireFormats

/// The private key of a notification server: 64 hex digits, and a line break if need be.
enum NostrKeyFile {
    enum Fault: String, Error, Sendable, CaseIterable {
        case notHex, badKey

        var sentence: String {
            switch self {
            case .notHex:
                "The file must hold 64 hexadecimal digits alone; sealbell keys new nostr makes one."
            case .badKey: "The file's number is no private key of secp256k1."
            }
        }
    }

    static let limitBytes = 1 << 10

    static func parse(_ bytes: Secret) throws(Fault) -> Secp256k1KeyPair {
        let text = bytes.trimmed
        guard text.count == 2 * Secp256k1KeyPair.secretBytes else { throw .notHex }
        guard let scalar = text.fromHex else { throw .notHex }
        do { return try Secp256k1KeyPair(secret: scalar) } catch { throw .badKey }
    }

    /// The file's text.
    static func text(_ pair: Secp256k1KeyPair) -> Secret { pair.secret.hexLine }
}
