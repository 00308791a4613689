import NextcloudPush
import PushModel
import PushTesting
import Testing
import WireFormats

@Suite("Registering at the Nextcloud relay", .timeLimit(.minutes(30)))
struct NextcloudRegisteringTests {
    private let alice = PeerUser.alice
    private let stranger = PeerUser.stranger

    @Test("A registration pins the key, and keeps both tokens apart, the call token under the pin's pad")
    func rows() async throws {
        let rig = try await NextcloudRelayRig.make()
        let device = alice.device(41)
        #expect(await rig.register(device).status == 200)
        let pin = try #require(try await rig.pin(device.identifier))
        #expect(pin.keyDER == alice.key.publicKey.der && pin.app == NextcloudRelayRig.talk)
        #expect(pin.tokenHash == TokenHash(of: Secret(PeerDevice.both.utf8)))
        let alert = try #require(try await rig.record(rig.keys.alert(device.identifier)))
        #expect(NextcloudTarget(body: alert.body)?.isFor(PeerDevice.alertToken) == true)
        let voip = try #require(try await rig.record(rig.keys.voip(device.identifier)))
        let stored = try #require(NextcloudTarget(body: voip.body))
        #expect(!stored.isFor(PeerDevice.voipToken), "no token in clear without its pin")
        #expect(stored.token.count == PeerDevice.voipToken.utf8.count)
    }

    @Test("A renewed token takes the place of the old one, and a device without a call token loses it")
    func renewed() async throws {
        let rig = try await NextcloudRelayRig.make()
        let device = alice.device(41)
        await rig.register(device)
        let other = String(repeating: "C3", count: 32)
        #expect(await rig.register(device, token: other).status == 200)
        let alert = try #require(try await rig.record(rig.keys.alert(device.identifier)))
        #expect(NextcloudTarget(body: alert.body)?.isFor(other) == true)
        #expect(try await rig.record(rig.keys.voip(device.identifier)) == nil)
    }

    @Test("Another key for a known identifier is a conflict: the rows stay as they are, each is counted")
    func conflict() async throws {
        let rig = try await NextcloudRelayRig.make()
        let (device, forged) = (alice.device(41), stranger.device(41))
        #expect(device.identifier == forged.identifier)
        await rig.register(device)
        let before = try await rig.revisions()
        for _ in 0..<3 {
            #expect(await rig.register(forged, token: String(repeating: "D4", count: 32)).status == 409)
            rig.pass(.seconds(50))
        }
        #expect(try await rig.revisions() == before)
        #expect(rig.notes.value.count { $0 == NoteCode("nextcloud.key-conflict") } == 3)
    }

    @Test(
        "A conflict is settled by the instance alone: it names the key, and the identifier is that user's",
        arguments: [
            (answer: 200, key: "new", cloudID: "alice@cloud.example.org", status: 200),
            (200, "new", "alice@https://cloud.example.org/", 200),
            (200, "old", "alice@cloud.example.org", 403),
            (404, "new", "alice@cloud.example.org", 403), (500, "new", "alice@cloud.example.org", 409),
            (429, "new", "alice@cloud.example.org", 409), (400, "new", "alice@cloud.example.org", 403),
            (302, "new", "alice@cloud.example.org", 403), (200, "none", "alice@cloud.example.org", 403),
            (200, "new", "alice@other.example.org", 403), (200, "new", "alice@http://cloud.example.org", 403),
            (200, "new", "no-server", 400), (200, "new", "alice@cloud.example.org?x=y", 400),
            (200, "new", "", 409)
        ])
    func proof(_ row: (answer: Int, key: String, cloudID: String, status: Int)) async throws {
        let keys = ["new": PeerUser.bob.key.publicKey.pem, "old": alice.key.publicKey.pem, "none": "no key"]
        let text = try #require(keys[row.key])
        let body = JSONValue.object([
            "ocs": .object(["data": .object(["public": .string(text)]), "meta": .object([:])])
        ])
        let web = ScriptedWeb([
            .success(WebAnswer(row.answer, String(decoding: body.serialized(), as: UTF8.self)))
        ])
        var policy = NextcloudPolicy()
        policy.appPasswords = 100
        let rig = try await NextcloudRelayRig.make(policy: policy, web: web)
        await rig.register(alice.device(41))
        // The instance was set up anew: Alice's key is another one, which here is Bob's.
        let device = PeerUser.bob.device(41)
        let answer = await rig.register(device, [("cloudId", row.cloudID)])
        #expect(answer.status == row.status)
        let pinned = try await rig.pin(device.identifier)?.keyDER
        #expect((pinned == PeerUser.bob.key.publicKey.der) == (row.status == 200))
        for request in web.requests.value {
            #expect(request.publicAddressesOnly && request.deadline == .seconds(5))
            #expect(request.answerLimitBytes == 64 << 10 && request.url.hasPrefix("https://"))
            #expect(request.headers.contains { $0.name == "OCS-APIRequest" && $0.value == "true" })
        }
    }

    @Test("With an account elsewhere nobody takes a guessed identifier, whatever their own instance says")
    func takeOver() async throws {
        let body = JSONValue.object([
            "ocs": .object(["data": .object(["public": .string(stranger.key.publicKey.pem)])])
        ])
        let web = ScriptedWeb { (_) throws(WebError) in
            WebAnswer(200, String(decoding: body.serialized(), as: UTF8.self))
        }
        var policy = NextcloudPolicy()
        policy.appPasswords = 5_000
        let rig = try await NextcloudRelayRig.make(policy: policy, web: web)
        let device = alice.device(41)
        await rig.register(device)
        let forged = stranger.device(41)
        #expect(await rig.register(forged, [("cloudId", "mallory@evil.example.org")]).status == 403)
        #expect(try await rig.pin(device.identifier)?.keyDER == alice.key.publicKey.der)
    }

    @Test("The user id is asked for alone, percent-encoded, and split off at the last @")
    func proofURL() {
        let rows = [
            ("alice@cloud.example.org", "https://cloud.example.org/ocs/v2.php/identityproof/key/alice"),
            ("a@b@cloud:8443/nc/", "https://cloud:8443/nc/ocs/v2.php/identityproof/key/a%40b"),
            ("jürgen/x@https://c.example", "https://c.example/ocs/v2.php/identityproof/key/j%C3%BCrgen%2Fx"),
            ("a@CLOUD.example/Sub", "https://cloud.example/Sub/ocs/v2.php/identityproof/key/a")
        ]
        for (text, url) in rows {
            #expect(CloudID(Secret(text.utf8))?.proofURL == url + "?format=json")
        }
        let none = [
            "", "@host", "alice@", "alice", "a@ftp://h", "a@h?q", "a@h#f", "a@user:p@", "a@h/\u{1}", "a@h h",
            "a@h\\x", String(repeating: "a", count: 600) + "@h"
        ]
        for text in none { #expect(CloudID(Secret(text.utf8)) == nil, "\(text)") }
    }

    @Test("An instance is known by its host in any case of letters, and by its path as it is written")
    func provenServer() throws {
        let proven = NextcloudPolicy(provenServers: ["Cloud.example.org/Nextcloud"]).provenServers
        for (text, isProven) in [
            ("alice@cloud.example.org/Nextcloud", true), ("alice@CLOUD.example.org/Nextcloud/", true),
            ("alice@cloud.example.org.:0443/Nextcloud", true), ("alice@cloud.example.org:/Nextcloud", true),
            ("alice@cloud.example.org/nextcloud", false), ("alice@cloud.example.org", false),
            ("alice@cloud.example.org:8443/Nextcloud", false), ("alice@cloud.example.org:0/Nextcloud", false),
            ("alice@[2001:db8::443]/Nextcloud", false)
        ] {
            let id = try #require(CloudID(Secret(text.utf8)))
            #expect(proven.contains(id.server) == isProven, "\(text)")
        }
    }

    @Test("One user's proof is asked for once at a time, and the tolls of user and instance are charged")
    func singleFlight() async throws {
        let gate = Noted(false)
        let web = ScriptedWeb([], gate: { await gate.until(for: "the gate") { $0 } })
        let rig = try await NextcloudRelayRig.make(web: web)
        await rig.register(alice.device(41))
        let device = PeerUser.bob.device(41)
        let cloudID = [("cloudId", "alice@cloud.example.org")]
        async let first = rig.register(device, cloudID)
        await web.requests.until(for: "the first request") { $0.count == 1 }
        async let second = rig.register(device, cloudID)
        await rig.tolls.until(for: "the second call") {
            $0.count { $0.allowance.name == "proofs-source" } == 2
        }
        gate.set(true)
        #expect(await [first.status, second.status] == [409, 409])
        let names = Set(rig.tolls.value.map(\.allowance.name))
        #expect(names.isSuperset(of: ["device", "proofs", "proofs-instance", "proofs-user"]))
        #expect(web.requests.value.count == 1)
    }

    @Test(
        "However a cloud id is spelled, its user has one share of a source; another user or host has its own")
    func oneShare() async throws {
        let web = ScriptedWeb { (_) throws(WebError) in throw WebError(.unreachable) }
        let rig = try await NextcloudRelayRig.make(web: web)
        await rig.register(alice.device(41))
        let device = PeerUser.bob.device(41)
        func payer(_ cloudID: String) async -> Payer? {
            // A source has few proofs, and words of instances stand for a while.
            rig.pass(.seconds(12))
            await rig.register(device, [("cloudId", cloudID)], from: 2)
            return rig.tolls.value.last { $0.allowance.name == "proofs-user" }?.payer
        }
        let first = await payer("alice@cloud.example.org")
        #expect(first != nil)
        for spelling in [
            "ALICE@Cloud.Example.org", "alice@cloud.example.org.", "alice@cloud.example.org:443",
            "alice@https://cloud.example.org:0443/", "alice@cloud.example.org./nextcloud/./index.php"
        ] {
            #expect(await payer(spelling) == first, "\(spelling)")
        }
        // Two at once and one each half minute; what is refused asks nobody.
        #expect(web.requests.value.count == 4)
        for other in ["alic@cloud.example.org", "alice@cloud.example.com", "alice@cloud.example.org:8443"] {
            #expect(await payer(other) != first, "\(other)")
        }
    }

    /// An instance that says whose key Alice's is.
    private static var aliceIsConfirmed: ScriptedWeb {
        let body = JSONValue.object([
            "ocs": .object(["data": .object(["public": .string(PeerUser.alice.key.publicKey.pem)])])
        ])
        return ScriptedWeb { (_) throws(WebError) in
            WebAnswer(200, String(decoding: body.serialized(), as: UTF8.self))
        }
    }

    @Test("Where its token speaks for it, a device takes another key; a stranger with that key does not")
    func newKeyByToken() async throws {
        let policy = NextcloudPolicy(newKey: .byToken)
        let rig = try await NextcloudRelayRig.make(policy: policy)
        let (first, second) = (alice.device(41), stranger.device(41))
        #expect(first.identifier == second.identifier)
        await rig.register(first)
        #expect(await rig.register(second, token: PeerDevice.alertToken).status == 409, "another token")
        #expect(await rig.register(first).status == 200, "and its own key still stands")
        #expect(await rig.register(second).status == 200, "the one that is registered")
        #expect(await rig.unregister(first).status == 403)
        #expect(await rig.unregister(second).status == 200)
        // Where first registrations are proved, the token alone proves nothing.
        let proving = NextcloudPolicy(newKey: .byToken, provenServers: ["cloud.example.org"])
        let strict = try await NextcloudRelayRig.make(policy: proving, web: Self.aliceIsConfirmed)
        let cloudID = [("cloudId", "alice@cloud.example.org")]
        #expect(await strict.register(first, cloudID).status == 200)
        #expect(await strict.register(second).status == 409)
    }

    @Test("Where some instances alone are admitted, a first registration needs their word")
    func proven() async throws {
        let web = Self.aliceIsConfirmed
        let rig = try await NextcloudRelayRig.make(
            policy: NextcloudPolicy(provenServers: ["Cloud.example.org"]), web: web)
        let device = alice.device(41)
        #expect(await rig.register(device).status == 409)
        #expect(await rig.register(device, [("cloudId", "alice@other.example.org")]).status == 403)
        #expect(await rig.register(device, [("cloudId", "alice@http://cloud.example.org")]).status == 403)
        #expect(web.requests.value.isEmpty)
        #expect(try await rig.pin(device.identifier) == nil)
        #expect(await rig.register(device, [("cloudId", "alice@cloud.example.org")]).status == 200)
        #expect(await rig.register(device).status == 200, "it is known now")
    }

    @Test("Removing a device takes its rows, and only its own key can do it")
    func removal() async throws {
        let rig = try await NextcloudRelayRig.make()
        let device = alice.device(41)
        await rig.register(device)
        #expect(await rig.unregister(stranger.device(41)).status == 403)
        var badlySigned = stranger.device(41)
        badlySigned = PeerDevice(
            identifier: device.identifier, signature: badlySigned.signature, publicKey: device.publicKey,
            user: alice)
        #expect(await rig.unregister(badlySigned).status == 403)
        #expect(try await rig.revisions().count == 3)
        #expect(await rig.unregister(device).status == 200)
        #expect(try await rig.revisions().isEmpty)
        #expect(await rig.unregister(device).status == 403)
        let lenient = try await NextcloudRelayRig.make(policy: NextcloudPolicy(missingDelete: .success))
        #expect(await lenient.unregister(device).status == 200)
    }

    @Test(
        "Malformed tokens, endpoints and words that are not known are refused, and nothing is kept"
    )
    func tokens() async throws {
        let rig = try await NextcloudRelayRig.make()
        let device = alice.device(41)
        let bad = [
            String(repeating: "f", count: 5_000), "abc\u{0}def", "line\nend", "t\u{7F}", "tökén",
            "https://push.example.org/UP?token=x", "two words", PeerDevice.both + " " + PeerDevice.alertToken,
            PeerDevice.alertToken + "  " + PeerDevice.voipToken
        ]
        for token in bad { #expect(await rig.register(device, token: token).status == 400, "\(token)") }
        let more = [
            [("pushProvider", "huawei")], [("pushEnvironment", "test")], [("voipToken", "xyz")],
            [("voipToken", PeerDevice.voipToken)]
        ]
        for fields in more { #expect(await rig.register(device, fields).status == 400) }
        #expect(try await rig.revisions().isEmpty)
        #expect(await rig.register(device, token: String(repeating: "f", count: 4_096)).status == 200)
    }

    @Test("A registration may name provider, environment and call token")
    func extensions() async throws {
        let rig = try await NextcloudRelayRig.make()
        let device = alice.device(41)
        let more = [
            ("pushProvider", "apns"), ("pushEnvironment", "production"), ("voipToken", PeerDevice.voipToken)
        ]
        try await rig.running { rig in
            #expect(await rig.register(device, token: PeerDevice.alertToken, more).status == 200)
            let entry = device.entry(1, token: PeerDevice.alertToken, type: "voip")
            #expect(await rig.notify([entry]).failed == 0)
            await rig.services.sent(atLeast: 1)
            let sent = try #require(rig.services.sent.first?.message.apns)
            #expect(sent.environment == .production && sent.pushType == .voip)
            #expect(sent.token == APNsMessage.canonical(Secret(PeerDevice.voipToken.utf8)))
        }
        await rig.register(device, [("pushEnvironment", "development")])
        let alert = try #require(try await rig.record(rig.keys.alert(device.identifier)))
        #expect(NextcloudTarget(body: alert.body)?.environment == .sandbox)
    }

    @Test("An app is found by path, User-Agent and token, in this order, or the device is refused")
    func routing() async throws {
        let rig = try await NextcloudRelayRig.make()
        let (apns, fcm) = (PeerDevice.alertToken, "fcm:token")
        let android = "Mozilla/5.0 (Android) Nextcloud-android/3.31.0"
        let rows: [(path: String, agent: String?, token: String, app: ConfiguredName?, status: Int)] = [
            ("/acme-files/devices", PeerDevice.talk, apns, NextcloudRelayRig.files, 200),
            ("/nextcloud-talk/devices", android, fcm, NextcloudRelayRig.talk, 200),
            ("/devices", PeerDevice.talk, apns, NextcloudRelayRig.talk, 200),
            ("/devices", android, fcm, NextcloudRelayRig.files, 200),
            ("/devices", nil, PeerDevice.both, NextcloudRelayRig.talk, 200),
            ("/devices", nil, apns, nil, 400),
            ("/devices", "curl/8", fcm, nil, 400), ("/acme-mail/devices", PeerDevice.talk, apns, nil, 404)
        ]
        for (number, row) in rows.enumerated() {
            let device = alice.device(100 + number)
            let answer = await rig.register(device, token: row.token, userAgent: row.agent, path: row.path)
            #expect(answer.status == row.status, "row \(number)")
            #expect(try await rig.pin(device.identifier)?.app == row.app, "row \(number)")
        }
    }

    @Test("The form's http.useragent tells the app where the head names no client of the instance")
    func agentInForm() async throws {
        let rig = try await NextcloudRelayRig.make()
        let android = "Mozilla/5.0 (Android) Nextcloud-android/3.31.0"
        let library = "Jakarta Commons-HttpClient/3.1"
        let long = android + String(repeating: " ", count: NextcloudLimits.userAgentBytes)
        let rows: [(agent: String?, field: String, path: String, app: ConfiguredName?)] = [
            (library, android, "/devices", NextcloudRelayRig.files),
            (nil, android, "/devices", NextcloudRelayRig.files),
            (PeerDevice.talk, android, "/devices", NextcloudRelayRig.talk),
            (android, PeerDevice.talk, "/devices", NextcloudRelayRig.files),
            (library, android, "/acme-talk/devices", NextcloudRelayRig.talk),
            (library, "curl/8", "/devices", nil), (library, "", "/devices", nil),
            (library, long, "/devices", nil)
        ]
        for (number, row) in rows.enumerated() {
            let device = alice.device(120 + number)
            let answer = await rig.register(
                device, token: "fcm:token", [("http.useragent", row.field)], userAgent: row.agent,
                path: row.path)
            #expect(answer.status == (row.app == nil ? 400 : 200), "row \(number)")
            #expect(try await rig.pin(device.identifier)?.app == row.app, "row \(number)")
        }
        // The head's own word on calls stands where the field names nobody that is known.
        let old = alice.device(140)
        await rig.register(
            old, [("http.useragent", "curl/8")], userAgent: "Mozilla/5.0 (iOS) Else/1",
            path: "/acme-talk/devices")
        #expect(try await rig.record(rig.keys.voip(old.identifier)) == nil)
    }

    @Test("A field of JSON that is no text tells of no client, and is no fault of the registration")
    func agentOfWrongType() async throws {
        let rig = try await NextcloudRelayRig.make()
        for (number, value) in ["7", "null", #"["Nextcloud-android"]"#].enumerated() {
            let device = alice.device(150 + number)
            var members = JSONObject()
            for field in device.fields("fcm:token") { members[field.0] = .string(field.1) }
            let text = String(decoding: JSONValue.object(members).serialized(), as: UTF8.self)
            let body = Array((text.dropLast() + #","http.useragent":\#(value)}"#).utf8)
            let answer = await rig.ask(
                "POST", "/acme-files/devices", contentType: "application/json", body: body)
            #expect(answer.status == 200, "\(value)")
        }
    }

    @Test("An iOS build without Strict VoIP gets no VoIP push, nor does an app without PushKit")
    func alertOnly() async throws {
        let rig = try await NextcloudRelayRig.make()
        let old = alice.device(1)
        await rig.register(old, userAgent: "Mozilla/5.0 (iOS) Nextcloud-Talk v8.0.0")
        let files = alice.device(2)
        await rig.register(files, userAgent: "Mozilla/5.0 (iOS) Nextcloud-iOS/6.6.1  (Strict VoIP)")
        for device in [old, files] {
            #expect(try await rig.record(rig.keys.alert(device.identifier)) != nil)
            #expect(try await rig.record(rig.keys.voip(device.identifier)) == nil)
        }
    }

    @Test("A device that registers too often waits, and a stranger uses up nobody's share")
    func often() async throws {
        let rig = try await NextcloudRelayRig.make()
        let (device, forged) = (alice.device(41), stranger.device(41))
        await rig.register(device)
        for _ in 0..<20 { await rig.register(forged) }
        for _ in 0..<9 { #expect(await rig.register(device).status == 200) }
        let refused = await rig.register(device)
        #expect(refused.status == 429 && refused.unknown == nil && refused.failed == nil)
    }

    @Test("One source's registrations are counted, whoever they are for")
    func source() async throws {
        let rig = try await NextcloudRelayRig.make()
        // Badly signed, so that nothing is asked.
        let device = alice.device(1)
        let body = PeerDevice(
            identifier: device.identifier, signature: alice.device(2).signature, publicKey: device.publicKey,
            user: alice
        ).body()
        var answers: [Int] = []
        for _ in 0..<601 { answers.append(await rig.ask("DELETE", "/devices", body: body).status) }
        #expect(answers.last == 429 && answers.count(where: { $0 == 403 }) == 600)
        #expect(await rig.ask("DELETE", "/devices", body: body, from: 2).status == 403)
    }
}
