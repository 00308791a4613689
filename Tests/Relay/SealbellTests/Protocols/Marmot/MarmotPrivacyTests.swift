import Foundation
import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import Testing
import WireFormats

@testable import RelayProgram

@Suite("What the parties around a notification server get", .timeLimit(.minutes(30)))
struct MarmotPrivacyTests {
    @Test(
        "Apple and Google get the same bytes for every wake, but for the device and the push's own name",
        arguments: ["", "mode: generic_alert", "mode: mutable_alert"])
    func pushServices(_ mode: String) async throws {
        // The same two devices are woken again and again.
        try await RelayStage.with(MarmotTests.text("wake_pause: 0\n    " + mode)) { stage in
            let (apple, google) = (try MarmotSender.apple(), try MarmotSender.google())
            var canaries: [Canary] = []
            try await stage.run { running in
                let sender = try MarmotSender(running)
                try await sender.ready(running)
                // Other groups, other senders, other formats, other sizes; both devices in each.
                for format in TokenFormat.allCases {
                    for decoys in [0, 9] {
                        var boxes = [
                            try sender.box(apple.target, format), try sender.box(google.target, format)
                        ]
                        for _ in 0..<decoys {
                            boxes.append(Secret(World.live.randomBytes(format.tokenBytes ?? 97)))
                        }
                        let author = Secp256k1KeyPair.generate(.live)
                        let (rumor, wrap) = try sender.trigger(boxes, format, author: author)
                        for (name, event) in [("rumor", rumor), ("wrap", wrap)] {
                            canaries += try Canary.hex("\(name)'s id", Hex.encode(event.id))
                            canaries += try Canary.hex("\(name)'s author", event.pubkey.hex)
                        }
                        for box in boxes {
                            canaries.append(Canary("ciphertext", box.reveal { Array($0.prefix(48)) }))
                        }
                        let (woken, other) = (
                            stage.apns.subscribe(token: apple.token),
                            stage.fcm.subscribe(address: google.token)
                        )
                        await sender.publish(wrap)
                        _ = try await woken.next("a delivery")
                        _ = try await other.next("a delivery")
                    }
                }
                canaries += try Canary.hex("the server's Nostr key", sender.server.hex)
            }
            let (apples, googles) = (stage.apns.deliveries(), stage.fcm.deliveries())
            #expect(apples.count == 8 && googles.count == 8)
            for deliveries in [apples, googles] {
                var rest = deliveries
                for index in rest.indices {
                    // What differs: the push's name, its place and time.
                    (rest[index].id, rest[index].number) = ("", 0)
                    rest[index].receivedAt = .distantPast
                    rest[index].expirationSeconds = nil
                }
                #expect(rest.allSatisfy { $0 == rest[0] }, "the same in every field and byte")
                #expect(Set(deliveries.map(\.id)).count == deliveries.count)
                for delivery in deliveries {
                    let words = [delivery.id, delivery.topic, delivery.token, delivery.collapseID ?? ""]
                    let bytes = delivery.body + Array(words.joined(separator: " ").utf8)
                    for canary in canaries where canary.isIn(.init(bytes)) {
                        Issue.record("\(canary.name) reaches a push service")
                    }
                    #expect(delivery.collapseID == "wake")
                }
            }
            // The name is made at the moment of the push, and tells nothing but that.
            let alert =
                #""alert":{"title":"New activity","body":"You have a new notification"},"sound":"default""#
            let expected =
                switch mode {
                case "": #"{"aps":{"content-available":1}}"#
                case "mode: generic_alert": #"{"aps":{\#(alert)}}"#
                default: #"{"aps":{\#(alert),"mutable-content":1}}"#
                }
            #expect(apples.first.map { String(decoding: $0.body, as: UTF8.self) } == expected)
            let body = googles.first.map { String(decoding: $0.body, as: UTF8.self) } ?? ""
            let message = try JSONValue.parse(Array(body.utf8))["message"]
            #expect(message?.object?.names.sorted() == ["android", "data", "token"])
            #expect(message?["data"]?.object?.names == ["content_available"])
            #expect(message?["token"]?.string == google.token)
        }
    }

    @Test("Relays hear a subscription and a relay list from the server, and nothing of any trigger")
    func relays() async throws {
        let instance = "marmot-silence"
        try await RelayStage.with(MarmotFloodTests.text(instance)) { stage in
            let nostr = stage.sandbox.nostr
            try await stage.run { running in
                let sender = try MarmotSender(running, instance)
                try await MarmotFloodTests.listening(running, instance, 1)
                try await running.until(
                    MarmotFloodTests.notes, ["instance": instance, "note": "list-accepted"], reaches: 1)
                let before = nostr.counters
                for format in TokenFormat.allCases {
                    let apple = try MarmotSender.apple()
                    let woken = stage.apns.subscribe(token: apple.token)
                    let boxes = [
                        try sender.box(apple.target, format),
                        Secret(World.live.randomBytes(format.tokenBytes ?? 97))
                    ]
                    let wrap = try sender.trigger(boxes, format).wrap
                    for event in [wrap, wrap, try sender.junk()] { nostr.inject(event) }
                    _ = try await woken.next("a delivery")
                }
                try await running.owesNothing(instance)
                let after = nostr.counters
                #expect(after.requests == before.requests && after.eventsReceived == before.eventsReceived)
                #expect(after.authentications == 0 && after.malformed == 0 && after.connections == 1)
            }
            #expect(nostr.counters.requests == 1 && nostr.counters.eventsReceived == 1)
            let said = nostr.events.filter { $0.kind != NostrKind.giftWrap }
            #expect(said.map(\.kind) == [NostrKind.relayList])
        }
    }
}
