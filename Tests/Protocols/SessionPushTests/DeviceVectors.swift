import EdwardsKeys
import Primitives
import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

/// Runs the cases of `session.json` that are a device's.
struct DeviceVectors: Sendable {
    let json: JSONValue
    let set: VectorSet
    private let keys: JSONValue

    init(_ file: VectorFile) throws {
        json = file.json
        keys = try #require(file.json["keys"])
        let push = file.json["push"]
        let onion = file.json["onion"]
        let published = ["onion_hop", "onion_request", "push_payload"].compactMap { name in
            file.json["published"]?[name].map {
                VectorCase("published (device)", part: name, name: "all", row: $0)
            }
        }
        let path = onion?["path"].map { VectorCase("onion (device)", part: "path", name: "three", row: $0) }
        let wire = push?["wire"].map { VectorCase("push", part: "wire", name: "all", row: $0) }
        set = VectorSet(
            "session/" + file.set,
            VectorCase.each(of: push?["cases"], "push", part: "cases")
                + VectorCase.each(of: push?["negative"], "push", part: "negative")
                + [wire, path].compactMap(\.self)
                + VectorCase.each(of: onion?["requests"], "onion (device)", part: "requests")
                + published
                + Self.bodies("subscribe", of: file.json) + Self.bodies("unsubscribe", of: file.json))
    }

    /// Those that a device would make: the relay takes them, and they are signed as devices sign today.
    private static func bodies(_ section: String, of json: JSONValue) -> [VectorCase] {
        VectorCase.each(of: json[section], section + " (device)").filter { vector in
            guard vector.row["expect"]?["recommended"]?["ok"]?.bool == true,
                let id = vector.row["id"]?.string, !id.hasSuffix("carry"),
                let body = try? body(of: vector.row),
                let account = try? bytes(body["pubkey"], 33)
            else { return false }
            return account[0] == 0x05 || account[0] == 0x03
        }
    }

    func holds(_ vector: VectorCase) throws -> Bool {
        switch (vector.section, vector.part) {
        case ("push", "cases"): try push(vector.row)
        case ("push", "negative"): try refuses(vector.row)
        case ("push", _): try wire(vector.row)
        case ("onion (device)", "path"): try path(vector.row)
        case ("onion (device)", _): try request(vector.row)
        case ("published (device)", "push_payload"): try publishedPush(vector.row)
        case ("published (device)", "onion_hop"): try publishedHop(vector.row)
        case ("published (device)", _): try publishedRequest(vector.row)
        case ("subscribe (device)", _): try subscribes(vector.row)
        case ("unsubscribe (device)", _): try unsubscribes(vector.row)
        default: false
        }
    }

    // MARK: opening

    /// A phone with the file's accounts and a given key.
    private func device(_ encKey: String) throws -> SessionRoutine {
        var device = try SessionRoutine(keeping: Secret("[[\"\(encKey)\"],[],[]]".utf8))
        for name in ["account_a", "account_b", "group"] {
            try device.watch(WatchedAccount(try key(name)))
        }
        return device
    }

    private func key(_ name: String) throws -> SessionAccountKey {
        let seed = Secret(try Self.hex(keys[name]?["ed25519_seed"]))
        return try SessionAccountKey(seed: seed, name == "group" ? .group : .user)
    }

    private func push(_ row: JSONValue) throws -> Bool {
        let expect = try #require(row["expect"])
        let encKey = try #require(row["enc_key"]?.string)
        let payload = Secret(try #require(row["enc_payload"]?.string).utf8)
        // A padded form is the sender's, and the device looks through it.
        let padded = try PushOpening.plaintext(of: payload, key: Secret(try Self.hex(row["enc_key"])))
        guard try padded.reveal({ Array($0) }) == Self.hex(row["padded"]) else { return false }
        // Long before any of the messages ends.
        let action = try device(encKey).open(DeliveredPush(payload: payload), now: .distantPast)
        let message: SessionMessage
        switch action {
        case .show(let shown):
            guard [0, 11].contains(shown.namespace) else { return false }
            message = shown
        case .update(let taken): message = taken
        case .fetch(let missing):
            guard missing.data == nil else { return false }
            message = missing
        case .ignore: return false
        }
        let account = message.account.bytes.reveal { Hex.encode($0) }
        let data = message.data?.reveal { Hex.encode($0) }
        return account == expect["account"]?.string && message.hash == expect["hash"]?.string
            && message.namespace.map { Int64($0) } == expect["namespace"]?.int64
            && message.sentAt?.milliseconds == expect["timestamp_ms"]?.int64
            && message.expiresAt?.milliseconds == expect["expiry_ms"]?.int64
            && message.isTooLong == expect["too_long"]?.bool && data == expect["data"]?.string
    }

    private func refuses(_ row: JSONValue) throws -> Bool {
        let device = try device(try #require(row["enc_key"]?.string))
        let push = DeliveredPush(payload: Secret(try #require(row["enc_payload"]?.string).utf8))
        do throws(SessionError) { _ = try device.open(push, now: .distantPast) } catch {
            let opens = row["id"]?.string?.hasPrefix("inner-") == true
            return error == SessionError(opens ? .malformedPush : .doesNotOpen)
        }
        return false
    }

    /// What each push service delivers, of the first case.
    private func wire(_ row: JSONValue) throws -> Bool {
        let first = try #require(json["push"]?["cases"]?[0])
        let device = try device(try #require(first["enc_key"]?.string))
        let firebase = try #require(row["firebase_data"])
        let huawei = JSONValue.string(try #require(row["huawei_data_string"]?.string))
        let delivered: [[UInt8]] = [
            Array(try #require(row["apns"]?["body"]?.string).utf8), firebase.serialized(),
            JSONValue.object(["data": firebase]).serialized(),
            JSONValue.object(["message": .object(["data": firebase])]).serialized(),
            huawei.serialized(), JSONValue.object(["data": huawei]).serialized()
        ]
        for json in delivered {
            let action = try device.open(DeliveredPush(delivered: Secret(json)), now: .distantPast)
            guard case .show(let message) = action, message.hash == first["expect"]?["hash"]?.string else {
                return false
            }
        }
        return true
    }

    private func publishedPush(_ row: JSONValue) throws -> Bool {
        let payload = Secret(Base64.encode(try Self.hex(row["payload"])))
        let plain = try PushOpening.plaintext(of: payload, key: Secret(try Self.hex(row["enc_key"])))
        return plain.reveal { String(decoding: $0, as: UTF8.self) } == row["plaintext_text"]?.string
    }

    // MARK: what a device sends

    private func subscribes(_ row: JSONValue) throws -> Bool {
        let body = try Self.body(of: row)
        var device = try device(Hex.encode(try Self.bytes(body["enc_key"], 32)))
        try device.watch(watched(body, row, namespaces: body["namespaces"]))
        return try fits(try only(of: &device, body), body, row, ["namespaces", "enc_key"])
    }

    private func unsubscribes(_ row: JSONValue) throws -> Bool {
        let body = try Self.body(of: row)
        var device = SessionRoutine(using: &Self.random)
        let watched = try watched(body, row, namespaces: nil)
        try device.watch(watched)
        let now = UnixTime(seconds: try #require(body["sig_ts"]?.int64))
        let call = try only(of: &device, body)
        _ = device.settle(
            call.id, SessionAnswer(status: 200, body: Secret(#"{"success":true,"added":true}"#.utf8)),
            now: now, using: &Self.random)
        try device.leave(watched.account, now: now)
        let leaving = try only(of: &device, body)
        return try leaving.endpoint == .unsubscribe && fits(leaving, body, row, [])
    }

    private static var random: SeededRandom {
        get { SeededRandom(seed: 1) }
        set {}
    }

    /// The account of a row, as its holder watches it.
    private func watched(
        _ body: JSONValue, _ row: JSONValue, namespaces: JSONValue?
    ) throws -> WatchedAccount {
        let account = try #require(AccountID(Secret(try Self.bytes(body["pubkey"], 33))))
        let spaces = namespaces?.array?.compactMap { $0.int64.map { Int16($0) } }
        // Devices sort them.
        let listed = spaces.map { Array($0.reversed()) }
        let content: WatchedAccount.Content = body["data"]?.bool == true ? .included : .leftOut
        let owners = try ["account_a", "account_b", "group"].map { try key($0) }
        let owner = try #require(owners.first { $0.account == account })
        guard body["subaccount"]?.string != nil else {
            return try WatchedAccount(owner, namespaces: listed, content: content)
        }
        let signature = Secret(try Self.bytes(body["subaccount_sig"], 64))
        let token = Secret(try Self.bytes(body["subaccount"], 36))
        let subaccount: Subaccount
        if let inputs = row["client_inputs"] {
            let member = try #require(Ed25519KeyPair(seed: Secret(try Self.hex(inputs["member_seed"]))))
            let admin = try GroupAdmin(seed: Secret(try Self.hex(inputs["group_seed"])))
            let value = try admin.signingValue(for: SessionAccountKey(member).account)
            guard try value.reveal({ Array($0) }) == Self.hex(inputs["signing_value_100_bytes"]) else {
                throw SessionError(.malformedSubaccount)
            }
            subaccount = try Subaccount(signingValue: value, of: account, member: member)
            #expect(subaccount.token == token && subaccount.ownerSignature == signature)
        } else {
            let seed = Secret(try Self.hex(keys["subaccount_key"]?["ed25519_seed"]))
            subaccount = try Subaccount(
                token: token, ownerSignature: signature, of: account, ownerKey: owner.pair.publicKey,
                key: try #require(Ed25519KeyPair(seed: seed)))
        }
        return try WatchedAccount(subaccount, namespaces: listed, content: content)
    }

    /// The call that is made of the account watched last, alone.
    private func only(of device: inout SessionRoutine, _ body: JSONValue) throws -> SessionCall {
        let service = try #require(SessionService(rawValue: body["service"]?.string ?? ""))
        let token = try #require(body["service_info"]?["token"]?.string)
        device.use(try SessionDeviceToken(service, Secret(token.utf8)))
        let now = UnixTime(seconds: try #require(body["sig_ts"]?.int64))
        return try #require(try device.renewal(due: now).first)
    }

    /// Whether an element of a call says what the body says, however either is spelt.
    private func fits(
        _ call: SessionCall, _ body: JSONValue, _ row: JSONValue, _ more: [String]
    ) throws -> Bool {
        let ours = try call.body.reveal { try JSONValue.parse($0) }
        let account = try Self.bytes(body["pubkey"], 33)
        let element = try #require(
            (ours.array ?? [ours]).first { (try? Self.bytes($0["pubkey"], 33)) == account })
        let isPerson = account[0] == 0x05
        let lengths = [
            ("signature", 64), ("session_ed25519", isPerson ? 32 : 0), ("enc_key", 32), ("subaccount", 36),
            ("subaccount_sig", 64)
        ]
        for (name, count) in lengths where count > 0 && body[name]?.string != nil {
            guard try Self.bytes(element[name], count) == Self.bytes(body[name], count) else { return false }
        }
        let text = row["signed_text"]?.string ?? ""
        let isData = more.isEmpty || element["data"]?.bool == (body["data"]?.bool ?? false)
        return isData && text.hasPrefix(more.isEmpty ? "UNSUBSCRIBE" : "MONITOR")
            && element["namespaces"] == body["namespaces"] && element["sig_ts"] == body["sig_ts"]
            && element["service"] == body["service"]
            && element["service_info"]?["token"] == body["service_info"]?["token"]
            && (isPerson || element["session_ed25519"] == nil)
    }

    private static func body(of row: JSONValue) throws -> JSONValue {
        try JSONValue.parse(Array(try #require(row["body"]?.string).utf8))
    }

    /// Bytes of a field in one of its spellings.
    private static func bytes(_ value: JSONValue?, _ count: Int) throws -> [UInt8] {
        let text = try #require(value?.string)
        if text.utf8.count == 2 * count { return try Hex.decode(Array(text.utf8)) }
        let digits = String(text.prefix { $0 != "=" })
        return try Base64.decode(digits + String(repeating: "=", count: (4 - digits.utf8.count % 4) % 4))
    }

    static func hex(_ value: JSONValue?) throws -> [UInt8] {
        try Hex.decode(Array(try #require(value?.string).utf8))
    }
}
