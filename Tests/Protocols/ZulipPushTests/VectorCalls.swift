import Delivery
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// The sections that ask a relay.
extension ZulipVectorRunner {
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
        guard let expected = row["stores"] else { return true }
        let id = try #require(fields.last { $0.0 == "token_id" }.flatMap { TokenID($0.1) })
        let text = try #require(fields.last { $0.0 == "realm_uuid" }).1
        let realm = try #require(UUIDText(text.lowercased()))
        guard let record = try await relay.record(relay.deviceKey(realm, id)),
            let registration = ZulipRegistration(body: record.body)
        else { return false }
        return registration.kind.rawValue == expected["token_kind"]?.string
            && registration.token == Secret((expected["token"]?.string ?? "").utf8)
            && registration.appID == expected["ios_app_id"]?.string
    }

    func notify(_ row: JSONValue) async throws -> Bool {
        let body = Array(try text(row, "request_body").utf8)
        let devices = row["registered"]?.array ?? []
        let expired = row["after"]?["expired"]?.array?.compactMap(\.string) ?? []
        let given = row["upstream"]?.object ?? JSONObject()
        return try await world.relay().running { relay in
            for device in devices { try await world.add(device, to: relay) }
            for (token, answer) in given.members {
                relay.services.answer(
                    token,
                    with: StubServices.Upstream(
                        status: Int(try #require(answer["status"]?.int64)),
                        word: answer["reason"]?.string ?? answer["errorCode"]?.string ?? "",
                        timestamp: answer["timestamp"]?.int64))
            }
            if row["sends"]?.array?.count ?? 0 > DeliveryLimits().addressWindow { relay.followSleeps() }
            let answer = await relay.ask(
                "POST", ZulipPath.notify.rawValue, authorization: world.authorization, body: body)
            guard holds(answer, row) else { return false }
            let seen = relay.services.sends
            // A stricter answer than the listed one sends nothing.
            if isStricter(answer, row) { return seen.isEmpty }
            if let sends = row["sends"]?.array, !same(seen, sends) { return false }
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
                    relay.deviceKey(realm, TokenID(token: Secret(token.utf8))))
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

    /// How many steps hold; they share one relay.
    func signUp(_ section: JSONValue) async throws -> Int {
        let relay = try await world.relay()
        var passed = 0
        for (index, step) in try #require(section["steps"]?.array).enumerated() {
            let isHeld = try await holds(relay.post(.signUp, form(step)), step)
            #expect(isHeld, "step \(index + 1): \(step["name"]?.string ?? "")")
            passed += isHeld ? 1 : 0
        }
        return passed
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
        where !["http", "code", "msg", "body", "note"].contains(name) {
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

    /// A row that does not bind was refused where the file has a success.
    private func isStricter(_ answer: TestAnswer, _ row: JSONValue) -> Bool {
        row["required"]?.bool == false && answer.status != 200 && row["expect"]?["http"]?.int64 == 200
    }

    private func ids(_ value: JSONValue?) -> Set<String>? {
        value?.array.map { Set($0.compactMap(\.string)) }
    }

    /// In any order, each as often as the other.
    func same(_ seen: [JSONValue], _ listed: [JSONValue]) -> Bool {
        guard seen.count == listed.count else { return false }
        guard let first = listed.first else { return true }
        // A row that lists little may fit several sends, so each that fits is tried.
        return seen.indices.contains { place in
            var rest = seen
            return fits(rest.remove(at: place), first) && same(rest, Array(listed.dropFirst()))
        }
    }

    /// Whether a send has what a row lists of it. Bodies are compared whole; of headers and members those
    /// that the row has, the headers' names in any case.
    func fits(_ send: JSONValue, _ listed: JSONValue) -> Bool {
        for name in ["service", "path", "body"] {
            if let value = listed[name], send[name] != value { return false }
        }
        return (listed["headers"]?.object?.members ?? []).allSatisfy { name, value in
            send["headers"]?[name.lowercased()] == value
        }
    }
}
