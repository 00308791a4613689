import HTTPIngress
import NextcloudPush
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

/// The Nextcloud relay over real sockets: where it answers, and what it says to what no server of good will
/// would send.
@Suite("Nextcloud over HTTP", .timeLimit(.minutes(30)))
struct NextcloudFaceTests {
    @Test("It answers below its name, below each app and client's word, and at the root where it may")
    func paths() async throws {
        try await RelayStage.running(RelayStage.nextcloud(bare: true)) { relay in
            let devices = [
                "/cloud/devices", "/devices", "/cloud/talk/devices", "/cloud/nextcloud-ios/devices",
                "//cloud/devices", "/cloud/files/devices?format=json", "/cloud//devices",
                "/cloud/talk//devices", "//cloud//talk///devices", "//devices"
            ]
            for (number, path) in devices.enumerated() {
                let device = try HandmadeDevice(#"["ada@cloud.example.org",\#(number)]"#)
                let answer = try await relay.post(path, device.form(HandmadeDevice.token()))
                #expect(answer.status == 200, "\(path)")
            }
            for path in [
                "/notifications", "/cloud/notifications", "/cloud/talk/notifications",
                "/cloud/talk//notifications"
            ] {
                let answer = try await relay.post(path, HandmadeDevice.batch(["no entry"]))
                #expect(answer.status == 200 && answer.failed == 1 && answer.unknown == [], "\(path)")
            }
        }
    }

    @Test("Beside its paths it says 404 in a sentence, by which an admin sees that the address is right")
    func beside() async throws {
        try await RelayStage.running(RelayStage.nextcloud(bare: true)) { relay in
            for path in ["/", "/cloud/", "/cloud/elsewhere/devices", "/cloud/devices/", "/cloud/x"] {
                let answer = try await relay.door().ask("GET", path)
                #expect(answer.status == 404, "\(path)")
                #expect(answer.text.hasPrefix("A push relay for Nextcloud."), "\(path)")
            }
            #expect(try await relay.door().ask("GET", "/elsewhere").status == 404)
        }
    }

    @Test("Without bare_path the root is nobody's")
    func noBarePath() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            let device = try HandmadeDevice()
            #expect(try await relay.post("/devices", device.form(HandmadeDevice.token())).status == 404)
            #expect(try await relay.post("/notifications", HandmadeDevice.batch([])).status == 404)
        }
    }

    @Test("A method that a path has not is a 405 that says which it has")
    func methods() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            let read = try await relay.door().ask("GET", "/cloud/devices")
            #expect(read.status == 405 && read.header("allow") == "POST, DELETE")
            let removed = try await relay.door().ask("DELETE", "/cloud/notifications")
            #expect(removed.status == 405 && removed.header("allow") == "POST")
        }
    }

    // MARK: Large bodies

    private static func head(_ length: Int, _ more: String = "") -> String {
        "POST /cloud/notifications HTTP/1.1\r\nHost: t\r\n"
            + "Content-Type: application/x-www-form-urlencoded\r\n\(more)Content-Length: \(length)\r\n\r\n"
    }

    @Test("A body of more than 16 MiB is a 413 by its head, and one for devices of more than 64 KiB too")
    func tooLarge() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            let port = try relay.door().port
            let stranger = try await Stranger.connect(to: port)
            stranger.send(Self.head(NextcloudLimits.notifyBodyBytes + 1))
            #expect(await stranger.status() == 413)
            stranger.close()
            let device = try HandmadeDevice()
            let long = device.form(String(repeating: "a", count: NextcloudLimits.deviceBodyBytes))
            let answer = try await relay.post("/cloud/devices", long)
            #expect(answer.status == 413 && !answer.speaksOfEntries)
        }
    }

    @Test("A sender that waits to be told to go on is told so, or refused before it has sent a byte")
    func expectation() async throws {
        try await RelayStage.with(RelayStage.nextcloud(", subscription_keys: keys"), prepare: Self.keys) {
            stage in
            try await stage.run { relay in
                let port = try relay.door().port
                let body =
                    HandmadeDevice.batch(["none"]).reveal { String(decoding: $0, as: UTF8.self) } + "&a=b"
                let expecting = "Expect: 100-continue\r\n"
                let welcome = try await Stranger.connect(to: port)
                welcome.send(
                    Self.head(body.utf8.count, expecting + "X-Nextcloud-Subscription-Key: \(Self.key)\r\n"))
                #expect(await welcome.status() == 100)
                welcome.send(body)
                try await asked(for: "an answer behind it") { welcome.text.contains("HTTP/1.1 200") }
                welcome.close()
                let unknown = try await Stranger.connect(to: port)
                unknown.send(Self.head(4 << 20, expecting))
                #expect(await unknown.status() == 401)
                unknown.close()
                let long = try await Stranger.connect(to: port)
                long.send(
                    Self.head(
                        NextcloudLimits.notifyBodyBytes + 1,
                        expecting + "X-Nextcloud-Subscription-Key: \(Self.key)\r\n"))
                #expect(await long.status() == 413)
                long.close()
            }
        }
    }

    @Test("One client holds a quarter of a listener's bytes: of two bodies of 16 MiB the second hears 429")
    func clientShare() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            let port = try relay.door().port
            let length = NextcloudLimits.notifyBodyBytes
            let client = "X-Forwarded-For: 203.0.113.7\r\n"
            // All but a byte, so that it is held.
            let first = try await Stranger.connect(to: port)
            first.send(Self.head(length, client))
            first.send(String(repeating: "a", count: length - 1))
            try await asked(for: "a body that is held") { try await relay.bufferedBytes() >= length - 1 }
            let second = try await Stranger.connect(to: port)
            second.send(Self.head(length, client))
            second.send(String(repeating: "a", count: 1 << 20))
            #expect(await second.status() == 429)
            #expect(!second.text.contains("unknown") && !second.text.contains("failed"))
            #expect(second.text.lowercased().contains("retry-after: 1"))
            // Another client has a share of its own, and the first is served.
            let other = try await relay.post(
                "/cloud/notifications", HandmadeDevice.batch(["no entry"]),
                headers: [("X-Forwarded-For", Secret("203.0.113.8".utf8))])
            #expect(other.status == 200)
            first.send("a")
            #expect(await first.status() == 400, "read to its end, and without any entry")
            for stranger in [first, second] { stranger.close() }
        }
    }

    @Test("13,000 entries in one call are judged, and the relay's own loss wipes no server's registrations")
    func manyEntries() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            let device = try HandmadeDevice()
            let token = HandmadeDevice.token()
            #expect(try await relay.post("/cloud/devices", device.form(token)).status == 200)
            let block = Base64.text([UInt8](repeating: 7, count: 256))
            let entries = (0..<12_999).map { number in
                HandmadeDevice.entry(
                    Base64.text((0..<64).map { UInt8(truncatingIfNeeded: number >> ($0 % 16)) }),
                    hash: HandmadeDevice.hash(token), subject: block, signature: block)
            }
            let arrivals = relay.stage.apns.subscribe(token: token)
            // The good one stands behind all others.
            let body = HandmadeDevice.batch(entries + [try device.entry(token)])
            let answer = try await relay.post("/cloud/notifications", body)
            #expect(answer.status == 200 && answer.failed == 12_999)
            #expect(answer.unknown?.count == NextcloudLimits.unknownPerAnswer)
            _ = try await arrivals.next("the good one")
        }
    }

    @Test("Brackets encoded or not, indices twice or in no order: each entry counts once")
    func brackets() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            let device = try HandmadeDevice()
            let token = HandmadeDevice.token()
            #expect(try await relay.post("/cloud/devices", device.form(token)).status == 200)
            func value(_ entry: String) -> String {
                let form = Form([("x", Array(entry.utf8))]).encoded()
                return String(decoding: form.dropFirst(2), as: UTF8.self)
            }
            let entries = try (0..<4).map { _ in value(try device.entry(token)) }
            let body =
                "notifications[7]=\(entries[0])&notifications%5B2%5D=\(entries[1])"
                + "&notifications%5b2%5d=\(entries[2])&notifications[]=\(entries[3])&other=1"
            let answer = try await relay.post("/cloud/notifications", Secret(body.utf8))
            #expect(answer.status == 200 && answer.unknown == [])
            try await relay.drained()
            let delivered = relay.stage.apns.deliveries().count { $0.token == token }
            #expect((answer.failed ?? 0) == 0 && (3...4).contains(delivered))
        }
    }

    // MARK: Keys

    static let key = "ABCDE-FGHIJ-KLMNO-PQRST-12345"
    static func keys(_ folder: String) throws {
        try writeFile(
            folder + "/keys", Array("# of our server\n\(key)\nOTHER-OTHER-OTHER-OTHER-OTHER\n".utf8),
            replacing: true)
    }

    @Test("Where servers need a key, one without it or with two of them hears 401; devices need none")
    func subscriptions() async throws {
        try await RelayStage.with(RelayStage.nextcloud(", subscription_keys: keys"), prepare: Self.keys) {
            stage in
            try await stage.run { relay in
                let device = try HandmadeDevice()
                let token = HandmadeDevice.token()
                #expect(try await relay.post("/cloud/devices", device.form(token)).status == 200)
                let body = HandmadeDevice.batch([try device.entry(token)])
                let name = "X-Nextcloud-Subscription-Key"
                func ask(_ keys: [String]) async throws -> LocalCall.Answer {
                    try await relay.post(
                        "/cloud/notifications", body, headers: keys.map { (name, Secret($0.utf8)) })
                }
                for keys in [[], [""], ["ABCDE-FGHIJ-KLMNO-PQRST-12346"], [Self.key, Self.key]] {
                    let answer = try await ask(keys)
                    #expect(answer.status == 401 && !answer.speaksOfEntries)
                }
                #expect(stage.apns.counters.received == 0)
                let arrivals = stage.apns.subscribe(token: token)
                #expect(try await ask([Self.key]).failed == 0)
                _ = try await arrivals.next("a delivery")
                #expect(try await ask(["OTHER-OTHER-OTHER-OTHER-OTHER"]).status == 200)
            }
        }
    }
}

extension RunningRelay {
    /// Bytes of bodies at the public door.
    func bufferedBytes() async throws -> Int {

        relay.services.lazy.compactMap { $0 as? HTTPListener }.first { $0.name.text == "public" }?.load.bytes
            ?? 0
    }
}
