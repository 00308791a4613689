import Delivery
import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// The bouncer's sections of v11 and of the specification's own form.
extension ZulipVectorRunner {
    /// `nil` for a section of others.
    static func bouncerCases(_ section: String, _ body: JSONValue) -> [VectorCase]? {
        switch section {
        case "bouncer_register_v11", "bouncer_notify_v11", "zap_notify":
            return VectorCase.each(of: body["cases"], section)
        case "zap_register":
            return VectorCase.each(of: body["cases"], section)
                + VectorCase.each(of: body["sequences"], section, part: "sequences")
        case "zap_payloads": return VectorCase.each(of: body["rows"], section, part: "rows")
        case "zap_stale_list": return VectorCase.each(of: body["cases"], section, part: "cases")
        default: return nil
        }
    }

    /// Whether a case of these sections holds; `nil` for one of others.
    func bouncerHolds(_ vector: VectorCase) async throws -> Bool? {
        let row = vector.row
        switch (vector.section, vector.part) {
        case ("zap_register", "sequences"): return try await sequence(row)
        case ("bouncer_register_v11", _), ("zap_register", _): return try await registered(vector)
        case ("bouncer_notify_v11", _), ("zap_notify", _): return try await notified(vector)
        case ("zap_payloads", "rows"): return try await payload(row)
        case ("zap_stale_list", "cases"): return try await staleList(row)
        default: return nil
        }
    }

    /// The relay of a section: `config` of the case goes before the section's, and that before the one of
    /// `zap_register`, by which other sections' devices register.
    private func bench(
        _ section: String, _ row: JSONValue, fallbacks: FallbackAlerts = FallbackAlerts([:])
    ) async throws -> AccountBench {
        let configs = [row["config"], json[section]?["config"], json["zap_register"]?["config"]]
        let named = configs.compactMap { $0?["default_ios_app_id"] }.first
        let relay = try await world.relay(fallbacks: fallbacks, defaultAppID: named?.string)
        return AccountBench(relay: relay, world: world)
    }

    // MARK: registering

    private func registered(_ vector: VectorCase) async throws -> Bool {
        let row = vector.row
        let fields = try (row["form"]?.object?.members ?? []).map {
            ($0.name, try #require($0.value.string))
        }
        let bench = try await bench(vector.section, row)
        return try await bench.relay.running { relay in
            let answer = await relay.post(.register, fields, authorization: world.authorization)
            var names = BoundNames()
            guard holds(answer, row, &names) else { return false }
            guard answer.status == 200 else { return try await relay.deviceRevisions().isEmpty }
            guard let stored = row["stores"], let number = answer.json["device_id"]?.int64 else {
                return true
            }
            return try await stores(stored, number, bench)
        }
    }

    private func stores(
        _ expected: JSONValue, _ number: Int64, _ bench: AccountBench
    ) async throws -> Bool {
        let key = try await bench.relay.accountKey(try #require(UUIDText(world.realm)), number)
        guard let record = try await bench.relay.record(key),
            let registration = ZulipRegistration(body: record.body)
        else { return false }
        return registration.kind.rawValue == expected["token_kind"]?.string
            && registration.token == Secret((expected["token"]?.string ?? "").utf8)
            && registration.appID == expected["ios_app_id"]?.string
            && registration.accountID == expected["push_account_id"]?.int64
    }

    private func sequence(_ row: JSONValue) async throws -> Bool {
        let steps = try #require(row["steps"]?.array)
        let bench = try await bench("zap_register", row)
        return try await bench.relay.running { relay in
            var names = BoundNames()
            var at: Int64 = 0
            for (index, step) in steps.enumerated() {
                let next = try #require(step["at"]?.int64)
                relay.advance(by: .seconds(next - at))
                at = next
                let isHeld = try await holds(step, bench, &names)
                #expect(isHeld, "step \(index + 1): \(step["do"]?.string ?? "")")
                if !isHeld { return false }
            }
            return true
        }
    }

    private func holds(
        _ step: JSONValue, _ bench: AccountBench, _ names: inout BoundNames
    ) async throws -> Bool {
        let server = world.servers[Int(step["server"]?.int64 ?? 0)]
        switch step["do"]?.string {
        case "register":
            let fields = try (step["form"]?.object?.members ?? []).map {
                ($0.name, try #require($0.value.string))
            }
            let answer = await bench.relay.post(.register, fields, authorization: server.authorization)
            names.realm = step["form"]?["realm_uuid"]?.string ?? ""
            return holds(answer, step, &names)
        case "notify": return try await notified(step, server, bench, &names)
        case "expire":
            try await bench.expire(
                try #require(names[try text(step, "device_id")]), at: bench.relay.world.now(),
                in: try #require(names.realm(of: text(step, "device_id"))))
            return true
        case "collect":
            while try await bench.relay.store.purge(before: bench.relay.world.now(), limit: 100) > 0 {}
            return true
        default: return false
        }
    }

    // MARK: notifying

    private func notified(_ vector: VectorCase) async throws -> Bool {
        let row = vector.row
        let section = try #require(json[vector.section])
        let bench = try await bench(vector.section, row)
        return try await bench.relay.running { relay in
            var names = BoundNames()
            var registered: [String] = []
            for name in row["registered"]?.array ?? [] {
                let name = try #require(name.string)
                let device = try #require(section["devices"]?[name])
                names.bind("$" + name, try await bench.register(device), in: bench.realm(of: device))
                registered.append(name)
            }
            guard try await notified(row, world.servers[0], bench, &names) else { return false }
            guard let ended = row["after"]?["expired"]?.array?.compactMap(\.string) else { return true }
            for name in registered {
                let isEnded = try await bench.isExpired(
                    try #require(names["$" + name]), in: try #require(names.realm(of: "$" + name)))
                if isEnded != ended.contains("$" + name) { return false }
            }
            return true
        }
    }

    /// Makes a call, and looks at the answer and at what was sent.
    private func notified(
        _ row: JSONValue, _ server: VectorWorld.Server, _ bench: AccountBench, _ names: inout BoundNames
    ) async throws -> Bool {
        let given = row["upstream"]?.object ?? JSONObject()
        for (token, answer) in given.members {
            bench.relay.services.answer(
                token,
                with: StubServices.Upstream(
                    status: Int(try #require(answer["status"]?.int64)),
                    word: answer["reason"]?.string ?? answer["errorCode"]?.string ?? "",
                    timestamp: answer["timestamp"]?.int64))
        }
        let before = bench.relay.services.sends.count
        let body =
            row["request_body"]?.string.map { names.text($0) }
            ?? String(decoding: names.value(row["request"] ?? .null).serialized(), as: UTF8.self)
        let answer = await bench.relay.ask(
            "POST", ZulipPath.notify.rawValue, authorization: server.authorization, body: Array(body.utf8))
        for (token, _) in given.members { bench.relay.services.answer(token, with: nil) }
        let sends = Array(bench.relay.services.sends.dropFirst(before))
        guard holds(answer, row, &names) else { return false }
        if row["required"]?.bool == false, answer.status != 200 { return sends.isEmpty }
        guard let listed = row["sends"]?.array else { return true }
        return same(sends, listed.map { names.value($0) })
    }

    private func payload(_ row: JSONValue) async throws -> Bool {
        let device = try #require(row["row"])
        var words = FallbackAlerts([:])
        if let alert = row["fallback_alert"], let bundle = device["ios_app_id"]?.string {
            words = FallbackAlerts([bundle: FallbackAlerts.Words(aps: [], alert: alert.serialized())])
        }
        let bench = try await bench("zap_payloads", row, fallbacks: words)
        return try await bench.relay.running { relay in
            let id = try await bench.register(anew: device, account: text(device, "push_account_id"))
            var item = try #require(row["item"]?.object)
            item["device_id"] = .number(JSONNumber(id))
            let body = JSONValue.object([
                "realm_uuid": .string(world.realm), "push_requests": .array([.object(item)])
            ])
            let answer = await relay.ask(
                "POST", ZulipPath.notify.rawValue, authorization: world.authorization,
                body: body.serialized())
            guard answer.status == 200, let send = relay.services.sends.first,
                let message = relay.services.sent.first?.message
            else { return false }
            if let listed = row["fcm"] { return fits(send, listed) }
            let listed = try #require(row["apns"])
            guard send["headers"]?.object?.count == 3, fits(send, listed.without("body_text")) else {
                return false
            }
            let text = Secret(try text(listed, "body_text").utf8)
            return message.apns.map { $0.payload == text } ?? false
        }
    }

    // MARK: the list of stale ids

    private func staleList(_ row: JSONValue) async throws -> Bool {
        let bench = try await bench("zap_stale_list", row)
        return try await bench.relay.running { _ in
            var names = BoundNames()
            let devices = row["devices"]?.object ?? JSONObject()
            for (name, device) in devices.members {
                names.bind("$" + name, try await bench.register(device), in: bench.realm(of: device))
            }
            for call in try #require(row["calls"]?.array) {
                if let again = call["register_again"]?.string {
                    let device = try #require(devices[again])
                    let account = try #require(device["push_account_id"]?.int64)
                    let id = try await bench.register(anew: device, account: String(account))
                    guard id == names["$" + again] else { return false }
                } else if try await !holds(stale: call, bench, names) {
                    return false
                }
            }
            return true
        }
    }

    private func holds(stale call: JSONValue, _ bench: AccountBench, _ names: BoundNames) async throws -> Bool
    {
        let expect = try #require(call["expect"])
        var query = (call["query"]?.object?.members ?? []).map { ($0.name, $0.value.string ?? "") }
        var seen: [Int64] = []
        var counts: [Int64] = []
        // Bound: more pages than any case has.
        for _ in 0..<100 {
            let answer = await bench.stale(call, query)
            guard Int64(answer.status) == expect["http"]?.int64 else { return false }
            if let code = expect["code"]?.string, answer.code != code { return false }
            if let name = expect["var_name"], answer.json["var_name"] != name { return false }
            guard answer.status == 200 else { return true }
            guard let page = answer.json["device_ids"]?.array?.compactMap(\.int64),
                page.count == answer.json["device_ids"]?.array?.count, let next = answer.json["next_after"]
            else { return false }
            seen += page
            counts.append(Int64(page.count))
            if let listed = expect["device_ids"]?.array {
                return next == expect["next_after"] && rises(seen)
                    && Set(seen) == Set(listed.compactMap { names.value($0).int64 })
            }
            guard !next.isNull else { break }
            query = query.filter { $0.0 != "after" } + [("after", String(try #require(next.int64)))]
        }
        let union = try #require(expect["union"]?.array).compactMap { names.value($0).int64 }
        return rises(seen) && Set(seen) == Set(union)
            && counts == expect["counts"]?.array?.compactMap(\.int64)
    }

    private func rises(_ ids: [Int64]) -> Bool { zip(ids, ids.dropFirst()).allSatisfy { $0 < $1 } }

    // MARK: comparing

    /// As the contract has it (`vectors/README.md`): of a row that does not bind, a 4xx is enough.
    private func holds(_ answer: TestAnswer, _ row: JSONValue, _ names: inout BoundNames) -> Bool {
        guard let expect = row["expect"], let status = expect["http"]?.int64 else { return false }
        if row["required"]?.bool == false, (400..<500).contains(answer.status) { return true }
        guard Int64(answer.status) == status else { return false }
        if let code = expect["code"], !code.isNull, answer.code != code.string { return false }
        for member in expect["absent"]?.array ?? [] {
            if answer.json[member.string ?? ""] != nil { return false }
        }
        let own: Set = ["http", "code", "msg", "note", "absent", "body"]
        let members = (expect.object?.members ?? []) + (expect["body"]?.object?.members ?? [])
        for (name, value) in members where !own.contains(name) || expect["body"]?[name] != nil {
            guard let told = answer.json[name] else { return false }
            switch name {
            case "device_id":
                guard let id = told.int64, id > 0, names.takes(value, id) else { return false }
            case "delete_device_ids":
                let ids = told.array?.compactMap(\.int64) ?? []
                let listed = value.array?.compactMap { names.value($0).int64 } ?? []
                if ids.count != told.array?.count || Set(ids).count != ids.count { return false }
                if listed.count != value.array?.count || Set(ids) != Set(listed) { return false }
            default: if told != value { return false }
            }
        }
        return true
    }
}

/// What a file writes as `$name`, and the number for which it stands since a relay's first answer.
struct BoundNames: Sendable {
    private var numbers: [String: Int64] = [:]
    private var realms: [String: String] = [:]
    /// Of the call whose answer is looked at.
    var realm = ""

    subscript(_ name: String) -> Int64? { numbers[name] }
    func realm(of name: String) -> String? { realms[name] }

    mutating func bind(_ name: String, _ number: Int64, in realm: String) {
        numbers[name] = number
        realms[name] = realm
    }

    /// Whether a name may stand for the number: it does already, or is new, and no other has that number
    /// unless a question mark says that it may be equal to another's.
    mutating func takes(_ value: JSONValue, _ number: Int64) -> Bool {
        guard let name = value.string, name.hasPrefix("$") else { return true }
        if let known = numbers[name] { return known == number }
        guard name.hasSuffix("?") || !numbers.values.contains(number) else { return false }
        bind(name, number, in: realm)
        return true
    }

    /// The value with numbers in place of names.
    func value(_ value: JSONValue) -> JSONValue {
        switch value {
        case .string(let text): return numbers[text].map { .number(JSONNumber($0)) } ?? value
        case .array(let elements): return .array(elements.map { self.value($0) })
        case .object(let object):
            var filled = JSONObject()
            for member in object.members { filled[member.name] = self.value(member.value) }
            return .object(filled)
        case .null, .bool, .number: return value
        }
    }

    /// The same in a text, where names stand with their quotes.
    func text(_ text: String) -> String {
        numbers.reduce(text) { $0.replacing("\"\($1.key)\"", with: String($1.value)) }
    }
}

/// A relay of the vectors' world whose devices register with account ids.
struct AccountBench: Sendable {
    let relay: TestRelay
    let world: VectorWorld

    func realm(of device: JSONValue) -> String { device["form"]?["realm_uuid"]?.string ?? world.realm }

    /// Registers a device by its form, and has it expire where it says so.
    ///
    /// - Returns: its number.
    func register(_ device: JSONValue) async throws -> Int64 {
        let server = world.servers[Int(device["server"]?.int64 ?? 0)]
        let fields = (device["form"]?.object?.members ?? []).map { ($0.name, $0.value.string ?? "") }
        let id = try await register(fields, server)
        if let expired = device["expired_at"]?.int64 {
            try await expire(id, at: UnixTime(seconds: expired), in: realm(of: device))
        }
        return id
    }

    /// The same with a registration that is made now.
    func register(anew device: JSONValue, account: String) async throws -> Int64 {
        let server = world.servers[Int(device["server"]?.int64 ?? 0)]
        let token = try #require(device["token"]?.string)
        let plain = RegistrationPlaintext(
            kind: try #require(device["token_kind"]?.string.flatMap(TokenKind.init(rawValue:))),
            token: Secret(token.utf8), timestamp: relay.world.now().seconds,
            appID: device["ios_app_id"]?.string)
        let ephemeral = try X25519KeyPair(privateKey: Secret(SHA256.hash(Array((token + account).utf8))))
        let sealed = try RegistrationBox.seal(plain, to: world.pairs[0].publicKey, ephemeral: ephemeral)
        return try await register(
            [
                ("realm_uuid", realm(of: device)), ("push_account_id", account),
                ("encrypted_push_registration", sealed.reveal { String(decoding: $0, as: UTF8.self) }),
                ("bouncer_public_key", Base64.text(world.pairs[0].publicKey))
            ], server)
    }

    private func register(
        _ fields: [(String, String)], _ server: VectorWorld.Server
    ) async throws -> Int64 {
        let answer = await relay.post(.register, fields, authorization: server.authorization)
        try #require(answer.status == 200)
        return try #require(answer.json["device_id"]?.int64)
    }

    func expire(_ number: Int64, at time: UnixTime, in realm: String) async throws {
        let key = try await relay.accountKey(try #require(UUIDText(realm)), number)
        try #require(try await relay.store.apply([.expire(key, at: time, if: .any)]) == .committed)
    }

    func isExpired(_ number: Int64, in realm: String) async throws -> Bool {
        let key = try await relay.accountKey(try #require(UUIDText(realm)), number)
        return try await relay.record(key).map { $0.state != .live } ?? true
    }

    /// Asks for a page of the stale list, as a call of the file says.
    func stale(_ call: JSONValue, _ query: [(String, String)]) async -> TestAnswer {
        let server = world.servers[Int(call["server"]?.int64 ?? 0)]
        let text = Form(query.map { ($0.0, Array($0.1.utf8)) }).encoded()
        return await relay.ask(
            call["method"]?.string ?? "GET", ZulipPath.staleDevices.rawValue,
            query: String(decoding: text, as: UTF8.self),
            authorization: call["auth"]?.bool == false ? nil : server.authorization)
    }
}

extension JSONValue {
    /// An object without one of its members.
    func without(_ name: String) -> JSONValue {
        var kept = JSONObject()
        for member in object?.members ?? [] where member.name != name { kept[member.name] = member.value }
        return .object(kept)
    }
}
