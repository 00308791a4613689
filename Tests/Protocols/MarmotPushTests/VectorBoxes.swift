import MarmotPush
import Primitives
import PushModel
import Secp256k1Keys
import Testing
import WireFormats

/// Keys and boxes.
extension MarmotVectorRunner {
    func format(_ name: String, _ row: JSONValue) throws -> Bool {
        let format = try #require(TokenFormat(rawValue: name))
        let tags = try #require(row["tags"]?.array).map { $0.array?.compactMap(\.string) ?? [] }
        return format.plaintextBytes.map(Int64.init) == row["plaintext"]?.int64
            && format.tokenBytes.map(Int64.init) == row["token"]?.int64
            && format.salt.map { String(decoding: $0, as: UTF8.self) } == row["salt"]?.string
            && String(decoding: format.info, as: UTF8.self) == row["info"]?.string
            && format.triggerTags == tags
    }

    func key(_ row: JSONValue) throws -> Bool {
        let pair = try pair(row, "secret")
        let key = try xOnly(row, "pubkey")
        return pair.publicKey == key && key.hex == row["pubkey"]?.string
    }

    func derivation(_ row: JSONValue) throws -> Bool {
        let format = try #require(TokenFormat(rawValue: text(row, "format")))
        let shared = try secret(row, "shared_x")
        let prk = format.salt.map { HKDF256.extract(salt: $0, input: shared) } ?? shared
        guard try prk == secret(row, "prk") else { return false }
        return try TokenBox.key(format, shared) == secret(row, "key")
    }

    func ecdh(_ part: String, _ row: JSONValue) throws -> Bool {
        switch part {
        case "invalid_pubkeys":
            return try XOnlyKey(bytes(row, "pubkey")) == nil && XOnlyKey(hex: text(row, "pubkey")) == nil
        case "invalid_secrets":
            let scalar = Secret(try Hex.decode(try #require(row.string).utf8))
            return (try? Secp256k1KeyPair(secret: scalar)) == nil  // Whether it is a key is the question.
        default:
            let (a, b) = (try pair(row, "secret_a"), try pair(row, "secret_b"))
            let shared = try secret(row, "shared_x")
            let key = try secret(row, "nip44_conversation_key")
            return try a.publicKey == xOnly(row, "pubkey_a") && b.publicKey == xOnly(row, "pubkey_b")
                && a.sharedX(with: b.publicKey) == shared && b.sharedX(with: a.publicKey) == shared
                && NIP44.conversationKey(a, b.publicKey) == key
                && NIP44.conversationKey(b, a.publicKey) == key
        }
    }

    func tokenEncrypt(_ row: JSONValue) throws -> Bool {
        let format = try #require(TokenFormat(rawValue: text(row, "format")))
        let target = try target(row, token: "device_token_hex")
        let server = try xOnly(row, "server_pubkey")
        let ephemeral = try pair(row, "ephemeral_secret")
        let shared = ephemeral.sharedX(with: server)
        let box = try TokenBox.encrypt(
            target, to: server, format, ephemeral: ephemeral, nonce: bytes(row, "nonce"),
            padding: bytes(row, "padding"))
        return try shared == secret(row, "shared_x")
            && TokenBox.key(format, shared) == secret(row, "encryption_key")
            && box == secret(row, "encrypted_token")
    }

    private func target(_ row: JSONValue, token: String) throws -> DeviceTarget {
        let platform = try #require(
            DeviceTarget.Platform.allCases.first { $0.name == row["platform"]?.string })
        return try DeviceTarget(platform, token: secret(row, token))
    }

    func tokenDecrypt(_ row: JSONValue) throws -> Bool {
        let format = try #require(TokenFormat(rawValue: text(row, "format")))
        let server = try named(row, "server")
        let box = try secret(row, "encrypted_token")
        let expect = try #require(row["expect"])
        guard expect["ok"]?.bool == true else {
            return reasons(try text(expect, "reason"))
                .contains(refusal { _ = try TokenBox.decrypt(box, format, with: server) })
        }
        let expected = try target(expect, token: "token_hex")
        return (try? TokenBox.decrypt(box, format, with: server)).map { same($0, expected) } ?? false
    }

    /// Our codes for a reason of the file, whose names are its own.
    private func reasons(_ reason: String) -> Set<MarmotError.Code?> {
        switch reason {
        case "wrong_length", "bad_ephemeral_key", "bad_tag": [.tokenDoesNotOpen]
        case "unknown_platform": [.unknownPlatform]
        // "Either reason will do."
        case "bad_payload": [.malformedToken, .unknownPlatform, .tokenDoesNotOpen]
        default: []
        }
    }

    func same(_ left: DeviceTarget, _ right: DeviceTarget) -> Bool {
        left.platform == right.platform && left.token == right.token
    }

    /// That random bytes open for nobody. (How ours are made is the origin's matter.)
    func decoy(_ row: JSONValue) throws -> Bool {
        let format = try #require(TokenFormat(rawValue: text(row, "format")))
        let box = try secret(row, "bytes")
        guard row["expect"]?.string == "ignored" else { return false }
        let isOnCurve = box.reveal { XOnlyKey($0.prefix(32)) != nil }
        return try ["server", "server_odd"].allSatisfy { name in
            let server = try pair(try #require(json["keys"]?[name]), "secret")
            return refusal { _ = try TokenBox.decrypt(box, format, with: server) } == .tokenDoesNotOpen
        } && isOnCurve == row["on_curve"]?.bool
    }

    // MARK: NIP-44

    func nip44(_ part: String, _ row: JSONValue) throws -> Bool {
        if part == "valid" { return try nip44Row(row) }
        return try bothWays(row, key: secret(row, "conversation_key"), prefix: .long)
    }

    private func nip44Row(_ row: JSONValue) throws -> Bool {
        let (pair, peer) = (try pair(row, "secret"), try pair(row, "peer_secret"))
        let key = NIP44.conversationKey(pair, try xOnly(row, "peer_pubkey"))
        let keys = NIP44.messageKeys(key, try bytes(row, "nonce"))
        let expected = try bytes(row, "chacha_key") + bytes(row, "chacha_nonce") + bytes(row, "hmac_key")
        return try key == secret(row, "conversation_key")
            && key == NIP44.conversationKey(peer, pair.publicKey) && keys == Secret(expected)
            && bothWays(row, key: key, prefix: .short)
    }

    /// Encrypts to the payload, or to its digest where the file has no more, and back.
    private func bothWays(_ row: JSONValue, key: Secret, prefix: NIP44.Prefix) throws -> Bool {
        let plain: Secret
        if let text = row["plaintext"]?.string {
            plain = Secret(text.utf8)
        } else {
            let unit = try #require(row["plaintext_repeat"]?[0]?.string)
            let times = Int(try #require(row["plaintext_repeat"]?[1]?.int64))
            plain = Secret(String(repeating: unit, count: times).utf8)
        }
        let payload = try NIP44.encrypt(plain, key: key, nonce: bytes(row, "nonce"), prefix: prefix)
        let isPayload =
            try row["payload"]?.string.map { Secret($0.utf8) == payload }
            ?? (Hex.encode(SHA256.hash(payload)) == text(row, "payload_sha256"))
        return try isPayload && Int64(NIP44.paddedCount(plain.count)) == row["padded_len"]?.int64
            && NIP44.decrypt(payload, key: key) == plain
    }
}
