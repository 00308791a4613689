import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

/// What servers of 12.x send that the protocol's own description does not show, over real sockets.
@Suite("A real Zulip server's habits", .timeLimit(.minutes(30)))
struct RealOriginTests {
    private func authorization(_ server: DemoServer) -> [(name: String, value: Secret)] {
        server.origin.analyticsStatus().headers.filter { $0.name == "Authorization" }
    }

    private func post(
        _ relay: RunningRelay, _ path: String, _ headers: [(name: String, value: Secret)], _ body: String,
        _ method: String = "POST"
    ) async throws -> LocalCall.Answer {
        try await relay.door().ask(method, path, headers: headers, body: Secret(body.utf8))
    }

    private func notify(_ server: DemoServer, _ phone: DemoApp, type: String = "alert", aps: String)
        -> String
    {
        #"{"realm_uuid":"\#(server.realm.uuid)","push_requests":[{"token_id":"\#(phone.tokenID.text)","#
            + #""http_headers":{"apns_priority":10,"apns_push_type":"\#(type)"},"payload":"#
            + #"{"push_key_id":7,"encrypted_data":"QUJD"\#(aps)}}]}"#
    }

    @Test("An iPhone rings: the sound that 12.x sends arrives at Apple, and further slashes lead there too")
    func sound() async throws {
        let path = ZulipPath.notify.rawValue
        let aps = #"{"mutable-content":1,"alert":{"title":"New notification"},"sound":"default"}"#
        try await RelayStage.running { relay in
            let (server, phone) = try await relay.join(.apns)
            let arrivals = relay.stage.apns.subscribe(token: phone.token)
            for path in [path, "/" + path, "///" + path] {
                let answer = try await post(
                    relay, path, authorization(server), notify(server, phone, aps: #","aps":"# + aps))
                #expect(answer.status == 200, "\(path): \(answer.text)")
            }
            let delivery = try await arrivals.next("a delivery to the phone")
            let arrived = try JSONValue.parse(delivery.body)
            #expect(try arrived["aps"] == JSONValue.parse(Array(aps.utf8)))
            let stranger = try await post(relay, "//api/v1/remotes/x", authorization(server), "{}")
            #expect(stranger.status == 404 && stranger.text.contains("\"result\":\"error\""))
            try await relay.drained()
        }
    }

    @Test("A leftover legacy row is told to be gone, and nothing of it stays or is said")
    func legacyRow() async throws {
        try await RelayStage.running { relay in
            let server = try await relay.server()
            let token = DemoApp.token(.fcm)
            let body =
                #"{"user_id":7,"apns_payload":{"alert":"see you"},"android_devices":["\#(token)"],"#
                + #""apple_devices":["AB12"]}"#
            let answer = try await post(
                relay, ZulipPath.legacyNotify.rawValue, authorization(server), body)
            #expect(answer.status == 200)
            let gone = try JSONValue.parse(answer.body)["deleted_devices"]
            #expect(gone?["android_devices"]?[0]?.string == token)
            #expect(gone?["apple_devices"]?[0]?.string == "AB12")
            for path in [ZulipPath.legacyUnregister, .legacyUnregisterAll] {
                let form = "user_id=7&token=\(token)&token_kind=2"
                #expect(try await post(relay, path.rawValue, authorization(server), form).status == 200)
            }
            for path in [ZulipPath.legacyRegister, .legacyTest] {
                let refused = try await post(relay, path.rawValue, authorization(server), body)
                #expect(refused.status == 400 && refused.text.contains("BAD_REQUEST"))
            }
            #expect(try await relay.owed() == 0)
            let metrics = try await relay.admin("/metrics").text
            #expect(metrics.contains(#"note="zulip.legacy-answered""#))
            for said in relay.stage.log.all + [metrics] {
                #expect(!said.contains(token) && !said.contains("see you"))
            }
        }
    }

    @Test("A rotated key is good across a restart, until the new one is used")
    func rotation() async throws {
        try await RelayStage.with { stage in
            let server = DemoServer()
            let newKey = String(repeating: "n", count: 64)
            func status(_ relay: RunningRelay, _ key: String) async throws -> Int {
                let text = Base64.text(Array("\(server.origin.id):\(key)".utf8))
                return try await relay.door().ask(
                    "GET", ZulipPath.analyticsStatus.rawValue,
                    headers: [("Authorization", Secret("Basic \(text)".utf8))]
                ).status
            }
            let oldKey = server.key.reveal { String(decoding: $0, as: UTF8.self) }
            try await stage.run { relay in
                try await server.join(relay)
                let form =
                    "zulip_org_id=\(server.origin.id)&zulip_org_key=\(oldKey)&hostname=\(server.host)"
                    + "&contact_email=ops%40acme.example&new_org_key=\(newKey)"
                #expect(try await post(relay, ZulipPath.signUp.rawValue, [], form).status == 200)
                #expect(try await status(relay, oldKey) == 200)
            }
            try await stage.run { relay in
                // The upload that the same run of the command makes.
                let upload = try await relay.ask(server.origin.analytics(realms: [server.realm]))
                #expect(upload.status == 200)
                #expect(try await status(relay, newKey) == 200)
                #expect(try await status(relay, oldKey) == 401)
            }
        }
    }

    @Test("A server that is set up anew has its realms at once, as it has its host name")
    func setUpAnew() async throws {
        try await RelayStage.running { relay in
            let (old, phone) = try await relay.join(.apns)
            let done = try await post(
                relay, ZulipPath.deactivate.rawValue, authorization(old), "{}")
            #expect(done.status == 200)
            var new = DemoServer(old.host)
            new.realm = old.realm
            try await new.join(relay)
            let answer = try await new.notify(DemoApp.message(1, "whose?"), [phone], relay)
            #expect(answer.status == 200 && answer.dead == [phone.tokenID.text])
            #expect(relay.stage.apns.counters.received == 0)
        }
    }

    @Test("A wrong method is a 405 as deployed: JSON that lists the others, the field, and no code")
    func methods() async throws {
        try await RelayStage.running { relay in
            for (path, method, allowed) in [
                (ZulipPath.analyticsStatus, "POST", ["GET", "HEAD"]), (.notify, "GET", ["POST"]),
                (.signUp, "PUT", ["POST"])
            ] {
                let answer = try await post(relay, path.rawValue, [], "{}", method)
                #expect(answer.status == 405)
                let list = allowed.map { "\"\($0)\"" }.joined(separator: ",")
                #expect(
                    answer.text
                        == #"{"result":"error","msg":"Method Not Allowed","allowed_methods":[\#(list)]}"#)
                let field = answer.headers.first { $0.name.lowercased() == "allow" }?.value
                #expect(field == allowed.joined(separator: ", "))
            }
        }
    }

    // MARK: keys of the configuration

    private static func text(voip: Bool) -> String {
        RelayStage.text.replacing(
            "environment: learn }", with: "environment: production, voip: \(voip) }"
        ).replacing(
            "    fcm: {", with: "    fallback: { title: Neue Nachricht, sound: ping.caf }\n    fcm: {")
    }

    @Test("An app's fallback is what its phones show where the server gives no aps")
    func fallback() async throws {
        try await RelayStage.running(Self.text(voip: false)) { relay in
            let (server, phone) = try await relay.join(.apns)
            let arrivals = relay.stage.apns.subscribe(token: phone.token)
            let answer = try await post(
                relay, ZulipPath.notify.rawValue, authorization(server), notify(server, phone, aps: ""))
            #expect(answer.status == 200)
            let delivery = try await arrivals.next("a delivery to the phone")
            let expected =
                #"{"mutable-content":1,"alert":{"title":"Neue Nachricht"},"sound":"ping.caf"}"#
            #expect(try JSONValue.parse(delivery.body)["aps"] == JSONValue.parse(Array(expected.utf8)))
            try await relay.drained()
        }
    }

    @Test(
        "A VoIP push goes out for an app with voip, and is dropped and counted for one without",
        arguments: [true, false])
    func voip(takes: Bool) async throws {
        try await RelayStage.with(Self.text(voip: takes)) { stage in
            stage.apns.turn { $0.learnsDevices = false }
            try await stage.run { relay in
                let server = try await relay.server()
                // Zulip's devices name the whole topic.
                let phone = try DemoApp(.apns, relay.bouncerKey, bundle: "org.acme.chat.voip")
                stage.apns.register(phone.token, as: APNsDevice(topics: ["org.acme.chat.voip"]))
                #expect(try await server.register(phone, relay).status == 200)
                let answer = try await post(
                    relay, ZulipPath.notify.rawValue, authorization(server),
                    notify(server, phone, type: "voip", aps: #","aps":{}"#))
                #expect(answer.status == 200)
                let json = try JSONValue.parse(answer.body)
                #expect(json["apple_successfully_sent_count"]?.int64 == (takes ? 1 : 0))
                #expect(json["delete_token_ids"]?.array?.isEmpty == true)
                try await relay.drained()
                #expect(stage.apns.counters.received == (takes ? 1 : 0))
            }
        }
    }

    @Test("With mx_lookup a mail domain that cannot be one signs nobody up; without it nobody is asked")
    func mailExchange() async throws {
        // RFC 2606: no name server knows a name below it.
        let mail = "ops@nothing.invalid"
        for asks in [true, false] {
            let text = RelayStage.text.replacing(
                "sign_up: open", with: "sign_up: open, mx_lookup: \(asks)")
            try await RelayStage.running(text) { relay in
                let server = DemoServer("chat.acme.example", mail: mail)
                let answer = try await relay.ask(server.origin.signUp(hostname: server.host, mail: mail))
                // 503 where this machine has no name server to ask.
                #expect(asks ? [400, 503].contains(answer.status) : answer.status == 200)
            }
        }
    }
}
