import Primitives
import PushModel
import WireFormats

/// A private key of X25519 in a file, as deployed push servers keep theirs: 64 hexadecimal digits and a line
/// break if need be, or the 32 bytes themselves. We write digits.
enum SessionKeyFile: PublishedKeyFile {
    enum Fault: String, SecretFileFault, Sendable, CaseIterable {
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
        guard let key = text.fromHex else { throw .notHex }
        return key
    }

    /// The file's text.
    static func text(_ pair: X25519KeyPair) -> Secret { pair.privateKey.hexLine }
    static func generate(_ world: World) -> X25519KeyPair { .generate(world) }
    static func publicText(_ pair: X25519KeyPair) -> String { Hex.encode(pair.publicKey) }

    // MARK: The core pair

    /// Where an instance's core pair is kept. Each process has a state directory, and so a pair, of its own:
    /// storage nodes keep one connection for each key.
    static func corePath(_ instance: ConfiguredName, state: String) -> String {
        joinPath(state, "\(instance.text).core.key")
    }

    /// The core pair of an instance: made once, and the same after every restart.
    ///
    /// - Parameter isRehearsal: nothing is written; where there is no pair yet, one is made for nobody.
    /// - Throws: `CommandFailure` that names the file.
    static func core(
        _ instance: ConfiguredName, state: String, isRehearsal: Bool = false, _ world: World
    ) throws(CommandFailure) -> X25519KeyPair {
        let path = corePath(instance, state: state)
        if isRehearsal {
            guard isThere(path) else { return .generate(world) }
        } else {
            try make(once: path, .generate(world))
        }
        return try read(path)
    }

    private static func isThere(_ path: String) -> Bool {
        do throws(FileFault) { _ = try readSecret(path, limitBytes: limitBytes) } catch {
            return error != .missing
        }
        return true
    }
}
