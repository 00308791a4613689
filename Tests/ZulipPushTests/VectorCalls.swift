import PushModel
import Testing
import WireFormats
import ZulipPush

/// The sections that ask a relay.
extension VectorRunner {
    func register(_ row: JSONValue) async throws -> Bool {
        let fields = try form(row)
        return try await world.relay().running { relay in
            let before = try await relay.deviceRevisions()
            let answer = await relay.post(.register, fields, authorization: world.authorization)
            guard holds(answer, row) else { return false }
            guard answer.status == 200 else { return try await relay.deviceRevisions() == before }
            return try await stores(row, fields, relay)
        }
    }

    private func stores(
        _ row: JSONValue, _ fields: [(String, String)], _ relay: TestRelay
    ) async throws -> Bool {
        let expected = try #require(row["stores"])
        let id = try #require(fields.first { $0.0 == "token_id" }.flatMap { TokenID($0.1) })
        let realm = try #require(UUIDText(world.realm))
        guard let record = try await relay.record(relay.keys.device(realm, id)),
            let registration = ZulipRegistration(body: record.body)
        else { return false }
        return registration.kind.rawValue == expected["token_kind"]?.string
            && registration.token == Secret((expected["token"]?.string ?? "").utf8)
            && registration.appID == expected["ios_app_id"]?.string
    }

    func notify(_ row: JSONValue) async throws -> Bool {
        let body = Array(try text(row, "request_body").utf8)
        let devices = try #require(row["registered"]?.array)
        let expired = row["after"]?["expired"]?.array?.compactMap(\.string) ?? []
        let given = try #require(row["upstream"]?.object)
        return try await world.relay().running { relay in
            for device in devices { try await world.add(device, to: relay) }
            for (token, answer) in given.members {
                relay.services.answer(
                    token,
                    with: StubServices.Upstream(
                        status: Int(try #require(answer["status"]?.int64)),
                        word: answer["reason"]?.string ?? answer["errorCode"]?.string ?? ""))
            }
            let answer = await relay.ask(
                "POST", ZulipPath.notify.rawValue, authorization: world.authorization, body: body)
            let sends = try #require(row["sends"]?.array)
            guard holds(answer, row), same(relay.services.sends, sends) else { return false }
            return try await isExpired(devices, expired, relay)
        }
    }

    /// Exactly the listed ids are expired; those that were so before stay so.
    private func isExpired(
        _ devices: [JSONValue], _ listed: [String], _ relay: TestRelay
    ) async throws -> Bool {
        for device in devices {
            guard let token = device["token"]?.string,
                let realm = UUIDText(device["realm"]?.string ?? world.realm),
                let record = try await relay.record(
                    relay.keys.device(realm, TokenID(token: Secret(token.utf8))))
            else { return false }
            let isListed = listed.contains(TokenID(token: Secret(token.utf8)).text)
            let wasExpired = device["expired"]?.bool == true
            if (record.state != .live) != (isListed || wasExpired) { return false }
        }
        return true
    }

    func auth(_ row: JSONValue) async throws -> Bool {
        let relay = try await world.relay()
        let answer = await relay.ask(
            "GET", ZulipPath.analyticsStatus.rawValue, authorization: row["authorization"]?.string)
        return holds(answer, row)
    }

    /// The steps share one relay.
    func signUp(_ section: JSONValue) async throws -> (passed: Int, total: Int) {
        let steps = try #require(section["steps"]?.array)
        let relay = try await TestRelay(now: now, pairs: world.pairs)
        var passed = 0
        for step in steps {
            let answer = await relay.post(.signUp, try form(step))
            if holds(answer, step) {
                passed += 1
            } else {
                VectorFile.say("  differs: \(step["name"]?.string ?? "")")
            }
        }
        return (passed, steps.count)
    }

    // MARK: comparing

    private func form(_ row: JSONValue) throws -> [(String, String)] {
        try #require(row["form"]?.object).members.map { ($0.name, try #require($0.value.string)) }
    }

    /// `required: true` and absent: exactly. `required: false`: never a 5xx; an expected 4xx may be any 4xx,
    /// an expected 200 may be a 4xx.
    private func holds(_ answer: TestAnswer, _ row: JSONValue) -> Bool {
        guard let expect = row["expect"], let status = expect["http"]?.int64.map(Int.init) else {
            return false
        }
        if row["required"]?.bool == false, (400..<500).contains(answer.status) { return true }
        guard answer.status == status else { return false }
        if let code = expect["code"], !code.isNull, answer.code != code.string { return false }
        for (name, value) in expect.object?.members ?? []
        where !["http", "code", "msg", "body"].contains(name) {
            if answer.json[name] != value { return false }
        }
        guard let body = expect["body"]?.object else { return true }
        for (name, value) in body.members {
            if name == "delete_token_ids" {
                if ids(answer.json[name]) != ids(value) { return false }
            } else if answer.json[name] != value {
                return false
            }
        }
        return true
    }

    private func ids(_ value: JSONValue?) -> Set<String>? {
        value?.array.map { Set($0.compactMap(\.string)) }
    }

    /// In any order, each as often as the other.
    private func same(_ left: [JSONValue], _ right: [JSONValue]) -> Bool {
        guard left.count == right.count else { return false }
        var rest = right
        for value in left {
            guard let place = rest.firstIndex(of: value) else { return false }
            rest.remove(at: place)
        }
        return true
    }
}
