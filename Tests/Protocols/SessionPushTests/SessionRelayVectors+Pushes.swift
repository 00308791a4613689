import Primitives
import PushModel
import PushTesting
import SessionPush
import Synchronization
import Testing
import WireFormats

/// Messages, sealing and onion requests.
extension SessionRelayVectors {
    // MARK: messages

    /// What a core told a worker in one dictionary stands here in a subscription and a message.
    func notifierPush(_ row: JSONValue) async throws -> Bool {
        let told = try Self.bytes(row["body"]).withUnsafeBytes { raw in
            var members: [String: Secret] = [:]
            var numbers: [String: Int64] = [:]
            var reader = BencodeReader(raw)
            try reader.beginDictionary()
            while let key = try reader.nextKey() {
                let name = String(decoding: key, as: UTF8.self)
                if try reader.peek() == .integer {
                    numbers[name] = try reader.readInteger().int64
                } else {
                    members[name] = Secret(copying: try reader.readString())
                }
            }
            try reader.end()
            return (members, numbers)
        }
        let (members, numbers) = told
        let account = try #require(members["@"].flatMap { AccountID($0) })
        let push = StorageNotice(
            account: account, hash: try #require(members["#"]),
            namespace: Int16(try #require(numbers["n"])),
            timestamp: UnixTime(milliseconds: try #require(numbers["t"])),
            expiry: UnixTime(milliseconds: try #require(numbers["z"])), data: members["~"])
        let token = try #require(members["&"]), key = PeerAccount.hex(try #require(members["^"]))
        let service = try #require(members[""]).reveal { String(decoding: $0, as: UTF8.self) }
        let sent = try await sent(
            push, to: token, service: try #require(SessionService(rawValue: service)), key: key)
        let opened = try OpenedPush(sent.message, key: key)
        return sent.message.address == APNsMessage.canonical(token)
            && opened.data == push.data?.reveal { Array($0) }
            && opened.metadata["#"]?.string == push.hash.reveal { String(decoding: $0, as: UTF8.self) }
            && opened.metadata["t"]?.int64 == push.timestamp.milliseconds
            && opened.metadata["z"]?.int64 == push.expiry.milliseconds
            && opened.metadata["l"]?.int64 == push.data.map { Int64($0.count) }
    }

    /// What a relay with one stored subscription makes of a message.
    ///
    /// - Parameter nonce: the words that the relay draws; none: any.
    private func sent(
        _ push: StorageNotice, to token: Secret, service: SessionService, key: String, wantsData: Bool = true,
        policy: SessionPolicy = SessionPolicy(), nonce: [UInt8] = []
    ) async throws -> Push {
        let rig = try await SessionRig(now: now)
        let app = SessionApp(name: configured("acme"), bundle: SessionRig.bundle)
        var world = rig.world
        if !nonce.isEmpty {
            let words = Mutex(
                nonce.withUnsafeBytes { raw in
                    stride(from: 0, to: 24, by: 8).map {
                        raw.loadUnaligned(fromByteOffset: $0, as: UInt64.self)
                    }
                })
            world.random = { words.withLock { $0.isEmpty ? 0 : $0.removeFirst() } }
        }
        let relay = SessionRelay(
            instance: SessionRig.instance, apps: SessionApps([service: app]), policy: policy,
            registry: rig.store, world: world)
        let fields = JSONValue.object([
            "pubkey": .string(PeerAccount.hex(push.account.bytes)),
            "session_ed25519": .string(String(repeating: "1", count: 64)),
            "namespaces": .array([.number(JSONNumber(Int64(push.namespace)))]), "data": .bool(wantsData),
            "sig_ts": .number(JSONNumber(now.seconds)),
            "signature": .string(String(repeating: "0", count: 128)),
            "service": .string(service.rawValue), "enc_key": .string(key),
            "service_info": .object([
                "token": .string(token.reveal { String(decoding: $0, as: UTF8.self) })
            ])
        ])
        let call = try withBytes(fields.serialized()) { try SessionCallBody(.subscribe, by: .plain, $0) }
        guard case .subscribe(let form, _) = try call.elements[0].get() else {
            throw VectorFile.Fault.notOurs
        }
        let record = SessionSubscription(form, app: app.name).record(rig.keys, bundle: app.bundle, now: now)
        #expect(try await rig.store.apply([.put(record, if: .any)]) == .committed)
        let verdict = try await relay.receive(.notified(push))
        return try #require(verdict.pushes.first)
    }

    /// The repeat identity of a push is the filter's key.
    func identity(_ row: JSONValue) async throws -> Bool {
        let account = try #require(AccountID(Secret([5] + [UInt8](repeating: 7, count: 32))))
        let push = StorageNotice(
            account: account, hash: Secret(try #require(row["hash"]?.string).utf8), namespace: 0,
            timestamp: now, expiry: now + .seconds(60), data: nil)
        let service = try #require(
            row["service"]?.string.flatMap { SessionService(rawValue: $0) })
        let sent = try await sent(
            push, to: Secret(try #require(row["service_id"]?.string).utf8), service: service,
            key: String(repeating: "5c", count: 32))
        return sent.repeatIdentity.map { PeerAccount.hex($0) } == row["filter_key"]?.string
    }

    // MARK: sealing

    /// The payload is that of the file, byte for byte, with its nonce.
    func push(_ vector: VectorCase) async throws -> Bool {
        let row = vector.row
        if vector.part == "wire" { return try await wire(vector.name, row) }
        let sent = try await sent(
            row, service: .apns, metadata: row["metadata_style"]?.string == "dict" ? .deployed : .json)
        let payload = try #require(sent.message.apns?.payload)
        let body = try payload.reveal { try JSONValue.parse($0) }
        return body["enc_payload"] == row["enc_payload"]
            && row["apns_json_bytes"]?.int64 == Int64(payload.count)
    }

    private func sent(
        _ row: JSONValue, service: SessionService, metadata: SessionPolicy.MetadataStyle
    ) async throws -> Push {
        let expect = try #require(row["expect"])
        let account = try Self.bytes(expect["account"])
        let length = expect["length"]?.int64.map { Int($0) }
        let data = try expect["data"]?.string.map { Secret(try Hex.decode(Array($0.utf8))) }
        return try await sent(
            StorageNotice(
                account: try #require(AccountID(Secret(account))),
                hash: Secret(try #require(expect["hash"]?.string).utf8),
                namespace: Int16(try #require(expect["namespace"]?.int64)),
                timestamp: UnixTime(milliseconds: try #require(expect["timestamp_ms"]?.int64)),
                expiry: UnixTime(milliseconds: try #require(expect["expiry_ms"]?.int64)),
                // A message that is too long is not in the file.
                data: data ?? length.map { Secret([UInt8](repeating: 0, count: $0)) }),
            to: Secret(String(repeating: "a1", count: 32).utf8), service: service,
            key: try #require(row["enc_key"]?.string), wantsData: length != nil,
            policy: SessionPolicy(metadata: metadata), nonce: try Self.bytes(row["nonce"]))
    }

    private func wire(_ name: String, _ row: JSONValue) async throws -> Bool {
        let small = try #require(json["push"]?["cases"]?.array?.first { $0["id"]?.string == "small" })
        if name == "apns" {
            let message = try #require(
                try await sent(small, service: .apns, metadata: .json).message.apns)
            let expected = try JSONValue.parse(Array(try #require(row["body"]?.string).utf8))
            let body = try message.payload.reveal { try JSONValue.parse($0) }
            return body == expected && row["headers"]?["apns-push-type"]?.string == message.pushType.rawValue
                && row["headers"]?["apns-priority"]?.string == String(message.priority)
                && row["headers"]?["apns-topic"]?.string == message.topic
        }
        let message = try #require(try await sent(small, service: .firebase, metadata: .json).message.fcm)
        return try message.data.reveal { try JSONValue.parse($0) } == row
    }

    // MARK: onion requests

    func onion(_ vector: VectorCase) throws -> Bool {
        switch vector.part {
        case "requests": return try request(vector.row)
        case "negative": return try refused(vector.row)
        case "inner": return try inner(vector.row)
        default: return try innerErrorReply(vector.row)
        }
    }

    private func request(_ row: JSONValue) throws -> Bool {
        let opened = try opened(row)
        let request = try #require(opened.request)
        let plain = try Self.list(try Self.bytes(row["plaintext"]))
        let head = try JSONValue.parse(plain[0])
        guard request.method == head["method"]?.string, request.path == head["endpoint"]?.string,
            request.contentType == head["headers"]?["Content-Type"]?.string,
            request.body == Secret(plain.count > 1 ? plain[1] : [])
        else { return false }
        let reply = try Self.list(try Self.bytes(row["reply_plaintext"]))
        let answer = try JSONValue.parse(reply[0])
        let nonce = try Self.bytes(row["reply_nonce"])
        let sealed = try withBytes(reply[1]) {
            opened.reply.seal(
                code: Int(try #require(answer["code"]?.int64)),
                contentType: answer["headers"]?["content-type"]?.string, body: $0, nonce: nonce)
        }
        return PeerAccount.hex(sealed) == row["reply_encrypted"]?.string
    }

    private func opened(_ row: JSONValue) throws -> SessionOnion.Opened {
        let key = try row["server_x25519_sk"] ?? #require(json["keys"]?["onion_server"]?["x25519_sk"])
        let pair = try X25519KeyPair(privateKey: Secret(try Self.bytes(key)))
        return try withBytes(try Self.bytes(row["request"])) { try SessionOnion.open($0, key: pair) }
    }

    private func refused(_ row: JSONValue) throws -> Bool {
        do {
            _ = try opened(row)
            return false
        } catch let error as SessionError {
            return error == SessionError(.malformedOnion) && row["expect_outer_status"]?.int64 == 400
        }
    }

    private func inner(_ row: JSONValue) throws -> Bool {
        let request = withBytes(try Self.bytes(row["plaintext"])) { InnerRequest($0) }
        guard let request else { return row["valid"]?.bool == false }
        return row["valid"]?.bool == true && request.body == Secret((row["body"]?.string ?? "").utf8)
    }

    private func innerErrorReply(_ row: JSONValue) throws -> Bool {
        let first = try #require(json["onion"]?["requests"]?.array?.first)
        let sealed = try opened(first).reply.malformed(.fixed(seed: 1, at: now))
        let key = Secret(try Self.bytes(first["key"]))
        let plain = sealed.reveal { OnionCipher.xchacha20.open($0, key: key) }
        return plain.map { PeerAccount.hex($0) } == row.string
    }

    private static func list(_ bytes: [UInt8]) throws -> [[UInt8]] {
        try withBytes(bytes) { raw in
            var reader = BencodeReader(raw, .strict)
            var elements: [[UInt8]] = []
            try reader.beginList()
            while try reader.nextElement() { elements.append(Array(try reader.readString())) }
            try reader.end()
            return elements
        }
    }
}
