import Foundation
import NextcloudPush
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

/// What the parties cannot learn and cannot do (docs/privacy/nextcloud.md).
@Suite("Two users of a Nextcloud relay", .timeLimit(.minutes(30)))
struct NextcloudPrivacyTests {
    @Test("Push services get ciphertext, its signature and a fixed alert, and no name of user or server")
    func deliveries() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            let device = try HandmadeDevice()
            let (alert, voip) = (HandmadeDevice.token(), HandmadeDevice.token())
            let both = "\(alert) \(voip)"
            #expect(try await relay.post("/cloud/devices", device.form(both)).status == 200)
            let android = try HandmadeDevice(#"["ada@cloud.example.org",42]"#)
            let address = "demo-0123456789abcdef:APA91b\(HandmadeDevice.token())"
            let agent = "Mozilla/5.0 (Android) Nextcloud-Talk v20.1.0"
            #expect(
                try await relay.post("/cloud/devices", android.form(address), agent: agent).status == 200)
            let arrivals = [
                relay.stage.apns.subscribe(token: alert), relay.stage.apns.subscribe(token: voip),
                relay.stage.fcm.subscribe(address: address)
            ]
            let body = HandmadeDevice.batch([
                try device.entry(both), try device.entry(both, type: "voip"), try android.entry(address)
            ])
            #expect(try await relay.post("/cloud/notifications", body).failed == 0)
            let names =
                try [device, android].flatMap { one in
                    [
                        Canary("identifier", try Base64.decode(one.identifier)),
                        Canary("its signature", try Base64.decode(one.signature))
                    ]
                } + [
                    Canary("hash", try Hex.decode(Array(HandmadeDevice.hash(both).utf8))),
                    Canary("hash", try Hex.decode(Array(HandmadeDevice.hash(address).utf8))),
                    Canary("server", "cloud.example.org"),
                    Canary("key", device.user.publicKey.der.suffix(100))
                ]
            for (place, stream) in arrivals.enumerated() {
                let delivery = try await stream.next("a delivery")
                let json = try JSONValue.parse(delivery.body)
                let place = place == 2 ? try #require(json["message"]) : json
                let content = place["data"] ?? place
                let members = Set(content.object?.names ?? []).subtracting(["aps"])
                #expect(members == ["subject", "signature"])
                #expect(place["notification"] == nil, "data alone")
                for name in names { #expect(!name.isIn(Data(delivery.body)), "\(name.name)") }
                #expect(delivery.collapseID == nil)
            }
        }
    }

    @Test("Whoever guesses an identifier reaches the device with no key of his own, and takes nothing back")
    func guessing() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            let device = try HandmadeDevice()
            let token = HandmadeDevice.token()
            #expect(try await relay.post("/cloud/devices", device.form(token)).status == 200)
            // Its signature fits: anyone can sign anything.
            let attacker = try HandmadeDevice(device.preimage)
            #expect(attacker.identifier == device.identifier)
            let pushed = try await relay.post(
                "/cloud/notifications", HandmadeDevice.batch([try attacker.entry(token)]))
            #expect(pushed.status == 200 && pushed.failed == 1)
            #expect(pushed.unknown == [], "the server would delete the registration")
            let mine = attacker.form(HandmadeDevice.token())
            #expect(try await relay.post("/cloud/devices", mine).status == 409)
            let gone = try await relay.post("/cloud/devices", attacker.form(), method: "DELETE")
            #expect(gone.status == 403)
            #expect(relay.stage.apns.counters.received == 0)
            let arrivals = relay.stage.apns.subscribe(token: token)
            let body = HandmadeDevice.batch([try device.entry(token)])
            #expect(try await relay.post("/cloud/notifications", body).failed == 0)
            _ = try await arrivals.next("a push by the right key")
        }
    }

    @Test("One user's key pushes to no other user's device, in whatever call it stands")
    func otherUser() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            let (ada, grace) = (
                try HandmadeDevice(), try HandmadeDevice(#"["grace@cloud.example.org",7]"#)
            )
            let (hers, others) = (HandmadeDevice.token(), HandmadeDevice.token())
            #expect(try await relay.post("/cloud/devices", ada.form(hers)).status == 200)
            #expect(try await relay.post("/cloud/devices", grace.form(others)).status == 200)
            let subject = [UInt8](repeating: 9, count: 256)
            let signed = try grace.entry(others, subject: subject)
            let foreign = signed.replacing(grace.identifier, with: ada.identifier)
                .replacing(HandmadeDevice.hash(others), with: HandmadeDevice.hash(hers))
            let answer = try await relay.post(
                "/cloud/notifications", HandmadeDevice.batch([foreign, signed]))
            #expect(answer.failed == 1 && answer.unknown == [])
            try await relay.drained()
            #expect(relay.stage.apns.deliveries().map(\.token) == [others])
        }
    }
}
