import Primitives
import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

/// Runs the cases of `session.json` that are the relay's.
struct SessionRelayVectors: Sendable {
    static let sections = [
        "subscribe", "subscribe_arrays", "sequence", "unsubscribe", "unsubscribe_arrays", "notifier_push",
        "dedup", "onion", "push"
    ]

    let set: VectorSet
    let json: JSONValue
    let now: UnixTime

    init(_ file: VectorFile) {
        json = file.json
        now = file.now
        let json = file.json
        var cases: [VectorCase] = []
        for section in [
            "subscribe", "subscribe_arrays", "unsubscribe", "unsubscribe_arrays", "notifier_push", "dedup"
        ] {
            cases += Self.named(json[section], section)
        }
        if let steps = json["sequence"] {
            cases.append(
                VectorCase("sequence", name: "all", row: steps, rows: steps.array?.count ?? 0))
        }
        for part in ["requests", "negative", "inner"] {
            cases += Self.named(json["onion"]?[part], "onion", part)
        }
        if let reply = json["onion"]?["inner_error_reply"] {
            cases.append(VectorCase("onion", name: "inner_error_reply", row: reply))
        }
        // Other styles are what devices must read; none of them is written by us.
        cases += Self.named(json["push"]?["cases"], "push", "cases").filter { Self.isOurs($0) }
        for name in ["apns", "firebase_data"] {
            if let wire = json["push"]?["wire"]?[name] {
                cases.append(VectorCase("push", part: "wire", name: name, row: wire))
            }
        }
        set = VectorSet("session/" + file.set, cases)
    }

    private static func named(
        _ list: JSONValue?, _ section: String, _ part: String = ""
    ) -> [VectorCase] {
        (list?.array ?? []).enumerated().map { index, row in
            VectorCase(section, part: part, name: row["id"]?.string ?? "\(index + 1)", row: row)
        }
    }

    /// What deployed servers or newer ones do that ours does not: white space, no times, no padding, more
    /// elements, null.
    private static func isOurs(_ vector: VectorCase) -> Bool {
        let strange = [
            "small-compact-json", "group-negative-namespace-null", "without-t-and-z", "extra-list-element",
            "unpadded"
        ]
        return !strange.contains(vector.name)
    }

    func holds(_ vector: VectorCase) async throws -> Int {
        switch vector.section {
        case "sequence": return try await sequence(vector.row.array ?? [])
        case "subscribe": return try await subscribe(vector.row, vector.name) ? 1 : 0
        case "unsubscribe": return try await unsubscribe(vector.row) ? 1 : 0
        case "subscribe_arrays": return try await arrays("/subscribe", vector.row) ? 1 : 0
        case "unsubscribe_arrays": return try await arrays("/unsubscribe", vector.row) ? 1 : 0
        case "notifier_push": return try await notifierPush(vector.row) ? 1 : 0
        case "dedup": return try await identity(vector.row) ? 1 : 0
        case "onion": return try onion(vector) ? 1 : 0
        case "push": return try await push(vector) ? 1 : 0
        default: return 0
        }
    }

    // MARK: calls

    private func rig(_ policy: SessionPolicy = SessionPolicy()) async throws -> SessionRig {
        try await SessionRig(policy: policy, now: now)
    }

    private func subscribe(_ row: JSONValue, _ name: String) async throws -> Bool {
        let rig = try await rig(SessionPolicy(takesSubkeys: name.hasPrefix("legacy-subkey")))
        let body = Array(try #require(row["body"]?.string).utf8)
        let expected = row["expect"]?["recommended"]
        return try await rig.running { rig in
            guard Self.fits(try await rig.ask("/subscribe", body), expected) else { return false }
            let known = try await rig.subscriptions()
            guard expected?["ok"]?.bool == true else { return known.isEmpty }
            guard known.count == 1, let row = row["canonical"] else { return known.count == 1 }
            guard Self.same(known[0], row) else { return false }
            return try await arrives(rig, known[0])
        }
    }

    /// A message for what is subscribed reaches the push service, and opens with the device's key.
    private func arrives(_ rig: SessionRig, _ known: SessionSubscription) async throws -> Bool {
        // The sandbox of a rig has no way out.
        guard known.service != .apnsSandbox else { return true }
        try await rig.notify(
            StorageNotice(
                account: known.account, hash: Secret(String(repeating: "h", count: 43).utf8),
                namespace: known.namespaces[0], timestamp: now, expiry: now + .seconds(60),
                data: known.wantsData ? Secret("text".utf8) : nil))
        await rig.services.sent(atLeast: 1)
        let message = rig.services.sent[0].message
        let opened = try OpenedPush(message, key: PeerAccount.hex(known.encryptionKey))
        return message.address == APNsMessage.canonical(known.token)
            && opened.metadata["@"]?.string == PeerAccount.hex(known.account.bytes)
            && opened.metadata["n"]?.int64 == Int64(known.namespaces[0])
            && opened.data == (known.wantsData ? Array("text".utf8) : nil)
    }

    private static func same(_ known: SessionSubscription, _ row: JSONValue) -> Bool {
        PeerAccount.hex(known.account.bytes) == row["pubkey"]?.string
            && known.sessionKey.map { PeerAccount.hex($0) } == row["session_ed25519"]?.string
            && known.namespaces.map { Int64($0) } == row["namespaces"]?.array?.compactMap(\.int64)
            && known.wantsData == (row["data"]?.bool ?? false) && known.signedAt == row["sig_ts"]?.int64
            && known.service.rawValue == row["service"]?.string
            && known.token == Secret((row["service_id"]?.string ?? "").utf8)
            && PeerAccount.hex(known.encryptionKey) == row["enc_key"]?.string
            && (row["subaccount"]?.string).map { $0 == known.subaccount.map { PeerAccount.hex($0.token) } }
                ?? true
    }

    private func unsubscribe(_ row: JSONValue) async throws -> Bool {
        let rig = try await rig()
        let body = Array(try #require(row["body"]?.string).utf8)
        return try await rig.running { rig in
            Self.fits(try await rig.ask("/unsubscribe", body), row["expect"]?["recommended"])
        }
    }

    private func arrays(_ path: String, _ row: JSONValue) async throws -> Bool {
        let rig = try await rig()
        let body = Array(try #require(row["body"]?.string).utf8)
        let expected = try #require(row["expect"]?["array"]?.array)
        return try await rig.running { rig in
            guard let answers = try await rig.ask(path, body).array, answers.count == expected.count else {
                return false
            }
            return zip(answers, expected).allSatisfy { Self.fits($0, $1) }
        }
    }

    private func sequence(_ steps: [JSONValue]) async throws -> Int {
        let rig = try await rig()
        return try await rig.running { rig in
            var held = 0
            for step in steps {
                let body = Array(try #require(step["body"]?.string).utf8)
                let answer = try await rig.ask(try #require(step["path"]?.string), body)
                if Self.fits(answer, step["expect"]) { held += 1 }
            }
            return held
        }
    }

    private static func fits(_ answer: JSONValue, _ expected: JSONValue?) -> Bool {
        guard let expected, answer["message"]?.string?.isEmpty == false else { return false }
        guard expected["ok"]?.bool == true else {
            let allowed = expected["error_in"]?.array ?? []
            return answer["success"] == nil && answer["error"].map { allowed.contains($0) } == true
        }
        guard answer["success"]?.bool == true, answer["error"] == nil else { return false }
        if let removed = expected["removed"]?.bool { return answer["removed"]?.bool == removed }
        let result = expected["result"]?.string ?? ""
        return answer[result]?.bool == true
            && ["added", "updated", "removed"].allSatisfy { $0 == result || answer[$0] == nil }
    }

    static func bytes(_ value: JSONValue?) throws -> [UInt8] {
        try Hex.decode(Array(try #require(value?.string).utf8))
    }
}
