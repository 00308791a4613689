import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// What a leftover row of the plaintext protocol makes an origin ask (docs/conformance/zulip.md).
@Suite("Zulip legacy calls", .timeLimit(.minutes(30)))
struct LegacyTests {
    private func ask(_ bench: RealmRig, _ path: ZulipPath, _ body: String, _ key: String = RealmRig.key)
        async -> TestAnswer
    {
        await bench.relay.ask(
            "POST", path.rawValue, authorization: RealmRig.basic(RealmRig.server, key),
            body: Array(body.utf8))
    }

    /// As a server of 12.x writes it.
    private static func call(_ android: String, _ apple: String, realm: String = RealmRig.realm) -> String {
        #"{"user_uuid":"6cd9af5f-9a52-4e2c-b9a2-b63a3a3a4aeb","user_id":7,"realm_uuid":"\#(realm)","#
            + #""apns_payload":{"alert":{"title":"Iago","body":"see you"},"custom":{"zulip":{"x":[1]}}},"#
            + #""gcm_payload":{"event":"message","content":"see you","time":1.5},"#
            + #""gcm_options":{"priority":"high"},"android_devices":\#(android),"apple_devices":\#(apple)}"#
    }

    @Test("Every token of a notify is told to be gone, as it came, and nothing is sent, kept or counted")
    func notify() async throws {
        let bench = try await RealmRig()
        let android = #"["cB7_x:APA91b","ż\u017c\/\ud83d\ude00","","cB7_x:APA91b"]"#
        let before = try await bench.relay.deviceRevisions()
        bench.relay.store.forget()
        let answer = await ask(bench, .legacyNotify, Self.call(android, #"["AB12"]"#))
        #expect(answer.status == 200)
        let expected = #"""
            {"result":"success","msg":"","total_android_devices":0,"total_apple_devices":0,"deleted_devices":
            {"android_devices":["cB7_x:APA91b","żż/😀","","cB7_x:APA91b"],"apple_devices":["AB12"]}}
            """#
        #expect(try answer.json == JSONValue.parse(Array(expected.utf8)))
        #expect(bench.relay.services.sends.isEmpty)
        #expect(try await bench.relay.deviceRevisions() == before)
        // Only who asks is looked up.
        #expect(bench.relay.store.lookups == [["zulip-main/server"]])
    }

    @Test("What is missing is empty, what is unknown is passed over, and of doubles the last counts")
    func shapes() async throws {
        let bench = try await RealmRig()
        for (body, android, apple) in [
            ("{}", 0, 0), (#"{"apple_devices":["a"]}"#, 0, 1),
            (#"{"android_devices":["a","b"],"x":{}}"#, 2, 0),
            (#"{"apple_devices":["a"],"apple_devices":[]}"#, 0, 0),
            (Self.call("[]", "[]", realm: "of nobody"), 0, 0)
        ] {
            let answer = await ask(bench, .legacyNotify, body)
            #expect(answer.status == 200)
            #expect(answer.json["total_android_devices"]?.int64 == 0)
            #expect(answer.json["deleted_devices"]?["android_devices"]?.array?.count == android)
            #expect(answer.json["deleted_devices"]?["apple_devices"]?.array?.count == apple)
        }
    }

    @Test(
        "A body of another form is a 400",
        arguments: [
            "", "[]", "null", #"{"android_devices":null}"#, #"{"android_devices":"a"}"#,
            #"{"apple_devices":[1]}"#, #"{"apple_devices":[["a"]]}"#, #"{"apple_devices":["a"]"#,
            #"{"apple_devices":["\ud800"]}"#, #"{"apple_devices":["a"]}x"#
        ])
    func wrong(body: String) async throws {
        let bench = try await RealmRig()
        let answer = await ask(bench, .legacyNotify, body)
        #expect(answer.status == 400 && answer.code == "BAD_REQUEST")
        #expect(answer.json["msg"]?.string?.contains("\"") == false)
    }

    @Test("Tokens are bounded in number and length, the body in bytes")
    func bounds() async throws {
        let bench = try await RealmRig()
        func list(_ count: Int, _ length: Int = 1) -> String {
            let token = "\"" + String(repeating: "a", count: length) + "\""
            return "[" + Array(repeating: token, count: count).joined(separator: ",") + "]"
        }
        let most = await ask(bench, .legacyNotify, Self.call(list(1_000), list(1_000)))
        #expect(most.json["deleted_devices"]?["apple_devices"]?.array?.count == 1_000)
        #expect(await ask(bench, .legacyNotify, Self.call(list(1_001), "[]")).status == 400)
        #expect(await ask(bench, .legacyNotify, Self.call("[]", list(1_001))).status == 400)
        #expect(await ask(bench, .legacyNotify, Self.call(list(1, 4_096), "[]")).status == 200)
        #expect(await ask(bench, .legacyNotify, Self.call(list(1, 24_577), "[]")).status == 400)
        let padding = String(repeating: " ", count: ZulipLimits.notifyBodyBytes)
        #expect(await ask(bench, .legacyNotify, "{\(padding)}").status == 400)
    }

    @Test("Unregistering succeeds, one token or all; whoever is not known is told so first")
    func unregister() async throws {
        let bench = try await RealmRig()
        let one = "server_uuid=x&realm_uuid=y&user_uuid=z&user_id=7&token=AB12&token_kind=1"
        for (path, body) in [
            (ZulipPath.legacyUnregister, one), (.legacyUnregisterAll, "user_id=7"),
            (.legacyUnregister, "%zz"),
            (.legacyUnregisterAll, ""), (.legacyNotify, #"{"apple_devices":["AB12"]}"#)
        ] {
            let answer = await ask(bench, path, body)
            #expect(answer.status == 200 && answer.json["result"]?.string == "success")
            let stranger = await ask(bench, path, body, String(repeating: "x", count: 64))
            #expect(stranger.status == 401 && stranger.json["deleted_devices"] == nil)
            #expect(await bench.relay.ask("POST", path.rawValue, body: Array(body.utf8)).status == 401)
            #expect(await bench.relay.ask("GET", path.rawValue).status == 405)
        }
    }
}
