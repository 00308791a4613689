import PushModel
import SchnorrKeys
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
        var isHex = true
        let scalar = text.reveal { digits in
            Secret(count: Secp256k1KeyPair.secretBytes) { out in
                for at in 0..<out.count {
                    guard let high = Self.value(digits[2 * at]), let low = Self.value(digits[2 * at + 1])
                    else {
                        isHex = false
                        return
                    }
                    out[at] = high << 4 | low
                }
            }
        }
        guard isHex else { throw .notHex }
        do { return try Secp256k1KeyPair(secret: scalar) } catch { throw .badKey }
    }

    /// The file's text.
    static func text(_ pair: Secp256k1KeyPair) -> Secret {
        pair.secret.reveal { bytes in
            Secret(count: 2 * bytes.count + 1) { out in
                for (at, byte) in bytes.enumerated() {
                    out[2 * at] = digit(byte >> 4)
                    out[2 * at + 1] = digit(byte & 15)
                }
                out[2 * bytes.count] = 0x0A
            }
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x61...0x66: digit - 0x57
        case 0x41...0x46: digit - 0x37
        default: nil
        }
    }
}
