import EdwardsKeys
import Primitives
import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

/// Onion requests as a device builds them.
extension DeviceVectors {
    /// One layer, taken apart: the ciphertext, and the JSON behind it.
    struct Frame {
        let sealed: [UInt8]
        let routing: JSONValue

        init(_ bytes: [UInt8]) throws {
            try #require(bytes.count > 4)
            let count = (0..<4).reduce(0) { $0 | Int(bytes[$1]) << (8 * $1) }
            try #require(count <= bytes.count - 4)
            sealed = Array(bytes[4..<4 + count])
            routing = try JSONValue.parse(Array(bytes[(4 + count)...]))
        }

        /// What its receiver reads.
        func opened(by secret: [UInt8]) throws -> [UInt8] {
            let pair = try X25519KeyPair(privateKey: Secret(secret))
            let cipher = try #require(OnionCipher(encType: routing["enc_type"]?.string))
            let ephemeral = try DeviceVectors.hex(routing["ephemeral_key"])
            let key = try #require(withBytes(ephemeral) { cipher.key(pair, with: $0, isClient: false) })
            return try #require(withBytes(sealed) { cipher.open($0, key: key) }).reveal { Array($0) }
        }
    }

    static func chance(_ secret: JSONValue?, nonce: [UInt8]) throws -> OnionChance {
        OnionChance(pair: try X25519KeyPair(privateKey: Secret(try hex(secret))), nonce: nonce)
    }

    func server(_ key: JSONValue?) throws -> OnionServer {
        try OnionServer(host: "push.example.org", key: Secret(try Self.hex(key)))
    }

    /// With the row's key and nonce, the bytes of the row; and the row's reply opens.
    func request(_ row: JSONValue) throws -> Bool {
        let cipher = try #require(OnionCipher(encType: row["enc_type"]?.string))
        let chance = try Self.chance(row["ephemeral_sk"], nonce: Self.hex(row["nonce"]))
        let request = try server(row["server_x25519_pk"]).request(
            Secret(try Self.hex(row["plaintext"])), through: [], cipher, chances: [chance])
        let bytes = request.body.reveal { Array($0) }
        let theirs = try Self.hex(row["request"])
        // The JSON behind may be spelt in several ways.
        let sealed = 4 + (try Frame(theirs)).sealed.count
        guard bytes.prefix(sealed) == theirs.prefix(sealed), request.path == "/oxen/v4/lsrpc",
            try Frame(bytes).routing["ephemeral_key"]?.string == row["ephemeral_pk"]?.string
        else { return false }
        let answer = try request.answer(status: 200, body: Secret(try Self.hex(row["reply_encrypted"])))
        let plain = try Self.hex(row["reply_plaintext"])
        return try withBytes(plain) { plain in
            var reader = BencodeReader(plain)
            try reader.beginList()
            _ = try reader.nextElement()
            let head = try JSONValue.parse(try reader.readString())
            _ = try reader.nextElement()
            let body = Secret(copying: try reader.readString())
            return answer.status.map { Int64($0) } == head["code"]?.int64 && answer.body == body
        }
    }

    /// Node after node opens what is for it, in the row's own request and in ours, and reads the same.
    func path(_ row: JSONValue) throws -> Bool {
        let hops = try #require(row["hops"]?.array)
        let secrets = try hops.map { try Self.hex($0["node_x25519_sk"]) }
        let theirs = try peeled(try Self.hex(row["guard_body"]), by: secrets)
        for (layer, hop) in zip(theirs.plain, hops) where try layer != Self.hex(hop["decrypts_to"]) {
            return false
        }
        let nodes = try hops.map {
            try OnionNode(
                ed25519: Secret(try Self.hex($0["node_ed25519"])),
                x25519: Secret(try Self.hex($0["node_x25519_pk"])))
        }
        // The key that the server has; the nonce is in the row's innermost layer.
        let last = try Frame(try #require(theirs.plain.last))
        var random = SeededRandom(seed: 5)
        let first = try Self.chance(row["destination_ephemeral_sk"], nonce: Array(last.sealed.prefix(24)))
        let others = (0..<hops.count).map { _ in
            let bytes = { (count: Int) in (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) } }
            return Result {
                OnionChance(pair: try X25519KeyPair(privateKey: Secret(bytes(32))), nonce: bytes(24))
            }
        }
        let host = last.routing["host"]?.string ?? ""
        let port = UInt16(last.routing["port"]?.int64 ?? 443)
        let scheme = OnionServer.Scheme(rawValue: last.routing["protocol"]?.string ?? "https")
        let server = try OnionServer(
            host: host, port: port, scheme: try #require(scheme),
            key: Secret(try Self.hex(json["keys"]?["onion_server"]?["x25519_pk"])))
        let request = try server.request(
            Secret(try Self.hex(row["destination_plaintext"])), through: nodes, .xchacha20,
            chances: [first] + others.map { try $0.get() })
        guard request.path == row["guard_endpoint"]?.string else { return false }
        let ours = try peeled(request.body.reveal { Array($0) }, by: secrets)
        // The innermost is what the last node posts to the server: the very same bytes.
        guard try Frame(try #require(ours.plain.last)).sealed == last.sealed else { return false }
        for (one, other) in zip(ours.routing, theirs.routing) {
            let names = Set((one.object?.names ?? []) + (other.object?.names ?? []))
            for name in names.subtracting(["ephemeral_key"]) where one[name] != other[name] { return false }
        }
        let server32 = try Self.hex(json["keys"]?["onion_server"]?["x25519_sk"])
        return try Frame(try #require(ours.plain.last)).opened(by: server32)
            == Self.hex(row["destination_plaintext"])
    }

    private func peeled(
        _ body: [UInt8], by secrets: [[UInt8]]
    ) throws -> (plain: [[UInt8]], routing: [JSONValue]) {
        var plain: [[UInt8]] = []
        var routing: [JSONValue] = []
        var frame = try Frame(body)
        for secret in secrets {
            plain.append(try frame.opened(by: secret))
            frame = try Frame(plain[plain.count - 1])
            routing.append(frame.routing)
        }
        return (plain, routing)
    }

    // MARK: published

    func publishedHop(_ row: JSONValue) throws -> Bool {
        let client = try X25519KeyPair(privateKey: Secret(try Self.hex(row["client_sk"])))
        let server = try X25519KeyPair(privateKey: Secret(try Self.hex(row["server_sk"])))
        for (cipher, name) in [(OnionCipher.xchacha20, "xchacha20"), (.aesGCM, "aes_gcm")] {
            let sealed = try Self.hex(row[name])
            let there = try #require(
                withBytes(server.publicKey) { cipher.key(client, with: $0, isClient: true) })
            let back = try #require(
                withBytes(client.publicKey) { cipher.key(server, with: $0, isClient: false) })
            guard there == back,
                let plain = withBytes(sealed, { cipher.open($0, key: there) }),
                plain.reveal({ String(decoding: $0, as: UTF8.self) }) == row["plaintext_text"]?.string,
                withBytes(
                    Array("Hello world".utf8),
                    {
                        cipher.seal($0, key: there, nonce: Array(sealed.prefix(cipher.nonceBytes)))
                    }
                ).reveal({ Array($0) }) == sealed
            else { return false }
        }
        return true
    }

    func publishedRequest(_ row: JSONValue) throws -> Bool {
        for name in ["xchacha20", "aes_gcm"] {
            let frame = try Frame(try Self.hex(row[name]))
            let plain = try frame.opened(by: Self.hex(row["server_sk"]))
            let cipher = try #require(OnionCipher(encType: frame.routing["enc_type"]?.string))
            let request = try server(row["server_pk"]).request(
                Secret(plain), through: [], cipher,
                chances: [
                    Self.chance(row["client_sk"], nonce: Array(frame.sealed.prefix(cipher.nonceBytes)))
                ])
            guard String(decoding: plain, as: UTF8.self) == row["plaintext_text"]?.string,
                try request.body.reveal({ try Frame(Array($0)) }).sealed == frame.sealed
            else { return false }
        }
        return true
    }
}
