import Primitives
import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing
import WireFormats

/// Runs the cases of `status.json` that need neither relay nor device: ciphers, names, messages.
struct WireVectors: Sendable {
    static let sections = [
        "keys", "hashes", "chat_ids", "compression", "compression_invalid", "shared_keys", "aes_gcm",
        "grants",
        "uuid", "topics", "waku_payload", "envelopes", "registration_responses", "wrapped", "published"
    ]

    let set: VectorSet
    private let keys: [String: Secp256k1KeyPair]

    init(_ file: VectorFile) throws {
        let json = file.json
        var cases: [VectorCase] = []
        for section in [
            "keys", "hashes", "chat_ids", "compression", "compression_invalid", "shared_keys", "topics",
            "envelopes", "registration_responses"
        ] {
            cases += VectorCase.each(of: json[section], section)
        }
        for (section, parts) in [
            ("aes_gcm", ["valid", "invalid"]), ("grants", ["valid", "invalid"]),
            ("uuid", ["accept", "reject"]),
            ("waku_payload", ["symmetric", "asymmetric", "invalid"]),
            ("published", ["partitions", "message_hash"])
        ] {
            for part in parts { cases += VectorCase.each(of: json[section]?[part], section, part: part) }
        }
        if let row = json["grants"]?["valid_malleable"] {
            cases.append(VectorCase("grants", part: "valid", name: "high S", row: row))
        }
        // What was wrapped, whichever section it stands in.
        for section in ["queries", "requests", "registrations"] {
            cases += VectorCase.each(of: json[section], "wrapped", part: section)
                .filter { $0.row["message_id"] != nil }
        }
        set = VectorSet("status/" + file.set, cases)
        var keys: [String: Secp256k1KeyPair] = [:]
        for row in json["keys"]?.array ?? [] {
            keys[row["name"]?.string ?? ""] = try Secp256k1KeyPair(secret: Secret(row.bytes("private")))
        }
        self.keys = keys
    }

    func holds(_ vector: VectorCase) throws -> Bool {
        let row = vector.row
        switch vector.section {
        case "keys": return try key(row)
        case "hashes": return try hash(row)
        case "chat_ids": return try row.text("chat_id_text").isHashed(to: row.bytes("hash"))
        case "compression": return try compression(row)
        case "compression_invalid": return PublicPoint(try row.bytes("input")) == nil
        case "shared_keys": return try sharedKey(row)
        case "aes_gcm": return try box(row, isValid: vector.part == "valid")
        case "grants": return try grant(row, isValid: vector.part == "valid")
        case "uuid": return AccessToken.isUUID(Secret((row.string ?? "").utf8)) == (vector.part == "accept")
        case "topics": return try topic(row)
        case "waku_payload": return try payload(vector)
        case "envelopes": return try envelope(row)
        case "registration_responses": return try response(row)
        case "wrapped": return try wrapped(row, vector.part)
        case "published":
            return try vector.part == "message_hash" ? messageHash(row) : published(row)
        default: return false
        }
    }

    func key(named name: String?) throws -> Secp256k1KeyPair { try #require(keys[name ?? ""]) }

    // MARK: names

    private func key(_ row: JSONValue) throws -> Bool {
        let pair = try Secp256k1KeyPair(secret: Secret(row.bytes("private")))
        let hash = StatusHash.person(pair.point)
        return try pair.point.uncompressed == row.bytes("public_uncompressed")
            && pair.point.compressed == row.bytes("public_compressed") && hash == Secret(row.bytes("hash"))
            && StatusHash.contactID(pair.point) == row.text("contact_id")
            && StatusHash.author(pair.point) == Secret(row.bytes("author"))
            && Int64(WakuTopic.partition(of: pair.point)) == row["partition"]?.int64
            && WakuTopic.partitioned(of: pair.point).name == row.text("partitioned_topic")
            && WakuTopic.personal(of: pair.point).name == row.text("personal_topic")
            && WakuTopic.contactCode(of: pair.point).name == row.text("contact_code_topic")
            && WakuTopic.query(of: hash).name == row.text("query_topic")
    }

    private func published(_ row: JSONValue) throws -> Bool {
        let pair = try Secp256k1KeyPair(secret: Secret(row.bytes("private")))
        return try pair.point.uncompressed == row.bytes("public_uncompressed")
            && WakuTopic.partitioned(of: pair.point).contentTopic == row["content_topic"]?.string
            && Int64(WakuTopic.partition(of: pair.point)) == row["partition"]?.int64
    }

    private func hash(_ row: JSONValue) throws -> Bool {
        let input = try row.bytes("input")
        return try Keccak.hash256(input) == row.bytes("keccak256")
            && SHAKE256.hash64(input) == row.bytes("shake256_64") && SHA256.hash(input) == row.bytes("sha256")
    }

    private func compression(_ row: JSONValue) throws -> Bool {
        let (long, short) = try (row.bytes("uncompressed"), row.bytes("compressed"))
        return PublicPoint(long)?.compressed == short && PublicPoint(short)?.uncompressed == long
    }

    private func sharedKey(_ row: JSONValue) throws -> Bool {
        let pair = try Secp256k1KeyPair(secret: Secret(row.bytes("private")))
        let peer = try #require(PublicPoint(row.bytes("public")))
        return pair.sharedX(with: peer) == Secret(try row.bytes("shared"))
    }

    private func topic(_ row: JSONValue) throws -> Bool {
        let topic = WakuTopic(name: try row.text("name_text"))
        let id = try row.bytes("topic4").reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        return try topic.id == id && topic.contentTopic == row["content_topic_text"]?.string
            && WakuTopic.id(ofContentTopic: topic.contentTopic) == id
            && TopicKey.derive(from: topic) == Secret(row.bytes("symmetric_key"))
    }

    // MARK: sealing

    private func box(_ row: JSONValue, isValid: Bool) throws -> Bool {
        let (key, sealed) = try (Secret(row.bytes("key")), Secret(row.bytes("sealed")))
        guard isValid else { return (try? StatusBox.open(sealed, key: key)) == nil }
        let plain = Secret(try row.bytes("plaintext"))
        return try StatusBox.open(sealed, key: key) == plain
            && StatusBox.seal(plain, key: key, nonce: row.bytes("nonce")) == sealed
    }

    private func grant(_ row: JSONValue, isValid: Bool) throws -> Bool {
        // A row that names nobody is of the section's own client, server and token.
        let client = try key(named: row["client"]?.string ?? "bob")
        let server = try key(named: row["server"]?.string ?? "server").point
        let token =
            try row["access_token"] == nil
            ? Secret("a6712c96-9eb0-4df5-bc7c-041602a28ea7".utf8) : row.text("access_token")
        let signature = Secret(try row.bytes("signature"))
        let holds = Grant.holds(signature, client: client.point, server: server, accessToken: token)
        guard isValid, row["digest"] != nil else { return holds == isValid }
        return try holds && Grant.sign(by: client, server: server, accessToken: token) == signature
            && Grant.digest(client: client.point, server: server, accessToken: token) == row.bytes("digest")
    }

    private func payload(_ vector: VectorCase) throws -> Bool {
        let row = vector.row
        guard let encoded = try? Secret(row.bytes("encoded")) else { return try longPayload(vector) }
        if vector.part == "invalid" {
            return row["kind"]?.string == "symmetric"
                ? (try? WakuPayload.openSymmetric(encoded, key: Secret(row.bytes("key")))) == nil
                : (try? WakuPayload.openAsymmetric(encoded, with: key(named: "server"))) == nil
        }
        return try sealed(vector) == encoded && opens(vector, encoded)
    }

    /// Of what is too long for the file, hashes stand there.
    private func longPayload(_ vector: VectorCase) throws -> Bool {
        let sealed = try sealed(vector)
        guard let hash = vector.row["encoded_sha256"] else { return try opens(vector, sealed) }
        return try Hex.encode(SHA256.hash(sealed)) == hash.string && opens(vector, sealed)
    }

    private func data(_ row: JSONValue) throws -> Secret {
        try Secret(row.bytes("data"))
    }

    private func sealed(_ vector: VectorCase) throws -> Secret {
        let row = vector.row
        let signer = try row["signer"]?.string.map { try key(named: $0) }
        let data = try data(row)
        let padding = try row.bytes("padding")
        guard padding.count == WakuPayload.padding(data, isSigned: signer != nil) else { return Secret([]) }
        let body = WakuPayload.body(data, signer: signer, padding: padding)
        if vector.part == "symmetric" {
            return WakuPayload.sealSymmetric(
                body, key: Secret(try row.bytes("key")), nonce: try row.bytes("nonce"))
        }
        return WakuPayload.sealAsymmetric(
            body, to: try key(named: row["to"]?.string).point,
            ephemeral: try Secp256k1KeyPair(secret: Secret(row.bytes("ephemeral_private"))),
            iv: try row.bytes("iv"))
    }

    private func opens(_ vector: VectorCase, _ encoded: Secret) throws -> Bool {
        let row = vector.row
        let opened =
            try vector.part == "symmetric"
            ? WakuPayload.openSymmetric(encoded, key: Secret(row.bytes("key")))
            : WakuPayload.openAsymmetric(encoded, with: key(named: row["to"]?.string))
        let signer = try row["signer"]?.string.map { try key(named: $0).point }
        return try opened.data == data(row) && opened.signer == signer
    }

    private func envelope(_ row: JSONValue) throws -> Bool {
        let payload = Secret(try row.bytes("payload"))
        let opened =
            try row["encryption"]?.string == "symmetric"
            ? WakuPayload.openSymmetric(payload, key: Secret(row.bytes("key")))
            : WakuPayload.openAsymmetric(payload, with: key(named: row["to"]?.string))
        let topic = WakuTopic(name: try row.text("topic_name_text"))
        let message = WakuMessage(
            payload: payload, contentTopic: topic.contentTopic,
            timestamp: try #require(row["timestamp"]?.int64))
        let bytes = try #require(try Wrapping.unwrap(opened.data))
        _ = try MetadataMessage(reading: bytes)
        return try opened.data == Secret(row.bytes("application_bytes"))
            && opened.signer == key(named: row["transport_signer"]?.string).point
            && topic.contentTopic == row["content_topic_text"]?.string
            && message.encoded() == Secret(row.bytes("waku_message_protobuf"))
            && message.hash(pubsubTopic: row["pubsub_topic_text"]?.string ?? "") == row.bytes("message_hash")
    }

    private func messageHash(_ row: JSONValue) throws -> Bool {
        let message = WakuMessage(
            payload: Secret(try row.bytes("payload")), contentTopic: row["content_topic"]?.string ?? "",
            timestamp: try #require(row["timestamp"]?.int64), meta: Secret(try row.bytes("meta")))
        return try message.hash(pubsubTopic: row["pubsub_topic"]?.string ?? "") == row.bytes("message_hash")
    }

    // MARK: messages

    private func response(_ row: JSONValue) throws -> Bool {
        let fields = row["fields"]
        let response = PushNotificationRegistrationResponse(
            success: fields?["success"]?.bool ?? false,
            error: .init(rawValue: Int32(fields?["error"]?.int64 ?? 0)),
            requestID: Secret(try #require(fields).bytes("request_id")))
        let bytes = response.encoded()
        let wrapped = MetadataMessage.wrap(
            bytes, .registrationResponse, by: try key(named: row["signer"]?.string))
        let read = try MetadataMessage(reading: wrapped)
        return try bytes == Secret(row.bytes("protobuf")) && wrapped == Secret(row.bytes("wrapped"))
            && read.messageID == Secret(row.bytes("message_id"))
            && PushNotificationRegistrationResponse(reading: read.payload).encoded() == bytes
    }

    private func wrapped(_ row: JSONValue, _ section: String) throws -> Bool {
        let bytes = Secret(try row.bytes("wrapped"))
        guard let message = try? MetadataMessage(reading: bytes) else {
            // Only registrations have bad signatures: nobody answers those.
            return row["expect"]?["spec"]?["respond"]?.bool == false
        }
        guard try message.messageID == Secret(row.bytes("message_id")) else { return false }
        switch section {
        case "queries":
            return try PushNotificationQuery(reading: message.payload).encoded() == message.payload
        case "requests":
            return try PushNotificationRequest(reading: message.payload).encoded() == message.payload
        default: break
        }
        guard
            let plain = try? StatusBox.open(
                message.payload, key: key(named: "server").sharedX(with: message.signer)),
            let registration = try? PushNotificationRegistration(reading: plain)
        else { return row["expect"]?["spec"]?["success"]?.bool != true }
        return registration.encoded() == plain || row["name"]?.string == "unknown-field-kept"
    }
}

extension JSONValue {
    /// Bytes of a member in hex.
    func bytes(_ member: String) throws -> [UInt8] {
        try Hex.decode(Array(try #require(self[member]?.string).utf8))
    }

    /// A member's text, as what it is to the code.
    func text(_ member: String) throws -> Secret { Secret(try #require(self[member]?.string).utf8) }
}

extension Secret {
    fileprivate func isHashed(to hash: [UInt8]) -> Bool { StatusHash.chat(self) == Secret(hash) }
}
