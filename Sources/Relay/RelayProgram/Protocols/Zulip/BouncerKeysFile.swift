import Primitives
import PushModel
import WireFormats

/// `bouncer.keys`: a JSON object, public key to private key, both in base64, as the deployed bouncer keeps it
/// (docs/conformance/zulip.md). Rotation adds a pair and keeps the old one until few old apps remain.
enum BouncerKeysFile: WrittenSecretFile {
    enum Fault: String, SecretFileFault, Sendable, CaseIterable {
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

    /// Parses the file's bytes. Private keys go from there into a `Secret` and nowhere else.
    ///
    /// - Returns: at least one pair, in the file's order.
    static func parse(_ bytes: Secret) throws(Fault) -> [X25519KeyPair] {
        var pairs: [X25519KeyPair] = []
        var seen: Set<[UInt8]> = []
        for (publicText, privateText) in try members(bytes) {
            let publicKey = try decode(publicText)
            let pair: X25519KeyPair
            do { pair = try X25519KeyPair(privateKey: try decode(privateText)) } catch { throw .badKey }
            guard publicKey.reveal({ $0.elementsEqual(pair.publicKey) }) else { throw .pairsDoNotMatch }
            guard seen.insert(pair.publicKey).inserted else { throw .repeatedKey }
            pairs.append(pair)
        }
        guard !pairs.isEmpty else { throw .empty }
        return pairs
    }

    private static func members(_ bytes: Secret) throws(Fault) -> [(Secret, Secret)] {
        let members: [(Secret, Secret)]?
        do throws(FormatError) {
            members = try bytes.reveal { raw throws(FormatError) in
                var reader = JSONReader(raw, depthLimit: 2)
                var members: [(Secret, Secret)] = []
                try reader.beginObject()
                while let name = try reader.nextMember() {
                    guard members.count < pairLimit else { return nil }
                    members.append((name.secret(), try reader.readString().secret()))
                }
                try reader.end()
                return members
            }
        } catch {
            throw .notAnObject
        }
        guard let members else { throw .tooMany }
        return members
    }

    /// Canonical base64 of 32 bytes: apps send one spelling, so the file must not have another.
    private static func decode(_ text: Secret) throws(Fault) -> Secret {
        do throws(FormatError) {
            return try Secret(count: X25519KeyPair.keyBytes) { key throws(FormatError) in
                try text.reveal { raw throws(FormatError) in try Base64.decode(raw, into: key) }
            }
        } catch {
            throw .badKey
        }
    }

    /// The file's text for these pairs, one a line.
    static func text(_ pairs: [X25519KeyPair]) -> Secret {
        var bytes: [UInt8] = []
        // Room for everything at once, so that no half-filled copy is left behind by growing.
        bytes.reserveCapacity(16 + pairs.count * 112)
        bytes += "{\n".utf8
        for (index, pair) in pairs.enumerated() {
            bytes += "  \"\(Base64.text(pair.publicKey))\": \"".utf8
            pair.privateKey.reveal { Base64.append($0, to: &bytes) }
            bytes += (index + 1 < pairs.count ? "\",\n" : "\"\n").utf8
        }
        bytes += "}\n".utf8
        defer { bytes.withUnsafeMutableBytes { wipe($0) } }
        return Secret(bytes)
    }
}
