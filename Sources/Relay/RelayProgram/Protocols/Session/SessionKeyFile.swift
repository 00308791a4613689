import Primitives
import PushModel
import WireFormats

/// A private key of X25519 in a file, as deployed push servers keep theirs: 64 hexadecimal digits and a line
/// break if need be, or the 32 bytes themselves. We write digits.
enum SessionKeyFile {
    enum Fault: String, Error, Sendable, CaseIterable {
        case wrongSize, notHex

        var sentence: String {
            switch self {
            case .wrongSize:
                "The file must hold 64 hexadecimal digits or 32 bytes; sealbell keys new session makes one."
            case .notHex: "The file holds 64 characters, and some are no hexadecimal digits."
            }
        }
    }

    static let limitBytes = 1 << 10

    static func parse(_ bytes: Secret) throws(Fault) -> X25519KeyPair {
        // Bytes that happen to be white space belong to a key, so the raw form is looked for first.
        let key = bytes.count == X25519KeyPair.keyBytes ? bytes : try digits(bytes.trimmed)
        do { return try X25519KeyPair(privateKey: key) } catch { throw .wrongSize }
    }

    private static func digits(_ text: Secret) throws(Fault) -> Secret {
        guard text.count == 2 * X25519KeyPair.keyBytes else { throw .wrongSize }
        var isHex = true
        let key = text.reveal { digits in
            Secret(count: X25519KeyPair.keyBytes) { out in
                for at in 0..<out.count {
                    guard let high = Hex.value(ofDigit: digits[2 * at]),
                        let low = Hex.value(ofDigit: digits[2 * at + 1])
                    else {
                        isHex = false
                        return
                    }
                    out[at] = high << 4 | low
                }
            }
        }
        guard isHex else { throw .notHex }
        return key
    }

    /// The file's text.
    static func text(_ pair: X25519KeyPair) -> Secret {
        pair.privateKey.reveal { bytes in
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

    // MARK: The core pair

    /// Where an instance's core pair is kept. Each process has a state directory, and so a pair, of its own:
    /// storage nodes keep one connection for each key.
    static func corePath(_ instance: ConfiguredName, state: String) -> String {
        joinPath(state, "\(instance.text).core.key")
    }

    /// The core pair of an instance: made once, and the same after every restart.
    ///
    /// - Throws: `CommandFailure` that names the file.
    static func core(
        _ instance: ConfiguredName, state: String, _ world: World
    ) throws(CommandFailure) -> X25519KeyPair {
        let path = corePath(instance, state: state)
        try writeKeysOnce(path, limitBytes) { text(.generate(world)) }
        return try read(path)
    }

    /// - Throws: `CommandFailure` that names the file.
    static func read(_ path: String) throws(CommandFailure) -> X25519KeyPair {
        let bytes = try CredentialShelf.read(path)
        do throws(Fault) { return try parse(bytes) } catch {
            throw CommandFailure(.configuration, "\(path): \(error.sentence)")
        }
    }
}
