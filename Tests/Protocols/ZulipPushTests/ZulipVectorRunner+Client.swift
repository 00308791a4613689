import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

extension ZulipVectorRunner {
    /// What of a section the device library answers for.
    static func deviceCases(_ section: String, _ body: JSONValue) -> [VectorCase] {
        switch section {
        case "zap_content": return VectorCase.each(of: body["cases"], section)
        case "zap_client": return VectorCase.each(of: body["sequences"], section)
        case "zap_settings":
            return VectorCase.each(of: body["client"]?["cases"], section, part: "client")
        case "zap_payloads":
            return VectorCase.each(of: body["deliveries"]?["cases"], section, part: "deliveries")
        default: return []
        }
    }

    /// - Returns: `nil` for a case of another role.
    func deviceHolds(_ vector: VectorCase) throws -> Bool? {
        switch (vector.section, vector.part) {
        case ("zap_content", _): return try zapContent(vector.row)
        case ("zap_client", _): return try clientSequence(vector.row)
        case ("zap_settings", "client"): return try clientRoute(vector.row)
        case ("zap_payloads", "deliveries"): return try delivery(vector.row)
        default: return nil
        }
    }

    // MARK: settings

    /// What a server says, against the route.
    func clientRoute(_ row: JSONValue) throws -> Bool {
        let settings = try ZulipServerSettings(Secret(try #require(row["server_settings"]).serialized()))
        let profiles = try #require(row["profiles"]?.array).map {
            try #require($0.string.flatMap { ZulipProfile(rawValue: $0) })
        }
        let route = ZulipRoutine.route(
            serverSettings: settings, profiles: profiles,
            requireEndToEnd: row["require_e2ee"] == .bool(true))
        let word =
            switch route {
            case .encrypted(let profile): profile.rawValue
            case .legacy: "legacy"
            case .refused: "refused"
            }
        return word == row["route"]?.string && (route == .refused) == row["tell_user"]?.bool
    }

    // MARK: the routine

    /// The steps of one sequence, with one account.
    func clientSequence(_ sequence: JSONValue) throws -> Bool {
        let steps = try #require(sequence["steps"]?.array)
        var play = try ClientPlay(
            now: now,
            bouncers: try #require(json["keys"]?["bouncer"]?.array).map {
                try X25519KeyPair(privateKey: secret($0, "private_key"))
            }, realm: "https://chat.example.com")
        for step in steps {
            try play.take(step)
            // What follows a step that went wrong tells nothing.
            guard try play.holds(step) else {
                VectorFile.say("  \(sequence["name"]?.string ?? ""): \(play.story)")
                return false
            }
        }
        return !steps.isEmpty
    }

    // MARK: deliveries

    /// What arrives at a phone with all its accounts.
    func delivery(_ row: JSONValue) throws -> Bool {
        let accounts = try #require(json["zap_payloads"]?["deliveries"]?["accounts"]?.array)
        let devices = try accounts.map { try phoneAccount($0) }
        let delivered = Secret(try text(row, "delivered").utf8)
        let outcome: String
        var account: String?
        do throws(ZulipError) {
            let delivery = try ZulipDelivery(delivered: delivered)
            do throws(ZulipError) {
                let opened = try ZulipRoutine.open(delivery, for: devices, now: now)
                account = opened.notification == nil ? nil : accounts[opened.place]["name"]?.string
                outcome =
                    switch opened.notification?.body {
                    case nil: "ignore"
                    case .message: "message"
                    case .remove: "remove"
                    case .test: "test"
                    }
            } catch { outcome = Self.outcome(error, delivery.profile) }
        } catch { outcome = Self.outcome(error, .zap) }
        return outcome == row["outcome"]?.string && account == row["account"]?.string
    }

    private static func outcome(_ error: ZulipError, _ profile: ZulipProfile) -> String {
        switch error.code {
        case .foreignPush: "ignore"
        case .unknownAccount, .unknownPushKey: profile == .zap ? "ignore" : "other profile"
        case .doesNotOpen: "unopened"
        case .foreignContent: "reject"
        case .malformedContent: "malformed"
        default: error.codeText
        }
    }

    /// An account that is registered, with the ids that it had before.
    private func phoneAccount(_ row: JSONValue) throws -> ZulipRoutine {
        let account = ZulipAccount(
            realmURL: try text(row, "realm_url"), userID: try #require(row["user_id"]?.int64))
        let ids = try #require(row["former_ids"]?.array).map { try #require($0.string) }
        return try KeptPhone.zap(
            account, id: text(row, "push_account_id"), key: secret(row, "push_private_key"), former: ids,
            at: now)
    }
}

/// One account, played by the steps of a sequence.
private struct ClientPlay {
    let start: UnixTime
    let bouncers: [X25519KeyPair]
    var device: ZulipRoutine
    var build: ZulipAppBuild
    var random = SeededRandom(seed: 30)
    var now: UnixTime
    var out: [ZulipDeviceAction] = []
    var calls: [ZulipDeviceCall] = []
    var ids: [String: Int64] = [:]
    var keys: [String: String] = [:]
    var marker = Secret([UInt8](repeating: 7, count: 16))

    init(now: UnixTime, bouncers: [X25519KeyPair], realm: String) throws {
        start = now
        self.now = now
        self.bouncers = bouncers
        build = try ZulipAppBuild(bouncerKey: Base64.text(bouncers[0].publicKey), profiles: [.zap])
        device = ZulipRoutine(account: ZulipAccount(realmURL: realm, userID: 7))
    }

    // MARK: in

    mutating func take(_ step: JSONValue) throws {
        now = start + .seconds(try #require(step["at"]?.int64))
        let kept = try ZulipRoutine(keeping: device.encoded())
        #expect(kept.encoded() == device.encoded())
        let event = try event(try #require(step["in"]))
        // An app that starts has what it kept.
        if case .start = event { device = kept }
        out = try device.take(event, now: now, using: &random)
        for case .call(let call) in out where call.kind == .register { calls.append(call) }
    }

    private mutating func event(_ row: JSONValue) throws -> ZulipDeviceEvent {
        if let row = row["start"] {
            // Where there is no marker, the app makes one.
            if row["backup_marker"]?.bool == false {
                marker = ZulipRoutine.newMarker(using: &random)
            }
            let settings = try ZulipServerSettings(
                Secret(try #require(row["server_settings"]).serialized()))
            return .start(
                ZulipStart(
                    serverSettings: settings, build: build, token: try token(row),
                    requireEndToEnd: row["require_e2ee"] == .bool(true), marker: marker))
        }
        if let row = row["token"] { return .token(try token(row)) }
        if let row = row["answer"] {
            let last = try #require(calls.last)
            return .answer(call: last.number, answer(row))
        }
        if let row = row["map"] {
            var map = JSONObject()
            for (name, entry) in row.object?.members ?? [] { map[String(try id(name))] = entry }
            return .state(Secret(JSONValue.object(["push_account_ids": .object(map)]).serialized()))
        }
        if let row = row["event"] {
            var event = try #require(row.object)
            let name = try #require(event["push_account_id"]?.string)
            event["push_account_id"] = .number(JSONNumber(try id(name)))
            return .events(Secret(JSONValue.object(event).serialized()))
        }
        if let row = row["app_update"] {
            let key = bouncers[Int(try #require(row["bouncer_key"]?.int64))].publicKey
            build = try ZulipAppBuild(bouncerKey: Base64.text(key), profiles: [.zap])
            return .build(build)
        }
        if row["logout"] != nil { return .logout }
        _ = try #require(row["tick"])
        return .tick
    }

    private func token(_ row: JSONValue) throws -> DevicePushToken {
        let kind = try #require(row["token_kind"]?.string.flatMap { TokenKind(rawValue: $0) })
        return DevicePushToken(
            kind: kind, token: Secret(try #require(row["token"]?.string).utf8),
            appID: kind == .apns ? "org.zulip.Zulip" : nil)
    }

    private func answer(_ row: JSONValue) -> ZulipDeviceAnswer {
        guard let status = row["http"]?.int64 else { return .none }
        var body: JSONObject = ["result": .string(status == 200 ? "success" : "error"), "msg": .string("")]
        body["code"] = row["code"]
        return ZulipDeviceAnswer(
            status: Int(status), retryAfter: row["retry_after"]?.int64.map { String($0) },
            body: Secret(JSONValue.object(body).serialized()))
    }

    private func id(_ name: String) throws -> Int64 { try #require(ids[name]) }

    // MARK: out

    /// Whether the step asks for what it should, and the status is what it should be.
    mutating func holds(_ step: JSONValue) throws -> Bool {
        var left = out
        let expected = try #require(step["out"]?.array)
        for row in expected {
            guard let place = try left.firstIndex(where: { try matches($0, row) }) else { return false }
            left.remove(at: place)
        }
        guard left.isEmpty else { return false }
        guard let row = step["status"] else { return true }
        let status = ZulipRoutine.status(of: device, now: now)
        return status.state.rawValue == row["state"]?.string && status.isQuiet == row["quiet"]?.bool
            && status.errorCode == row["error_code"]?.string
            && status.advice.rawValue == row["advice"]?.string
    }

    private mutating func matches(_ action: ZulipDeviceAction, _ row: JSONValue) throws -> Bool {
        switch (row["do"]?.string, action) {
        case ("register", .call(let call)) where call.kind == .register: return try registers(call, row)
        case ("forget", .call(let call)) where call.kind == .forget:
            guard call.path == "/api/v1/mobile_push/forget", call.fields.count == 1 else { return false }
            return try binds(call, row)
        case ("timer", .timer(let time)):
            let after = time.since(start)
            if let at = row["at"]?.int64 { return after == .seconds(at) }
            let least = try #require(row["between"]?[0]?.double)
            let most = try #require(row["between"]?[1]?.double)
            return (Duration.seconds(least) ... .seconds(most)).contains(after)
        case ("notice", .notice(let notice)): return notice.rawValue == row["kind"]?.string
        case ("notice_end", .endNotice), ("legacy", .legacy), ("legacy_end", .endLegacy): return true
        default: return false
        }
    }

    private mutating func registers(_ call: ZulipDeviceCall, _ row: JSONValue) throws -> Bool {
        let names = [
            "push_account_id", "encrypted_push_registration", "bouncer_public_key", "push_public_key",
            "token_kind"
        ]
        guard call.path == "/api/v1/mobile_push/register", call.fields.map(\.name) == names,
            try binds(call, row)
        else { return false }
        let pair = bouncers[Int(try #require(row["bouncer_key"]?.int64))]
        guard call.text("bouncer_public_key") == Base64.text(pair.publicKey) else { return false }
        let blob = try #require(call.fields.first { $0.name == "encrypted_push_registration" }).value
        let plain = try RegistrationBox.open(blob, with: pair)
        guard plain.token == Secret(try #require(row["token"]?.string).utf8),
            plain.timestamp == now.seconds, plain.kind.rawValue == call.text("token_kind")
        else { return false }
        let name = try #require(row["key"]?.string)
        return bind(&keys, name, try #require(call.text("push_public_key")))
    }

    private mutating func binds(_ call: ZulipDeviceCall, _ row: JSONValue) throws -> Bool {
        let id = try #require(call.text("push_account_id").flatMap { Int64($0) })
        let name = try #require(row["push_account_id"]?.string)
        return id > 0 && bind(&ids, name, id)
    }

    /// A name is bound where it first appears; other names are other values.
    private func bind<Value: Equatable>(
        _ known: inout [String: Value], _ name: String, _ value: Value
    ) -> Bool {
        if let bound = known[name] { return bound == value }
        guard !known.values.contains(value) else { return false }
        known[name] = value
        return true
    }

    var story: String {
        let status = ZulipRoutine.status(of: device, now: now)
        let actions = out.map { action in
            switch action {
            case .call(let call): "\(call.kind) \(call.text("push_account_id") ?? "")"
            case .timer(let time): "timer \(time.since(start))"
            case .notice(let notice): notice.rawValue
            case .endNotice: "notice_end"
            case .legacy: "legacy"
            case .endLegacy: "legacy_end"
            }
        }
        return "at \(now.since(start)): \(actions), \(status)"
    }
}

extension ZulipDeviceCall {
    /// A field's text.
    func text(_ name: String) -> String? {
        fields.first { $0.name == name }.map { field in
            field.value.reveal { String(decoding: $0, as: UTF8.self) }
        }
    }
}
