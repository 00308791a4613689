import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// Runs the cases of `zulip.json`.
struct ZulipVectorRunner: Sendable {
    /// Members of the file that are no sections.
    static let frame: Set<String> = [
        "format", "set", "seed", "generator", "now", "profiles", "conventions", "constants", "keys", "world"
    ]

    let json: JSONValue
    let now: UnixTime
    let world: VectorWorld
    let set: VectorSet

    init(_ file: VectorFile) throws {
        json = file.json
        now = file.now
        world = try VectorWorld(file)
        set = VectorSet(
            "zulip/" + file.set,
            (file.json.object?.members ?? []).flatMap {
                Self.cases($0.name, $0.value) + Self.deviceCases($0.name, $0.value)
            })
    }

    /// Those of one section; none of one that is not known.
    private static func cases(_ section: String, _ body: JSONValue) -> [VectorCase] {
        switch section {
        case "push_key", "push_key_id", "sealed_box": return VectorCase.each(of: body, section)
        case "sizes": return VectorCase.each(of: body["rows"], section)
        case "token_id", "mutations", "encrypted_data", "content", "bouncer_register", "bouncer_notify",
            "bouncer_auth":
            return VectorCase.each(of: body["cases"], section)
        case "signup":
            // The steps share one relay.
            guard let steps = body["steps"]?.array, !steps.isEmpty else { return [] }
            return [VectorCase(section, name: "\(steps.count) steps", row: body, rows: steps.count)]
        default: return (bouncerCases(section, body) ?? []) + originCases(section, body)
        }
    }

    /// How many rows of a case hold.
    func passed(_ vector: VectorCase) async throws -> Int {
        if vector.section == "signup" { return try await signUp(vector.row) }
        if let isHeld = try await bouncerHolds(vector) { return isHeld ? 1 : 0 }
        if let passed = try originPassed(vector) { return passed }
        if let holds = try deviceHolds(vector) { return holds ? 1 : 0 }
        return try await holds(vector.section, vector.row) ? 1 : 0
    }

    private func holds(_ section: String, _ row: JSONValue) async throws -> Bool {
        let body = try #require(json[section])
        switch section {
        case "token_id": return try !foldsCase(body) && tokenID(row)
        case "push_key": return try pushKey(row)
        case "push_key_id": return try pushKeyID(row)
        case "sealed_box": return try sealedBox(row)
        case "mutations": return try mutation(row, recipient(body))
        case "encrypted_data": return try encryptedData(row)
        case "content": return try content(row)
        case "sizes": return try size(row)
        case "bouncer_register": return try await register(row)
        case "bouncer_notify": return try await notify(row)
        case "bouncer_auth": return try await auth(row)
        default: return false
        }
    }

    // MARK: values

    private func tokenID(_ row: JSONValue) throws -> Bool {
        let token = Secret(try text(row, "token").utf8)
        let id = TokenID(token: token)
        let wire = try text(row, "token_id")
        return id.text == wire && TokenID(wire) == id && id.signed == row["token_id_signed64"]?.int64
            && Hex.encode(SHA256.hash(token)) == row["sha256_hex"]?.string
    }

    /// Whether the upper-case writing of a token has another id than the file says.
    private func foldsCase(_ section: JSONValue) throws -> Bool {
        guard let pair = section["case_sensitivity"] else { return false }
        let ids = try ["lower", "upper"].map { TokenID(token: Secret(try text(pair, $0).utf8)).text }
        return try ids != [text(pair, "lower_id"), text(pair, "upper_id")]
    }

    private func pushKey(_ row: JSONValue) throws -> Bool {
        let wire = Secret(try text(row, "push_key").utf8)
        let key = try? PushKey(base64: wire)  // Whether it is one is the question.
        guard row["valid"]?.bool == true else { return key == nil }
        let raw = try Base64.decode(wire.reveal { Array($0) })
        return isSame(key?.base64, wire) && Hex.encode(raw[1...]) == row["secretbox_key_hex"]?.string
    }

    private func pushKeyID(_ row: JSONValue) throws -> Bool {
        let valid = row["valid"]?.bool == true
        let value = try text(row, "value")
        return itemIsTaken(pushKeyID: value) == valid
    }

    /// Whether a notify item with this key id, as a JSON number, is well-formed.
    private func itemIsTaken(pushKeyID value: String) -> Bool {
        let item =
            #"{"token_id":"AAAAAAAAAAE=","fcm_priority":"high","#
            + #""payload":{"push_key_id":\#(value),"encrypted_data":"QUJD"}}"#
        let body = #"{"realm_uuid":"\#(world.realm)","push_requests":[\#(item)]}"#
        do {
            _ = try withBytes(Array(body.utf8)) { (bytes) throws(ZulipError) in
                try NotifyRequest(parsing: bytes)
            }
            return true
        } catch { return false }
    }

    private func sealedBox(_ row: JSONValue) throws -> Bool {
        let pair = try X25519KeyPair(privateKey: secret(row, "recipient_private"))
        let sealed = try bytes(row, "sealed_b64")
        guard Base64.text(pair.publicKey) == row["recipient_public"]?.string else { return false }
        let plain = try? SealedBox.open(sealed, with: pair)  // Whether it opens is the question.
        guard row["opens"]?.bool == true else { return plain == nil }
        let message = try secret(row, "message_b64")
        let ephemeral = try X25519KeyPair(privateKey: secret(row, "ephemeral_private"))
        let again = try SealedBox.seal(message, to: pair.publicKey, ephemeral: ephemeral)
        return isSame(plain, message) && again == sealed
    }

    /// The pair that `sealed_recipient` names: `keys.bouncer[0]`.
    private func recipient(_ section: JSONValue) throws -> X25519KeyPair {
        let name = section["sealed_recipient"]?.string ?? "keys.bouncer[0]"
        let index = try #require(Int(name.drop { $0 != "[" }.dropFirst().prefix { $0 != "]" }))
        let key = try #require(json["keys"]?["bouncer"]?[index])
        return try X25519KeyPair(privateKey: secret(key, "private_key"))
    }

    private func mutation(_ row: JSONValue, _ recipient: X25519KeyPair) throws -> Bool {
        let data = try text(row, "data")
        let plain: Secret?
        // Whether it opens is the question.
        switch row["box"]?.string {
        case "sealed": plain = try? SealedBox.open(Base64.decode(data), with: recipient)
        case "secretbox":
            let index = Int(try #require(row["push_key_index"]?.int64))
            let key = try PushKey(base64: Secret(world.pushKeys[index].utf8))
            plain = try? ContentBox.open(Secret(data.utf8), with: key)
        default: return false
        }
        guard row["opens"]?.bool == true else { return plain == nil }
        return isSame(plain, try secret(row, "message_b64"))
    }

    private func encryptedData(_ row: JSONValue) throws -> Bool {
        let data = Secret(try text(row, "encrypted_data").utf8)
        // A key that is none opens nothing.
        let key = try? PushKey(base64: Secret(text(row, "push_key").utf8))
        let plain = key.flatMap { try? ContentBox.open(data, with: $0) }
        guard row["decrypts"]?.bool == true else { return plain == nil }
        let expected = try row["plaintext"]?.string.map { Secret($0.utf8) } ?? secret(row, "plaintext_b64")
        let nonce = try bytes(row, "nonce_b64")
        let raw = Secret(try Base64.decode(text(row, "push_key"))[1...])
        let again = Base64.encode(nonce + (try SecretBox.seal(expected, key: raw, nonce: nonce)))
        return isSame(plain, expected) && Secret(again) == data
    }

    /// Seals the content, and has a device open it.
    private func content(_ row: JSONValue) throws -> Bool {
        let account = ZulipAccount(
            realmURL: try #require(row["account"]?["realm_url"]?.string),
            userID: try #require(row["account"]?["user_id"]?.int64))
        let key = try PushKey(base64: Secret(world.pushKeys[0].utf8))
        let device = ZulipRoutine(account: account, keys: [HeldPushKey(id: 7, key: key, createdAt: now)])
        let nonce = [UInt8](repeating: 1, count: SecretBox.nonceBytes)
        let raw = Secret(try Base64.decode(world.pushKeys[0])[1...])
        let plain = Secret((row["json"] ?? .null).serialized())
        let sealed = nonce + (try SecretBox.seal(plain, key: raw, nonce: nonce))
        return outcome { try device.open(pushKeyID: 7, encryptedData: Secret(Base64.encode(sealed))) }
            == row["outcome"]?.string
    }

    private func outcome(_ open: () throws -> ZulipNotification?) -> String {
        do {
            switch try open()?.body {
            case nil: return "ignore"
            case .message: return "message"
            case .remove: return "remove"
            case .test: return "test"
            }
        } catch let error as ZulipError {
            return error.code == .foreignContent
                ? "reject" : error.code == .malformedContent ? "malformed" : error.codeText
        } catch { return "\(error)" }
    }

    /// The body that the relay makes of a ciphertext of that length.
    private func size(_ row: JSONValue) throws -> Bool {
        let plain = Int(try #require(row["plaintext_bytes"]?.int64))
        let characters = Base64.encode([UInt8](repeating: 0, count: plain + ContentBox.overheadBytes))
        let item =
            #"{"token_id":"AAAAAAAAAAE=","http_headers":{"apns_priority":10,"apns_push_type":"alert"},"#
            + #""payload":{"push_key_id":4294967295,"#
            + #""encrypted_data":"\#(String(decoding: characters, as: UTF8.self))"}}"#
        let body = Array(#"{"realm_uuid":"\#(world.realm)","push_requests":[\#(item)]}"#.utf8)
        guard row["encrypted_data_chars"]?.int64 == Int64(characters.count) else { return false }
        do throws(ZulipError) {
            let request = try withBytes(body) { (bytes) throws(ZulipError) in
                try NotifyRequest(parsing: bytes)
            }
            return row["apns_body_bytes"]?.int64 == Int64(request.items[0].payload.count)
                && row["fits_4096"]?.bool == true
        } catch {
            // What no push service takes, the relay does not take either.
            return error.code == .payloadTooLarge && row["fits_4096"]?.bool == false
        }
    }

    // MARK: reading

    func isSame(_ left: Secret?, _ right: Secret) -> Bool { left.map { $0 == right } ?? false }

    func text(_ row: JSONValue, _ member: String) throws -> String { try #require(row[member]?.string) }
    func bytes(_ row: JSONValue, _ member: String) throws -> [UInt8] { try Base64.decode(text(row, member)) }
    func secret(_ row: JSONValue, _ member: String) throws -> Secret { Secret(try bytes(row, member)) }
}
