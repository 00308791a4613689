import Foundation
import NextcloudPush
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

/// Every request of the protocol with a canary in each field, right ones and wrong ones.
struct NextcloudCast {
    let apple: HandmadeDevice
    let google: HandmadeDevice
    /// An alert token and a VoIP token, and an address of FCM.
    let alert = HandmadeDevice.token()
    let voip = HandmadeDevice.token()
    let address = "cAnArY0123456789:APA91b\(HandmadeDevice.token())"
    private(set) var canaries: [Canary] = []
    private let stray = CanaryCast.word("stray")
    private let agent = CanaryCast.word("agent")
    private let client = "2001:db8:c0ff:ee00::beef"
    static let subscription = CanaryCast.word("subscription")

    init(cloud: String) throws {
        let (user, server) = (CanaryCast.word("user"), CanaryCast.word("server") + ".example.org")
        apple = try HandmadeDevice(#"["\#(user)@\#(server)",41]"#)
        google = try HandmadeDevice(#"["\#(user)@\#(server)",42]"#)
        for (name, text) in [
            ("user", user), ("server", server), ("FCM address", address), ("stray", stray), ("agent", agent),
            ("client", client), ("subscription key", Self.subscription)
        ] {
            canaries.append(Canary(name, text))
        }
        for (name, token) in [("alert token", alert), ("VoIP token", voip)] {
            canaries += try Canary.hex(name, token)
        }
        for token in [both, address] { canaries += try Canary.hex("token hash", HandmadeDevice.hash(token)) }
        for device in [apple, google] {
            canaries.append(Canary("identifier", try Base64.decode(device.identifier)))
            canaries.append(Canary("signature", Array(try Base64.decode(device.signature).prefix(60))))
            canaries.append(Canary("user key", Array(device.user.publicKey.der.suffix(120).prefix(60))))
        }
    }

    var both: String { "\(alert) \(voip)" }

    private var headers: [(name: String, value: Secret)] {
        [
            ("X-Forwarded-For", Secret(client.utf8)), ("X-\(stray)", Secret(stray.utf8)),
            ("Cookie", Secret("a=\(stray)".utf8)), ("Authorization", Secret("Bearer \(stray)".utf8)),
            ("X-Nextcloud-Subscription-Key", Secret(Self.subscription.utf8))
        ]
    }

    /// An entry whose ciphertext is a canary from now on.
    mutating func entry(_ device: HandmadeDevice, _ token: String, type: String = "alert") throws -> String {
        let subject = (0..<256).map { _ in UInt8.random(in: .min ... .max) }
        let entry = try device.entry(token, subject: subject, type: type)
        canaries.append(Canary("ciphertext", Array(subject.prefix(60))))
        let json = try JSONValue.parse(Array(entry.utf8))
        let signature = try Base64.decode(try #require(json["signature"]?.string))
        canaries.append(Canary("signature of a ciphertext", Array(signature.prefix(60))))
        return entry
    }

    func post(
        _ relay: RunningRelay, _ path: String, _ body: Secret, method: String = "POST",
        type: String = "application/x-www-form-urlencoded"
    ) async throws -> LocalCall.Answer {
        try await relay.door().ask(
            method, path,
            headers: headers + [
                ("Content-Type", Secret(type.utf8)),
                ("User-Agent", Secret("Mozilla/5.0 (iOS) Nextcloud-Talk v20.1.0 \(agent)".utf8))
            ], body: body)
    }

    /// Requests that are refused, with canaries in every place.
    func wrong(_ relay: RunningRelay) async throws {
        let form = apple.form(both).reveal { String(decoding: $0, as: UTF8.self) }
        let paths = [
            "/cloud/devices?\(stray)=\(stray)&http.useragent=\(agent)", "/cloud/\(stray)/devices",
            "/cloud/\(stray)", "/\(stray)"
        ]
        let bodies = [
            form + "&cloudId=\(stray)@\(stray).example.org", String(form.dropLast(form.count / 2)),
            form.replacing("pushToken", with: stray), "\(stray)=%", "{\"pushToken\":\"\(stray)\"",
            "notifications[0]=\(stray)", "notifications[\(stray)]=1", "{\"notifications\":[{\"\(stray)\":1}]}"
        ]
        for body in bodies {
            for path in paths + ["/cloud/notifications"] {
                for (method, type) in [
                    ("POST", "application/x-www-form-urlencoded"), ("POST", "application/json"),
                    ("DELETE", "text/\(stray)")
                ] {
                    let answer = try await post(relay, path, Secret(body.utf8), method: method, type: type)
                    for word in [stray, agent] { #expect(!answer.text.contains(word)) }
                }
            }
        }
    }
}

@Suite("What a Nextcloud relay was told is told to nobody", .timeLimit(.minutes(30)))
struct NextcloudCanaryTests {
    private static func said(_ relay: RunningRelay) async throws -> [Said] {
        let stranger = try HandmadeDevice(#"["stranger@cloud.example.org",1]"#)
        let refused = try await relay.post("/cloud/devices", stranger.form("(null)"))
        // But for the file of the keys that are looked for.
        return try await relay.said().filter { $0.place != "keys" }
            + [("a stranger's answer", Data(refused.body))]
    }

    private static func prepare(_ folder: String) throws {
        try writeFile(folder + "/keys", Array(NextcloudCast.subscription.utf8), replacing: true)
    }

    @Test("No canary of any request is in log, metrics, pages, answers of others or files")
    func operation() async throws {
        let text = RelayStage.nextcloud(", subscription_keys: keys")
        try await RelayStage.with(text, prepare: Self.prepare) { stage in
            // What is accepted stays owed, in the outbox.
            stage.apns.turn { $0.shutdownUntil = .distantFuture }
            stage.fcm.turn { $0.unavailableShare = 1 }
            try await stage.run { relay in
                let cloud = try #require(stage.sandbox.peer(NextcloudSandboxPeer.self))
                var cast = try NextcloudCast(cloud: cloud.authority)
                for form in [cast.apple.form(cast.both), cast.google.form(cast.address)] {
                    #expect(try await cast.post(relay, "/cloud/devices", form).status == 200)
                }
                let entries = try [
                    cast.entry(cast.apple, cast.both), cast.entry(cast.apple, cast.both, type: "voip"),
                    cast.entry(cast.google, cast.address, type: "background")
                ]
                let pushed = try await cast.post(relay, "/cloud/notifications", HandmadeDevice.batch(entries))
                #expect(pushed.failed == 0)
                // A second key, and the way of a proof.
                let second = try HandmadeDevice(cast.apple.preimage)
                let claim = second.form(cast.both, cloudID: "ada@\(cloud.authority)")
                #expect(try await cast.post(relay, "/cloud/devices", claim).status == 403)
                try await cast.wrong(relay)
                // One of those has unregistered the phone, and what was owed to it went along.
                let form = cast.apple.form(cast.both)
                #expect(try await cast.post(relay, "/cloud/devices", form).status == 200)
                let again = try await cast.post(relay, "/cloud/notifications", HandmadeDevice.batch(entries))
                #expect(again.failed == 0)
                // The call is owed for a minute, and a machine may take longer to get here.
                #expect(try await (2...3).contains(relay.owed()))
                try relay.writeRunFile()
                let said = try await Self.said(relay)
                #expect(said.contains { $0.place.hasSuffix("-wal") })
                // The search can find: the configuration's own words are there.
                let known = Canary("instance", "nextcloud.")
                #expect(said.contains { $0.place == "/metrics" && known.isIn($0.bytes) })
                cast.canaries.expectNone(in: said)
            }
        }
    }
}
