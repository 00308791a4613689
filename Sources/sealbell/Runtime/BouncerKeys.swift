import Crypto
import Foundation
import PushModel

/// One key pair of the Zulip bouncer.
struct BouncerKeyPair: Sendable {
    /// Standard base64 of 32 bytes: the exact text that apps send and the relay looks up (zulip.md §2).
    let publicKey: String
    /// X25519, 32 bytes.
    let privateKey: Secret

    /// A fresh pair.
    static func make() -> BouncerKeyPair {
        let key = Curve25519.KeyAgreement.PrivateKey()
        let publicKey = key.publicKey.rawRepresentation.base64EncodedString()
        return BouncerKeyPair(
            publicKey: publicKey, privateKey: key.rawRepresentation.withUnsafeBytes { Secret(copying: $0) })
    }
}

/// `bouncer.keys`: a JSON object, public key → private key, both in base64, as the deployed bouncer keeps it.
/// Rotation adds a pair and keeps the old one until few old apps remain.
enum BouncerKeysFile {
    enum Fault: String, Error, Sendable, CaseIterable {
        case notAnObject, badKey, pairsDoNotMatch, repeatedKey, empty, tooMany

        var sentence: String {
            switch self {
            case .notAnObject:
                "The file must be one JSON object of texts: {\"public\": \"private\"}, in base64."
            case .badKey: "A key is not the base64 of exactly 32 bytes."
            case .pairsDoNotMatch: "A private key does not belong to the public key beside it."
            case .repeatedKey: "A public key stands there twice."
            case .empty: "The file holds no key; sealbell keys new zulip adds one."
            case .tooMany: "The file holds more than 1,000 keys."
            }
        }
    }

    /// About 100 bytes a pair, and a thousand pairs are more than a thousand app releases.
    static let limitBytes = 256 << 10
    private static let pairLimit = 1000

    /// Parses the file's bytes. Private keys go from there into a ``Secret`` and nowhere else.
    static func parse(_ bytes: Secret) throws(Fault) -> [BouncerKeyPair] {
        let pairs = try bytes.reveal { raw throws(Fault) in
            var scanner = Scanner(bytes: raw)
            return try scanner.pairs(limit: pairLimit)
        }
        guard !pairs.isEmpty else { throw .empty }
        return pairs
    }

    /// The file's text for these pairs, one a line.
    static func text(_ pairs: [BouncerKeyPair]) -> Secret {
        var bytes = Array("{\n".utf8)
        // Room for everything at once, so that no half-filled copy is left behind by growing.
        bytes.reserveCapacity(16 + pairs.count * 112)
        for (index, pair) in pairs.enumerated() {
            bytes += Array("  \"\(pair.publicKey)\": \"".utf8)
            pair.privateKey.reveal { raw in
                var encoded = Data(raw).base64EncodedData()
                bytes += encoded
                wipeData(&encoded)
            }
            bytes += Array((index + 1 < pairs.count ? "\",\n" : "\"\n").utf8)
        }
        bytes += Array("}\n".utf8)
        defer { bytes.withUnsafeMutableBytes { wipe($0) } }
        return Secret(bytes)
    }

    /// Reads a flat JSON object of texts, in place.
    private struct Scanner {
        let bytes: UnsafeRawBufferPointer
        var at = 0

        mutating func pairs(limit: Int) throws(Fault) -> [BouncerKeyPair] {
            var pairs: [BouncerKeyPair] = []
            var seen: Set<String> = []
            try take(UInt8(ascii: "{"))
            skipSpace()
            if at < bytes.count, bytes[at] == UInt8(ascii: "}") {
                at += 1
            } else {
                while true {
                    let pair = try pair()
                    guard seen.insert(pair.publicKey).inserted else { throw .repeatedKey }
                    pairs.append(pair)
                    guard pairs.count <= limit else { throw .tooMany }
                    skipSpace()
                    guard at < bytes.count else { throw .notAnObject }
                    let next = bytes[at]
                    at += 1
                    if next == UInt8(ascii: "}") { break }
                    guard next == UInt8(ascii: ",") else { throw .notAnObject }
                }
            }
            skipSpace()
            guard at == bytes.count else { throw .notAnObject }
            return pairs
        }

        private mutating func pair() throws(Fault) -> BouncerKeyPair {
            var publicBytes = try key()
            try take(UInt8(ascii: ":"))
            var privateBytes = try key()
            defer {
                wipeData(&publicBytes)
                wipeData(&privateBytes)
            }
            let derived: Data
            do {
                derived = try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: privateBytes).publicKey
                    .rawRepresentation
            } catch {
                throw .badKey
            }
            guard derived == publicBytes else { throw .pairsDoNotMatch }
            return BouncerKeyPair(
                publicKey: publicBytes.base64EncodedString(),
                privateKey: privateBytes.withUnsafeBytes { Secret(copying: $0) })
        }

        /// A JSON text that is the canonical base64 of 32 bytes. `\/`, as some writers have it, is a slash.
        private mutating func key() throws(Fault) -> Data {
            try take(UInt8(ascii: "\""))
            var text = Data(capacity: 44)
            defer { wipeData(&text) }
            while true {
                guard at < bytes.count else { throw .notAnObject }
                var byte = bytes[at]
                at += 1
                if byte == UInt8(ascii: "\"") { break }
                if byte == UInt8(ascii: "\\"), at < bytes.count, bytes[at] == UInt8(ascii: "/") {
                    byte = bytes[at]
                    at += 1
                }
                guard text.count < 44 else { throw .badKey }
                text.append(byte)
            }
            guard let key = Data(base64Encoded: text), key.count == 32 else { throw .badKey }
            var again = key.base64EncodedData()
            defer { wipeData(&again) }
            guard again == text else { throw .badKey }
            return key
        }

        private mutating func take(_ byte: UInt8) throws(Fault) {
            skipSpace()
            guard at < bytes.count, bytes[at] == byte else { throw .notAnObject }
            at += 1
        }

        private mutating func skipSpace() {
            while at < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[at]) { at += 1 }
        }
    }
}

/// Overwrites bytes that Foundation holds.
func wipeData(_ data: inout Data) {
    data.withUnsafeMutableBytes { wipe($0) }
}
