import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// The sections of what an origin writes to a relay, and of what it makes of the answers.
extension ZulipVectorRunner {
    /// The cases of a section of the origin's; none of one that is not.
    static func originCases(_ section: String, _ body: JSONValue) -> [VectorCase] {
        switch section {
        case "origin_notify": VectorCase.each(of: body["cases"], section)
        case "origin_on_bouncer_answer":
            ["register", "notify"].flatMap { VectorCase.each(of: body[$0], section, part: $0) }
        case "client_register", "client_register_v11":
            // The steps share a user.
            steps(section, body)
        case "zap_push_account_ids":
            ["sequences", "refusals"].flatMap { VectorCase.each(of: body[$0], section, part: $0) }
        case "zap_stale_list":
            VectorCase.each(of: body["origin"]?["cases"], section, part: "origin")
        case "zap_settings":
            VectorCase.each(of: body["server"]?["cases"], section, part: "server")
                + VectorCase.each(of: body["server"]?["changes"], section, part: "changes")
        default: []
        }
    }

    private static func steps(_ section: String, _ body: JSONValue) -> [VectorCase] {
        guard let steps = body["steps"]?.array, !steps.isEmpty else { return [] }
        return [VectorCase(section, name: "\(steps.count) steps", row: body, rows: steps.count)]
    }

    /// How many rows of a case hold; `nil` for a section that is not the origin's.
    func originPassed(_ vector: VectorCase) throws -> Int? {
        switch vector.section {
        case "origin_notify": try originNotify(vector.row) ? 1 : 0
        case "origin_on_bouncer_answer": originOnAnswer(vector.row, part: vector.part) ? 1 : 0
        case "client_register": try clientRegister(vector.row)
        case "client_register_v11": try clientRegisterV11(vector.row)
        case "zap_push_account_ids":
            try vector.part == "sequences"
                ? (registrationSequence(vector.row) ? 1 : 0) : (registrationRefusal(vector.row) ? 1 : 0)
        case "zap_stale_list": try staleListRun(vector.row) ? 1 : 0
        case "zap_settings" where vector.part != "client":
            try requirement(vector.row, part: vector.part) ? 1 : 0
        default: nil
        }
    }

    /// The target of a row, sealed for; the item is compared, and its content opened.
    private func originNotify(_ row: JSONValue) throws -> Bool {
        var random = SeededRandom(seed: 7)
        let origin = ZulipOrigin(
            id: world.servers[0].id, key: Secret(world.servers[0].key.utf8), version: "12")
        let content = try #require(row["content"])
        let notification = try #require(try self.notification(content))
        let calls = try origin.notify(
            notification, to: [target(row)], realm: world.realm, using: &random)
        let expected = try #require(row["item"])
        if expected.isNull { return calls.isEmpty }
        guard calls.count == 1 else { return false }
        let body = try JSONValue.parse(calls[0].body.reveal { Array($0) })
        guard body["realm_uuid"]?.string == world.realm, body["push_requests"]?.array?.count == 1,
            let item = body["push_requests"]?[0]
        else { return false }
        let (blind, sealed) = Self.blind(item)
        guard blind == expected, let sealed, let plain = try open(sealed, row) else { return false }
        return try plain.reveal { bytes in
            let opened = try JSONValue.parse(bytes)
            let members = (opened.object?.members ?? []).filter { $0.name != "padding" }
            return members.count == content.object?.count
                && members.allSatisfy { content[$0.name] == $0.value }
        }
    }

    /// An item with the word `opens` in place of its ciphertext, and the ciphertext.
    private static func blind(_ item: JSONValue) -> (JSONValue, Secret?) {
        guard var object = item.object else { return (item, nil) }
        var sealed: Secret?
        if let text = object["encrypted_content"]?.string {
            sealed = Secret(text.utf8)
            object["encrypted_content"] = .string("opens")
        }
        if var payload = object["payload"]?.object, let text = payload["encrypted_data"]?.string {
            sealed = Secret(text.utf8)
            payload["encrypted_data"] = .string("opens")
            object["payload"] = .object(payload)
        }
        return (.object(object), sealed)
    }

    private func target(_ row: JSONValue) throws -> ZulipTarget {
        let target = try #require(row["target"])
        let kind = try #require(TokenKind(rawValue: text(target, "token_kind")))
        switch row["profile"]?.string {
        case "v12":
            return ZulipTarget(
                kind: kind, tokenID: try #require(TokenID(text(target, "token_id"))),
                pushKeyID: try #require(target["push_key_id"]?.uint32),
                key: try PushKey(base64: Secret(text(target, "push_key").utf8)))
        case "v11":
            return ZulipTarget(
                kind: kind, deviceID: target["device_id"]?.int64,
                accountID: try #require(target["push_account_id"]?.int64),
                key: try PushKey(base64: Secret(text(target, "push_key").utf8)))
        default:
            return ZulipTarget(
                deviceID: target["device_id"]?.int64,
                key: try PushPublicKey(base64: text(target, "push_public_key")))
        }
    }

    private func open(_ sealed: Secret, _ row: JSONValue) throws -> Secret? {
        let target = try #require(row["target"])
        if row["profile"]?.string == "zap" {
            let wire = try text(target, "push_public_key")
            let pair = try X25519KeyPair(
                privateKey: secret(try #require(json["keys"]?["zap_device"]), "private_key"))
            guard Base64.text(pair.publicKey) == wire else { return nil }
            return try SealedBox.open(Base64.decode(sealed.reveal { Array($0) }), with: pair)
        }
        return try ContentBox.open(sealed, with: PushKey(base64: Secret(text(target, "push_key").utf8)))
    }

    /// A content as the file writes it, read as a device does.
    private func notification(_ content: JSONValue) throws -> ZulipNotification? {
        let account = ZulipAccount(
            realmURL: try text(content, "realm_url"), userID: try #require(content["user_id"]?.int64))
        let key = try PushKey(base64: Secret(world.pushKeys[0].utf8))
        let device = ZulipRoutine(account: account, keys: [HeldPushKey(id: 1, key: key, createdAt: now)])
        let nonce = [UInt8](repeating: 1, count: SecretBox.nonceBytes)
        let raw = Secret(try Base64.decode(world.pushKeys[0])[1...])
        let sealed = nonce + (try SecretBox.seal(Secret(content.serialized()), key: raw, nonce: nonce))
        return try device.open(pushKeyID: 1, encryptedData: Secret(Base64.encode(sealed)))
    }

    /// A relay's answer, and what the origin does then.
    private func originOnAnswer(_ row: JSONValue, part: String) -> Bool {
        part == "register" ? onRegistration(row) : onNotification(row)
    }

    private func onRegistration(_ row: JSONValue) -> Bool {
        let outcome = ZulipOrigin.registrationOutcome(Self.answer(row), profile: .v12)
        let tells = row["alert_admins"]?.bool == true
        // Trying again is the kinder reading of a row that does not bind.
        if row["required"]?.bool == false, case .retry = outcome { return true }
        switch (row["action"]?.string, outcome) {
        case ("done", .done(nil)): return !tells
        case ("fail", .failed(let code, let alert)):
            return code == row["error_code"]?.string && (alert != nil) == tells
        case ("retry", .retry(let alert)): return (alert != nil) == tells
        default: return false
        }
    }

    private func onNotification(_ row: JSONValue) -> Bool {
        let id = TokenID(5)
        let lists = row["delete_token_ids"]?.array?.map { $0.string == "$tid" ? id.text : "" } ?? []
        let counts =
            #"{"result":"success","msg":"","apple_successfully_sent_count":0,"#
            + #""android_successfully_sent_count":0,"delete_token_ids":["#
            + lists.map { "\"\($0)\"" }.joined(separator: ",") + "]}"
        let answer =
            row["http"]?.int64 == 200
            ? CallAnswer(status: 200, body: Secret(counts.utf8)) : Self.answer(row)
        let action = row["action"]?.string ?? ""
        switch ZulipOrigin.notifyOutcome(answer, profile: .v12) {
        case .sent(let sent): return action.contains("clear push_token_id") && sent.deadTokenIDs == [id]
        case .realmIsOff: return action.contains("push_notifications_enabled false, drop")
        case .retry: return action == "retry"
        case .refused: return false
        }
    }

    /// An answer as rows give it: `http` null, or `network`, for none; `body`, or `body_text` as it stands.
    static func answer(_ row: JSONValue) -> CallAnswer {
        guard let status = row["http"]?.int64 else { return .none }
        let body = row["body_text"]?.string.map { Array($0.utf8) }
        let json = row["body"].flatMap { $0.isNull ? nil : $0.serialized() }
        return CallAnswer(
            status: Int(status), retryAfter: row["headers"]?["Retry-After"]?.string,
            body: Secret(body ?? json ?? []))
    }
}
