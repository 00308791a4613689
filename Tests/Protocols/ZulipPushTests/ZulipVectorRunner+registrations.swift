import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// The sections of what an origin keeps of its users' registrations.
extension ZulipVectorRunner {
    // MARK: v12

    /// How many steps hold; they share a user.
    func clientRegister(_ section: JSONValue) throws -> Int {
        var bench = OriginBench(realm: world.realm)
        var device: Int64?
        var passed = 0
        for (index, step) in try #require(section["steps"]?.array).enumerated() {
            var seen = try bench.tick(now)
            var fields = try form(step["form"])
            let path = OriginPath(rawValue: step["path"]?.string ?? OriginPath.register.rawValue)
            if path == .register, let device, !fields.contains(where: { $0.0 == "device_id" }) {
                fields.insert(("device_id", String(device)), at: 0)
            }
            try bench.ask(try #require(path), fields, of: "a", now, &seen)
            device = device ?? seen.deviceID
            var isHeld = try holdsAnswer(seen, step)
            switch step["bouncer"] {
            case nil: isHeld = isHeld && seen.calls.isEmpty
            case .string("ok"):
                try bench.answer(Self.success(), now, &seen)
            case .string: isHeld = isHeld && seen.calls.isEmpty
            case let refusal?: try bench.answer(Self.refusal(refusal), now, &seen)
            }
            let id = JSONValue.number(JSONNumber(device ?? 0))
            let events = (step["events"]?.array ?? []).map { $0.replacing("device_id", "$device", by: id) }
            isHeld = isHeld && seen.events.map(\.event) == events
            #expect(isHeld, "step \(index + 1): \(step["name"]?.string ?? "")")
            passed += isHeld ? 1 : 0
        }
        let state = try bench.state(.v12, of: "a")
        #expect(state[String(device ?? 0)] == section["final_device"])
        return passed
    }

    // MARK: v11

    /// How many steps hold; they share a user.
    func clientRegisterV11(_ section: JSONValue) throws -> Int {
        var bench = OriginBench(realm: world.realm)
        var passed = 0
        for (index, step) in try #require(section["steps"]?.array).enumerated() {
            var seen = try bench.tick(now)
            if step["form"] != nil {
                try bench.ask(.register, try form(step["form"]), of: "a", now, &seen)
            }
            if let answer = step["bouncer"], answer.object != nil {
                let id = answer["device_id"]?.int64
                try bench.answer(id.map { Self.success($0) } ?? Self.refusal(answer), now, &seen)
            }
            if let dead = step["notify_answer"]?["delete_device_ids"]?.array {
                try bench.dead(dead.compactMap(\.int64), now, &seen)
            }
            let isHeld =
                try holdsAnswer(seen, step) && seen.events.map(\.event) == step["events"]?.array
                && bench.state(.v11, of: "a") == step["map"]
            #expect(isHeld, "step \(index + 1): \(step["name"]?.string ?? "")")
            passed += isHeld ? 1 : 0
        }
        return passed
    }

    // MARK: the specification's own

    func registrationSequence(_ sequence: JSONValue) throws -> Bool {
        var bench = OriginBench(realm: world.realm)
        var isHeld = true
        for (index, step) in try #require(sequence["steps"]?.array).enumerated() {
            let at = now + .seconds(try #require(step["at"]?.int64))
            var seen = try bench.tick(at)
            try carryOut(try #require(step["do"]?.object?.members.first), at, &bench, &seen)
            let isThis = try holds(seen, try #require(step["expect"]), bench)
            #expect(isThis, "step \(index + 1)")
            isHeld = isHeld && isThis
        }
        return isHeld
    }

    private func carryOut(
        _ action: (name: String, value: JSONValue), _ now: UnixTime, _ bench: inout OriginBench,
        _ seen: inout OriginBench.Seen
    ) throws {
        switch action.name {
        case "client_register", "client_forget":
            let path: OriginPath = action.name == "client_forget" ? .forget : .register
            let user = try text(action.value, "user")
            try bench.ask(path, try form(action.value["form"]), of: user, now, &seen)
        case "relay_answers": try bench.answer(Self.answer(action.value), now, &seen)
        case "relay_answers_again":
            let call = Int(try #require(action.value["call"]?.int64))
            try bench.answer(call: call, Self.answer(action.value), now, &seen)
        case "notify_answer":
            let ids = action.value["delete_device_ids"]?.array?.compactMap(\.int64) ?? []
            try bench.dead(ids, now, &seen)
        case "wait": break
        default: Issue.record("unknown: \(action.name)")
        }
    }

    private func holds(
        _ seen: OriginBench.Seen, _ expect: JSONValue, _ bench: OriginBench
    ) throws -> Bool {
        if let answer = expect["answer"] {
            guard seen.answer?.status == answer["http"]?.int64.map(Int.init),
                answer["body"] == nil || seen.answer?.body == answer["body"]
            else { return false }
        }
        let events = seen.events.map {
            JSONValue.object(["user": .string($0.user), "event": $0.event])
        }
        guard expect["events"]?.array ?? [] == events else { return false }
        if let calls = expect["relay_calls"]?.array, calls != seen.calls { return false }
        guard seen.alerts == expect["alerts"]?.array?.compactMap(\.string) ?? [] else { return false }
        for (user, map) in expect["map"]?.object?.members ?? [] {
            guard try bench.state(.zap, of: user) == map else { return false }
        }
        if let record = expect["record"], !holds(record, bench["a"]) { return false }
        guard let range = expect["retry_in_s"]?.array?.compactMap(\.double), range.count == 2 else {
            return true
        }
        guard let wait = seen.retryIn else { return false }
        return wait >= .seconds(range[0]) && wait <= .seconds(range[1])
    }

    /// Members of the one record that the user has; null: there is none.
    private func holds(_ expected: JSONValue, _ user: ZulipRegistrations) -> Bool {
        guard let members = expected.object?.members else { return user.accounts.isEmpty }
        guard user.accounts.count == 1, let row = user.accounts.values.first else { return false }
        let item = row.registration.flatMap { user.queue[$0] }
        var shown = JSONObject()
        shown["bouncer_device_id"] = row.deviceID.map { .number(JSONNumber($0)) } ?? .null
        shown["encrypted_push_registration"] =
            item.map { item in
                .string(item.registration.sealed.reveal { String(decoding: $0, as: UTF8.self) })
            } ?? .null
        shown["bouncer_public_key"] = item.map { .string($0.registration.bouncerKey) } ?? .null
        shown["token_kind"] = .string(row.kind.rawValue)
        if case .zap(let key) = row.key { shown["push_public_key"] = .string(key.base64) }
        return members.allSatisfy { shown[$0.name] == $0.value }
    }

    /// A refusal changes nothing, before and behind a registration that is taken.
    func registrationRefusal(_ row: JSONValue) throws -> Bool {
        var bench = OriginBench(realm: world.realm)
        for isEmpty in [true, false] {
            if !isEmpty {
                var seen = OriginBench.Seen()
                let good = json["zap_push_account_ids"]?["sequences"]?[0]?["steps"]?[0]?["do"]
                let call = try #require(good?["client_register"])
                try bench.ask(.register, try form(call["form"]), of: "a", now, &seen)
                guard seen.calls.count == 1 else { return false }
            }
            let before = try (bench.state(.zap, of: "a"), bench["a"].queue.count)
            var seen = OriginBench.Seen()
            try bench.ask(.register, try form(row["form"]), of: "a", now, &seen)
            guard try holdsAnswer(seen, row), seen.events.isEmpty, seen.calls.isEmpty,
                try bench.state(.zap, of: "a") == before.0, bench["a"].queue.count == before.1
            else { return false }
        }
        return true
    }

    // MARK: the stale list

    /// The daily job of `zap_stale_list.origin`: records before, answers, what is left.
    func staleListRun(_ row: JSONValue) throws -> Bool {
        var random = SeededRandom(seed: 5)
        var bench = OriginBench(realm: world.realm)
        for record in row["records"]?.array ?? [] { bench[try text(record, "user")] = try user(record) }
        var run = StaleListRun(realm: world.realm)
        var seen = OriginBench.Seen()
        var queries: [JSONValue] = []
        var next: Duration?
        for answer in row["answers"]?.array ?? [] {
            guard run.isUnderWay else { return false }
            queries.append(Self.query(run.call(by: bench.origin)))
            let step = run.take(Self.answer(answer), now: now, using: &random)
            try bench.dead(step.ids, realm: run.realm, now, &seen)
            next = step.nextRun
        }
        guard !run.isUnderWay, let next else { return false }
        if let expected = row["queries"]?.array, queries != expected { return false }
        let range = row["next_in_s"]?.array?.compactMap(\.int64) ?? [86_400, 90_000]
        guard next >= .seconds(range[0]), next <= .seconds(range[1]) else { return false }
        let left = bench.users.filter { !$0.value.accounts.isEmpty }.keys
        guard Set(left) == Set(row["left"]?.array?.compactMap(\.string) ?? []) else { return false }
        let events = Set(seen.events.map { JSONValue.object(["user": .string($0.user), "event": $0.event]) })
        return events == Set(row["events"]?.array ?? []) && events.count == seen.events.count
    }

    private func user(_ record: JSONValue) throws -> ZulipRegistrations {
        let id = try #require(record["push_account_id"]?.int64)
        let recipient = try PushPublicKey(
            base64: text(try #require(json["keys"]?["zap_device"]), "public_key"))
        let item: UInt64? = record["registration_queued"]?.bool == true ? 1 : nil
        let row = ZulipAccountRow(
            id: id, kind: .fcm, key: .zap(recipient), deviceID: record["bouncer_device_id"]?.int64,
            confirmedAt: now - .seconds(1), registration: item)
        let queue = item.map { item in
            ZulipQueueItem(
                id: item, subject: .account(id),
                registration: SealedRegistration(
                    .account(id), kind: .fcm, bouncerKey: "k", sealed: Secret("b".utf8)),
                calledAt: now, nextTry: now)
        }
        return ZulipRegistrations(
            realm: try text(record, "realm"), accounts: [row], queue: queue.map { [$0] } ?? [])
    }

    private static func query(_ call: HTTPCall) -> JSONValue {
        let query = call.url.split(separator: "?", maxSplits: 1).last.map { Array($0.utf8) } ?? []
        var object = JSONObject()
        // The library wrote it.
        for field in (try? Form.parse(query))?.fields ?? [] {
            object[field.name] = .string(String(decoding: field.value, as: UTF8.self))
        }
        return .object(object)
    }

    // MARK: what server and realm require

    /// Of `zap_settings.server`: `cases` with part `server`, and `changes`.
    func requirement(_ row: JSONValue, part: String) throws -> Bool {
        guard part == "server" else {
            let (old, new) = try (requirement(row["before"]), requirement(row["after"]))
            let event = try new.event(after: old).map { try JSONValue.parse($0.json()) }
            return event ?? .null == row["event"]
        }
        let both = try requirement(.array([row["server_requires"] ?? .null, row["realm_requires"] ?? .null]))
        let mayUseLegacy = ZulipOrigin.mayUseLegacy(
            serverRequires: both.serverRequires, realmRequires: both.realmRequires)
        guard both.isInForce == row["realm_require_e2ee_push_notifications"]?.bool,
            mayUseLegacy == row["library_may_send_plaintext"]?.bool
        else { return false }
        for path in [OriginPath.legacyAPNs, .legacyFCM] {
            do throws(OriginRefusal) {
                _ = try OriginRequest(path, body: Secret("token=ab".utf8))
                return false
            } catch {
                guard Int64(error.status) == row["legacy_registration"]?["http"]?.int64,
                    error.code == row["legacy_registration"]?["code"]?.string
                else { return false }
            }
        }
        return true
    }

    private func requirement(_ pair: JSONValue?) throws -> EncryptionRequirement {
        let flags = pair?.array?.compactMap(\.bool) ?? []
        try #require(flags.count == 2)
        return EncryptionRequirement(serverRequires: flags[0], realmRequires: flags[1])
    }

    // MARK: parts

    private func form(_ value: JSONValue?) throws -> [(String, String)] {
        try (value?.object?.members ?? []).map { ($0.name, try #require($0.value.string)) }
    }

    private func holdsAnswer(_ seen: OriginBench.Seen, _ row: JSONValue) throws -> Bool {
        guard let expect = row["expect"] else { return true }
        return (expect.object?.members ?? []).allSatisfy { name, value in
            switch name {
            case "http": seen.answer?.status == value.int64.map(Int.init)
            case "msg", "note": true
            case "device_id": seen.deviceID != nil && seen.answer?.body[name]?.int64 == seen.deviceID
            default: seen.answer?.body[name] == value
            }
        }
    }

    private static func success(_ device: Int64? = nil) -> CallAnswer {
        let id = device.map { #","device_id":\#($0)"# } ?? ""
        return CallAnswer(status: 200, body: Secret((#"{"result":"success","msg":""\#(id)}"#).utf8))
    }

    private static func refusal(_ row: JSONValue) -> CallAnswer {
        let body = #"{"result":"error","msg":"","code":"\#(row["code"]?.string ?? "")"}"#
        return CallAnswer(status: row["http"]?.int64.map(Int.init) ?? 400, body: Secret(body.utf8))
    }
}

extension JSONValue {
    /// An object with another value of a member, where it is this text.
    fileprivate func replacing(_ name: String, _ text: String, by value: JSONValue) -> JSONValue {
        guard var object, object[name]?.string == text else { return self }
        object[name] = value
        return .object(object)
    }
}
