import MarmotPush
import Primitives
import PushModel
import PushTesting
import Secp256k1Keys
import Testing
import WireFormats

/// The official vectors of NIP-44 version 2.
struct OfficialNIP44: Sendable {
    let json: JSONValue
    let set: VectorSet
    private let runner = MarmotVectorRunner(VectorFile(json: .null, set: "official"))

    init(_ json: JSONValue) throws {
        self.json = json
        set = VectorSet(
            "nip44/official",
            try Self.sections(json).flatMap { name, body in
                // Message keys have one conversation key in common.
                VectorCase.each(of: body["keys"] ?? body, name)
            })
    }

    /// Names such as `valid/get_message_keys`.
    func sections() throws -> [String] { try Self.sections(json).map(\.name) }

    private static func sections(_ json: JSONValue) throws -> [(name: String, body: JSONValue)] {
        try ["valid", "invalid"].flatMap { group in
            try #require(json[group]?.object).members.map { ("\(group)/\($0.name)", $0.value) }
        }
    }

    func holds(_ vector: VectorCase) throws -> Bool {
        let row = vector.row
        switch vector.section {
        case "valid/get_conversation_key":
            return try NIP44.conversationKey(runner.pair(row, "sec1"), runner.xOnly(row, "pub2"))
                == runner.secret(row, "conversation_key")
        case "valid/get_message_keys":
            let keys = try #require(json["valid"]?["get_message_keys"])
            let expected =
                try runner.bytes(row, "chacha_key") + runner.bytes(row, "chacha_nonce")
                + runner.bytes(row, "hmac_key")
            return try NIP44.messageKeys(runner.secret(keys, "conversation_key"), runner.bytes(row, "nonce"))
                == Secret(expected)
        case "valid/calc_padded_len":
            let count = Int(try #require(row[0]?.int64))
            return Int64(NIP44.paddedCount(count)) == row[1]?.int64
        case "valid/encrypt_decrypt": return try bothWays(row)
        case "valid/encrypt_decrypt_long_msg": return try long(row)
        case "invalid/encrypt_msg_lengths": return try length(row)
        case "invalid/get_conversation_key":
            // Whether it is a key is the question.
            return try (try? runner.pair(row, "sec1")) == nil || XOnlyKey(runner.bytes(row, "pub2")) == nil
        case "invalid/decrypt":
            let key = try runner.secret(row, "conversation_key")
            let payload = Secret(try runner.text(row, "payload").utf8)
            return runner.refusal { _ = try NIP44.decrypt(payload, key: key) } == .doesNotOpen
        default:
            Issue.record("unknown section \(vector.section)")
            return false
        }
    }

    private func bothWays(_ row: JSONValue) throws -> Bool {
        let (one, two) = (try runner.pair(row, "sec1"), try runner.pair(row, "sec2"))
        let key = NIP44.conversationKey(one, two.publicKey)
        let plain = Secret(try runner.text(row, "plaintext").utf8)
        let payload = Secret(try runner.text(row, "payload").utf8)
        return try key == NIP44.conversationKey(two, one.publicKey)
            && key == runner.secret(row, "conversation_key")
            && NIP44.encrypt(plain, key: key, nonce: runner.bytes(row, "nonce")) == payload
            && NIP44.decrypt(payload, key: key) == plain
    }

    private func long(_ row: JSONValue) throws -> Bool {
        let times = Int(try #require(row["repeat"]?.int64))
        let plain = Secret(String(repeating: try runner.text(row, "pattern"), count: times).utf8)
        let key = try runner.secret(row, "conversation_key")
        let payload = try NIP44.encrypt(plain, key: key, nonce: runner.bytes(row, "nonce"))
        return try Hex.encode(SHA256.hash(plain)) == row["plaintext_sha256"]?.string
            && Hex.encode(SHA256.hash(payload)) == row["payload_sha256"]?.string
            && NIP44.decrypt(payload, key: key) == plain
    }

    /// Lengths that the short prefix cannot tell. (The long one, which is newer than this file, can tell
    /// some.)
    private func length(_ row: JSONValue) throws -> Bool {
        let plain = Secret(count: Int(try #require(row.int64))) { _ in }
        let key = Secret(count: 32) { _ in }
        let nonce = [UInt8](repeating: 0, count: NIP44.nonceBytes)
        return runner.refusal { _ = try NIP44.encrypt(plain, key: key, nonce: nonce) } == .tooMuchContent
    }
}
