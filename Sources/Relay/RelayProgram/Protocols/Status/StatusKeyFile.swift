import PushModel
import Secp256k1Keys
import StatusPush
import WireFormats

/// The private key of a push notification server, as deployed servers take theirs: 64 hex digits, and a line
/// break if need be.
enum StatusKeyFile {
    enum Fault: String, Error, Sendable, CaseIterable {
        case notHex, badKey

        var sentence: String {
            switch self {
            case .notHex:
                "The file must hold 64 hexadecimal digits alone; sealbell keys new status makes one."
            case .badKey: "The file's number is no private key of secp256k1."
            }
        }
    }

    static let limitBytes = 1 << 10

    static func parse(_ bytes: Secret) throws(Fault) -> Secp256k1KeyPair {
        let text = bytes.trimmed
        guard text.count == 2 * Secp256k1KeyPair.secretBytes, let scalar = text.fromHex else {
            throw .notHex
        }
        do { return try Secp256k1KeyPair(secret: scalar) } catch { throw .badKey }
    }

    /// The file's text.
    static func text(_ pair: Secp256k1KeyPair) -> Secret { pair.secret.hexLine }

    /// - Throws: `CommandFailure` that names the file.
    static func read(_ path: String) throws(CommandFailure) -> Secp256k1KeyPair {
        let bytes = try CredentialShelf.read(path)
        do throws(Fault) { return try parse(bytes) } catch {
            throw CommandFailure(.configuration, "\(path): \(error.sentence)")
        }
    }

    // MARK: Public keys, as apps write them

    /// `0x04` and 128 hex digits.
    static func publicText(_ point: PublicPoint) -> String { "0x" + Hex.encode(point.uncompressed) }

    /// A key in that form, or compressed; `0x` may be left out, and `04` where 128 digits follow.
    static func point(_ text: String) -> PublicPoint? {
        let digits = text.hasPrefix("0x") || text.hasPrefix("0X") ? text.dropFirst(2) : text[...]
        let bare = 2 * (PublicPoint.uncompressedBytes - 1)
        // What is no hex is no key.
        guard let bytes = try? Hex.decode(Array((digits.utf8.count == bare ? "04" : "").utf8) + digits.utf8)
        else { return nil }
        return bytes.withUnsafeBytes { PublicPoint($0) }
    }
}

extension FileContent {
    static let statusKey = FileContent(words: "a Status key", inSandbox: .madeOnce) { bytes, _ in
        do throws(StatusKeyFile.Fault) {
            _ = try StatusKeyFile.parse(bytes)
            return nil
        } catch {
            return error.sentence
        }
    }
}
