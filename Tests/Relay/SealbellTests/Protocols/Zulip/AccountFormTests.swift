import Primitives
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

/// A phone that registers with an account id, as the specification and servers of 11.x have it, written from
/// the sheet alone: no code of our device or origin takes part.
private struct AccountPhone {
    let kind: TokenKind
    let token: String
    let accountID: Int64
    /// Its own, to which content is sealed.
    let pair = X25519KeyPair.generate(.live)

    init(_ kind: TokenKind, _ accountID: Int64) {
        self.kind = kind
        token = DemoApp.token(kind)
        self.accountID = accountID
    }

    /// The form of `push/e2ee/register`. The blob is as the document writes it: a date, and no app.
    func form(realm: String, bouncerKey: String, age: Int64 = 0) throws -> [(String, String)] {
        let time = RFC3339Text.utc(World.live.now().seconds - age)
        let plain = #"{"token_kind":"\#(kind.rawValue)","token":"\#(token)","timestamp":"\#(time)"}"#
        let sealed = try SealedBox.seal(
            Secret(plain.utf8), to: try Base64.decode(bouncerKey), ephemeral: .generate(.live))
        return [
            ("realm_uuid", realm), ("push_account_id", String(accountID)),
            ("encrypted_push_registration", Base64.text(sealed)), ("bouncer_public_key", bouncerKey)
        ]
    }

    func seal(_ text: String) throws -> String {
        Base64.text(try SealedBox.seal(Secret(text.utf8), to: pair.publicKey, ephemeral: .generate(.live)))
    }

    /// What a push service brought, opened; the account id is a number at Apple's and a text at Google's.
    func open(_ delivery: Delivery) throws -> String? {
        let body = try JSONValue.parse(delivery.body)
        let fields = kind == .apns ? body : try #require(body["message"]?["data"])
        let id = kind == .apns ? fields["push_account_id"]?.int64.map(String.init) : nil
        try #require((id ?? fields["push_account_id"]?.string) == String(accountID))
        let content = try Base64.decode(try #require(fields["encrypted_content"]?.string))
        return try SealedBox.open(content, with: pair).reveal { String(decoding: $0, as: UTF8.self) }
    }
}

/// Writes what RFC 3339 asks for, by counting days.
private enum RFC3339Text {
    static func utc(_ seconds: Int64) -> String {
        var days = seconds / 86_400
        var year: Int64 = 1970
        func isLeap(_ year: Int64) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }
        while days >= (isLeap(year) ? 366 : 365) {
            days -= isLeap(year) ? 366 : 365
            year += 1
        }
        let lengths = [31, isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as [Int64]
        var month = 0
        while days >= lengths[month] {
            days -= lengths[month]
            month += 1
        }
        func two(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let time = seconds % 86_400
        return "\(year)-\(two(Int64(month) + 1))-\(two(days + 1))T\(two(time / 3_600)):"
            + "\(two(time / 60 % 60)):\(two(time % 60))Z"
    }
}

/// The account form over real sockets (docs/conformance/zulip.md).
@Suite("Zulip registrations with account ids, end to end", .timeLimit(.minutes(30)))
struct AccountFormTests {
    private func call(
        _ relay: RunningRelay, _ server: DemoServer, _ path: ZulipPath, _ fields: [(String, String)]
    ) async throws -> TestAnswer {
        let form = Form(fields.map { ($0.0, Array($0.1.utf8)) })
        return try await ask(relay, server, "POST", path.rawValue, Secret(form.encoded()))
    }

    private func ask(
        _ relay: RunningRelay, _ server: DemoServer, _ method: String, _ path: String, _ body: Secret?
    ) async throws -> TestAnswer {
        let headers = server.origin.analyticsStatus().headers.filter { $0.name == "Authorization" }
        let answer = try await relay.door().ask(method, path, headers: headers, body: body)
        let json = (try? JSONValue.parse(answer.body)) ?? .null  // Not every refusal is JSON.
        return TestAnswer(status: answer.status, body: answer.body, json: json, headers: answer.headers)
    }

    private func notify(
        _ relay: RunningRelay, _ server: DemoServer, _ items: [(id: Int64, content: String)],
        priority: String = "high"
    ) async throws -> TestAnswer {
        let list = items.map {
            #"{"device_id":\#($0.id),"encrypted_content":"\#($0.content)","priority":"\#(priority)"}"#
        }
        let body =
            #"{"realm_uuid":"\#(server.realm.uuid)","push_requests":[\#(list.joined(separator: ","))]}"#
        return try await ask(
            relay, server, "POST", ZulipPath.notify.rawValue, Secret(body.utf8))
    }

    @Test("A phone of each kind registers, is written to, is refused by its service, and comes back")
    func wholeWay() async throws {
        try await RelayStage.running { relay in
            let server = try await relay.server()
            let phones = [AccountPhone(.apns, 1 << 53 + 1), AccountPhone(.fcm, .min)]
            var ids: [Int64] = []
            for phone in phones {
                let form = try phone.form(realm: server.realm.uuid, bouncerKey: relay.bouncerKey)
                let answer = try await call(relay, server, .register, form)
                #expect(answer.status == 200)
                ids.append(try #require(answer.json["device_id"]?.int64))
            }
            let arrivals = [
                relay.stage.apns.subscribe(token: phones[0].token),
                relay.stage.fcm.subscribe(address: phones[1].token)
            ]
            let sent = try await notify(
                relay, server, [(ids[0], phones[0].seal("one")), (ids[1], phones[1].seal("two"))])
            #expect(sent.status == 200 && sent.apple == 1 && sent.android == 1)
            #expect(sent.json["delete_device_ids"]?.array?.isEmpty == true)
            for ((phone, arrival), text) in zip(zip(phones, arrivals), ["one", "two"]) {
                #expect(try phone.open(try await arrival.next("a delivery")) == text)
            }
            let none = try await ask(
                relay, server, "GET",
                ZulipPath.staleDevices.rawValue + "?realm_uuid=\(server.realm.uuid)", nil)
            #expect(none.status == 200 && none.json["device_ids"]?.array?.isEmpty == true)
            #expect(none.json["next_after"]?.isNull == true)
            try await relay.drained()
        }
    }

    @Test(
        "A phone that its service refuses is dead to its server, and the operator hears why; others are sent")
    func refused() async throws {
        try await RelayStage.running { relay in
            let person = try Operator(relay)
            let server = try await relay.server()
            let realm = server.realm.uuid
            let phones = [AccountPhone(.apns, 1), AccountPhone(.apns, 2)]
            var ids: [Int64] = []
            for phone in phones {
                let form = try phone.form(realm: realm, bouncerKey: relay.bouncerKey)
                let answer = try await call(relay, server, .register, form)
                ids.append(try #require(answer.json["device_id"]?.int64))
            }
            func why(_ id: Int64) async -> CommandRun {
                await person.run("why", "device", "--realm", realm, "--device-id", String(id))
            }
            #expect(await why(ids[0]).out.first?.hasPrefix("live           apns, org.acme.chat") == true)
            // The simulator learns of a phone with its first push.
            let first = try await notify(
                relay, server, [(ids[0], phones[0].seal("0")), (ids[1], phones[1].seal("0"))])
            #expect(first.apple == 2)
            relay.stage.apns.unregister(phones[0].token, since: World.live.now())
            let sent = try await notify(
                relay, server, [(ids[0], phones[0].seal("a")), (ids[1], phones[1].seal("b"))])
            #expect(sent.apple == 1)
            #expect(sent.json["delete_device_ids"]?.array?.compactMap(\.int64) == [ids[0]])
            let told = await why(ids[0])
            #expect(told.status == .done && told.out.first?.hasPrefix("expired") == true)
            #expect(!told.out.joined().contains(phones[0].token))
            #expect(await why(5).status == .failed)
            #expect(await why(ids[1]).status == .done)
            let both = await person.run(
                "why", "device", "--realm", realm, "--device-id", "5", "--token-id", "AAAAAAAAAAE=")
            #expect(both.status == .usage)
            let gone = await person.run(
                "forget", "device", "--realm", realm, "--device-id", String(ids[1]))
            #expect(gone.out == ["Forgotten: 1 device."])
            // It comes back by registering, with the same number.
            let again = try phones[1].form(realm: realm, bouncerKey: relay.bouncerKey)
            #expect(try await call(relay, server, .register, again).json["device_id"]?.int64 == ids[1])
            let all = await person.run("forget", "address", input: phones[1].token)
            #expect(all.out.first?.hasPrefix("Forgotten: 1 device") == true)
        }
    }

    @Test("What is refused is refused in the form of its call: an old date, a foreign realm, a wrong method")
    func faults() async throws {
        try await RelayStage.running { relay in
            let (server, other) = (try await relay.server(), try await relay.server("b.acme.example"))
            let phone = AccountPhone(.fcm, 7)
            let old = try phone.form(
                realm: server.realm.uuid, bouncerKey: relay.bouncerKey, age: 86_460)
            let expired = try await call(relay, server, .register, old)
            #expect(expired.status == 400 && expired.code == "REQUEST_EXPIRED")
            #expect(expired.json["error_code"]?.string == "request_expired")
            let foreign = try phone.form(realm: other.realm.uuid, bouncerKey: relay.bouncerKey)
            #expect(try await call(relay, server, .register, foreign).status == 403)
            let path = ZulipPath.staleDevices.rawValue + "?realm_uuid=\(server.realm.uuid)"
            #expect(try await ask(relay, server, "POST", path, Secret("".utf8)).status == 405)
            #expect(try await ask(relay, other, "GET", path, nil).status == 403)
            #expect(try await ask(relay, server, "GET", path + "&limit=0", nil).status == 400)
            #expect(try await relay.door().ask("GET", path, headers: [], body: nil).status == 401)
            #expect(try await ask(relay, server, "GET", "//" + path.dropFirst(), nil).status == 200)
        }
    }

    // MARK: bad input

    /// A registered phone, and what looks whether an answer is a refusal that changed nothing.
    private struct BadScene {
        let relay: RunningRelay
        let server: DemoServer
        let form: [(String, String)]
        let id: Int64
        let watch: WatchedEngine.Watch

        func check(_ answer: TestAnswer, _ what: String) {
            #expect((400..<500).contains(answer.status), "\(what): \(answer.status)")
            #expect(answer.json["result"]?.string == "error" && answer.code != nil, "\(what)")
            let written = watch.take().filter { !$0.hasPrefix("find") && !$0.hasPrefix("page") }
            #expect(written.isEmpty, "\(what): \(written)")
        }
    }

    private func withBadScene(_ body: @escaping (BadScene) async throws -> Void) async throws {
        let watch = WatchedEngine.Watch()
        try await RelayStage.running(engine: { WatchedEngine($0, watch) }) { relay in
            let server = try await relay.server()
            let phone = AccountPhone(.apns, 7)
            let form = try phone.form(realm: server.realm.uuid, bouncerKey: relay.bouncerKey)
            let registered = try await call(relay, server, .register, form)
            let id = try #require(registered.json["device_id"]?.int64)
            _ = watch.take()
            try await body(
                BadScene(relay: relay, server: server, form: form, id: id, watch: watch))
            // It serves on, as if nothing had been.
            #expect(relay.stage.apns.counters.received == 0)
            #expect(try await notify(relay, server, [(id, phone.seal("a"))]).apple == 1)
        }
    }

    @Test("Bad input of a registration is refused by one error, and leaves the store as it is")
    func badRegistrations() async throws {
        try await withBadScene { scene in
            let (relay, server) = (scene.relay, scene.server)
            for index in scene.form.indices {
                var less = scene.form
                let (name, value) = less.remove(at: index)
                scene.check(try await call(relay, server, .register, less), "without \(name)")
                for wrong in ["", "x", "%", value + "x", value + " ", "null", "[]"] {
                    let fields = scene.form + [(name, wrong)]
                    scene.check(
                        try await call(relay, server, .register, fields), "\(name) \(wrong.prefix(8))")
                }
            }
            for kind in ["fcm", "APNS", "", "apns "] {
                let fields = scene.form + [("token_kind", kind)]
                scene.check(try await call(relay, server, .register, fields), "kind \(kind)")
            }
        }
    }

    @Test("So is bad input of a notify call, whatever stands beside it, and of a question for stale ids")
    func badNotifications() async throws {
        try await withBadScene { scene in
            let id = String(scene.id)
            let whole = #"{"device_id":\#(id),"encrypted_content":"QUJD","priority":"high"}"#
            let head = #"{"realm_uuid":"\#(scene.server.realm.uuid)","push_requests":["#
            func check(_ body: String, _ what: String) async throws {
                let answer = try await ask(
                    scene.relay, scene.server, "POST", ZulipPath.notify.rawValue, Secret(body.utf8))
                scene.check(answer, what)
            }
            let content = #""QUJD""#
            for (old, new) in [
                (id, "null"), (id, #""\#(id)""#), (id, "\(id).0"), (id, "1e3"), (id, "9223372036854775808"),
                ("device_id", "device"), (content, "5"), (content, #""""#), (content, #""QUJ""#),
                (content, #""QUJ=""#), ("high", "normal"), (#""high""#, "1"), ("{", #"{"payload":{},"#),
                ("{", #"{"token_id":"AAAAAAAAAAE=","#)
            ] {
                let item = whole.replacing(old, with: new)
                try await check(head + whole + "," + item + "]}", new)
                try await check(head + item + "," + whole + "]}", new)
            }
            for length in stride(from: 0, to: whole.utf8.count, by: 7) {
                try await check(head + whole.prefix(length), "cut at \(length)")
            }
            let path = ZulipPath.staleDevices.rawValue
            let realm = "?realm_uuid=\(scene.server.realm.uuid)&"
            for query in [
                "", "?", "?realm_uuid=", "?realm_uuid=x", "?after=1", realm + "after=-1", realm + "after=",
                realm + "after=1e3", realm + "limit=0", realm + "limit=1001", realm + "limit=x",
                realm + "limit=%"
            ] {
                let answer = try await ask(scene.relay, scene.server, "GET", path + query, nil)
                scene.check(answer, query)
            }
        }
    }
}
