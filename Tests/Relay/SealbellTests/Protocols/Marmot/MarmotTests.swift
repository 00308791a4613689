import EventLoops
import Foundation
import MarmotPush
import NIOPosix
import NostrIngress
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import Testing
import WebClient
import WebSocket
import WireFormats

@testable import RelayProgram

@Suite("From a Marmot group to phones, over real sockets", .timeLimit(.minutes(30)))
struct MarmotTests {
    /// Zulip stands beside it, so that there is a store which must stay empty.
    static func text(_ more: String = "") -> String {
        RelayStage.oneApp(
            serving: "[zulip-main]",
            """
              zulip-main: { protocol: zulip, apps: [acme], keys: bouncer.keys, sign_up: open }
              marmot-main:
                protocol: marmot
                apps: [acme]
                key_file: nostr.key
                \(more)

            """)
    }

    @Test(
        "A trigger of each format wakes both phones, and says nothing to Apple and Google",
        arguments: TokenFormat.allCases)
    func formats(_ format: TokenFormat) async throws {
        try await RelayStage.running(Self.text()) { running in
            let sender = try MarmotSender(running)
            try await sender.ready(running)
            let (apple, google) = (try MarmotSender.apple(), try MarmotSender.google())
            let wokenByApple = running.stage.apns.subscribe(token: apple.token)
            let wokenByGoogle = running.stage.fcm.subscribe(address: google.token)
            let boxes = [
                try sender.box(apple.target, format), try sender.box(google.target, format)
            ]
            await sender.publish(try sender.trigger(boxes, format).wrap)
            let first = try await wokenByApple.next("a delivery")
            #expect(String(decoding: first.body, as: UTF8.self) == #"{"aps":{"content-available":1}}"#)
            #expect(first.topic == "org.acme.chat" && first.pushType == .background)
            #expect(first.priority == 5 && first.collapseID == "wake")
            let second = try JSONValue.parse(await wokenByGoogle.next("a delivery").body)
            #expect(second["message"]?["data"]?["content_available"]?.string == "true")
            #expect(second["message"]?["android"]?["priority"]?.string?.lowercased() == "high")
            #expect(second["message"]?["notification"] == nil && second["message"]?["apns"] == nil)
        }
    }

    @Test("The visible modes show the same words to everybody")
    func modes() async throws {
        for (mode, isMutable) in [("generic_alert", false), ("mutable_alert", true)] {
            try await RelayStage.running(Self.text("mode: \(mode)")) { running in
                let sender = try MarmotSender(running)
                try await sender.ready(running)
                let apple = try MarmotSender.apple()
                let woken = running.stage.apns.subscribe(token: apple.token)
                await sender.publish(
                    try sender.trigger([try sender.box(apple.target, .pushV1)], .pushV1).wrap)
                let delivery = try await woken.next("a delivery")
                let aps = try JSONValue.parse(delivery.body)["aps"]
                #expect(aps?["alert"]?["title"]?.string == "New activity")
                #expect(aps?["mutable-content"]?.int64 == (isMutable ? 1 : nil))
                #expect(delivery.pushType == .alert && delivery.priority == 10)
            }
        }
    }

    @Test("A group of three wakes the other two")
    func group() async throws {
        try await RelayStage.running(Self.text()) { running in
            let sender = try MarmotSender(running)
            try await sender.ready(running)
            let demo = try #require(MarmotDemo(on: running.stage.demoStage(running)))
            let reports = await demo.run()
            #expect(reports.map(\.conversation) == ["marmot (APNs)", "marmot (FCM)"])
            #expect(reports.allSatisfy { $0.opened && $0.fault == nil })
        }
    }

    @Test("A wrap that comes again, or wrapped anew, wakes nobody twice")
    func repeated() async throws {
        try await RelayStage.running(Self.text()) { running in
            let sender = try MarmotSender(running)
            try await sender.ready(running)
            let apple = try MarmotSender.apple()
            let woken = running.stage.apns.subscribe(token: apple.token)
            let author = Secp256k1KeyPair.generate(.live)
            let (rumor, wrap) = try sender.trigger(
                [try sender.box(apple.target, .pushV1)], .pushV1, author: author)
            await sender.publish(wrap)
            _ = try await woken.next("a delivery")
            running.stage.sandbox.nostr.flood(wrap, count: 20)
            await sender.publish(
                try GiftWrap.wrap(sealing: rumor, by: author, to: sender.server, world: .live))
            // What comes after them on the same way has been judged after them, but for the few at work.
            for _ in 0..<3 {
                await sender.publish(
                    try sender.trigger([try sender.box(apple.target, .pushV1)], .pushV1).wrap)
                _ = try await woken.next("a delivery")
            }
            #expect(running.stage.apns.deliveries().filter { $0.token == apple.token }.count == 4)
        }
    }

    @Test("A reload switches formats off and on, and drops no connection")
    func reload() async throws {
        // The meters are the whole process's, so it counts under an instance of its own.
        let name = "marmot-reload"
        try await RelayStage.running(MarmotFloodTests.text(name)) { running in
            let sender = try MarmotSender(running, name)
            try await sender.ready(running, name)
            let (seed, later) = (try MarmotSender.apple(), try MarmotSender.apple())
            let woken = running.stage.apns.subscribe(token: seed.token)
            let connections = running.stage.sandbox.nostr.counters.connections
            let instance = ["instance": name]
            let before = try await running.metric(MarmotFloodTests.wraps, instance)
            try running.relay.reload(
                running.stage.configuration(MarmotFloodTests.text(name, "formats: [seed]")))
            await sender.publish(
                try sender.trigger([try sender.box(later.target, .pushV1)], .pushV1).wrap)
            await sender.publish(
                try sender.trigger([try sender.box(seed.target, .seed)], .seed).wrap)
            _ = try await woken.next("a delivery")
            // Two of the publisher's own.
            #expect(running.stage.sandbox.nostr.counters.connections == connections + 2)
            // They are worked on side by side: the first one may still be.
            try await running.until(MarmotFloodTests.wraps, instance, reaches: before + 2)
            try running.relay.reload(running.stage.configuration())
            let wokenLater = running.stage.apns.subscribe(token: later.token)
            await sender.publish(
                try sender.trigger([try sender.box(later.target, .pushV1)], .pushV1).wrap)
            _ = try await wokenLater.next("a delivery")
            #expect(running.stage.apns.deliveries().filter { $0.token == later.token }.count == 1)
        }
    }

    @Test("A reload whose key file is broken leaves the old key in force")
    func brokenReload() async throws {
        try await RelayStage.running(Self.text()) { running in
            let sender = try MarmotSender(running)
            try await sender.ready(running)
            try writeFile(running.stage.folder.path + "/broken.key", Array("no key".utf8), replacing: true)
            #expect(throws: CommandFailure.self) {
                let broken = Self.text().replacing("nostr.key", with: "broken.key")
                try running.relay.reload(running.stage.configuration(broken))
            }
            let apple = try MarmotSender.apple()
            let woken = running.stage.apns.subscribe(token: apple.token)
            await sender.publish(
                try sender.trigger([try sender.box(apple.target, .seed)], .seed).wrap)
            _ = try await woken.next("a delivery")
        }
    }
}

@Suite("Nothing of Marmot reaches a disk", .timeLimit(.minutes(30)))
struct VolatileCustodyTests {
    private static func canaries(_ event: NostrEvent, _ name: String) throws -> [Canary] {
        var found = [
            Canary("\(name)'s id", event.id), Canary("\(name)'s author", event.pubkey.bytes),
            // A part of it would be as telling; this one is at the same place in any block.
            Canary("\(name)'s content", event.content.reveal { Array($0.prefix(48)) })
        ]
        if let signature = event.signature { found.append(Canary("\(name)'s signature", signature)) }
        return found
    }

    @Test("While a push is owed, and after it was sent, no file holds token, key, ciphertext or event id")
    func nothing() async throws {
        try await RelayStage.with(MarmotTests.text()) { stage in
            // What is accepted now stays owed.
            stage.apns.turn { $0.errorShare = 1 }
            let (apple, google) = (try MarmotSender.apple(), try MarmotSender.google())
            var canaries: [Canary] = [
                Canary("APNs token", Array(apple.target.token.reveal { Array($0) })),
                Canary("APNs token as text", apple.token), Canary("FCM token", google.token)
            ]
            var said: [(place: String, bytes: Data)] = []
            let late = stage.apns.subscribe(token: apple.token)
            try await stage.run { running in
                let sender = try MarmotSender(running)
                try await sender.ready(running)
                try running.writeRunFile()
                for format in TokenFormat.allCases {
                    let woken = stage.fcm.subscribe(address: google.token)
                    let boxes = [
                        try sender.box(apple.target, format), try sender.box(google.target, format)
                    ]
                    let (rumor, wrap) = try sender.trigger(boxes, format)
                    await sender.publish(wrap)
                    _ = try await woken.next("a delivery")
                    canaries += try Self.canaries(rumor, "rumor") + Self.canaries(wrap, "wrap")
                    for box in boxes {
                        canaries.append(Canary("ephemeral key", box.reveal { Array($0.prefix(32)) }))
                        canaries.append(Canary("ciphertext", box.reveal { Array($0[44..<92]) }))
                    }
                }
                // Zulip's store is in use meanwhile.
                _ = try await running.server()
                said += files(below: stage.folder.path)
                said.append(("log", Data(stage.log.all.joined().utf8)))
                for page in ["/metrics", "/status", "/"] {
                    said.append((page, Data(try await running.admin(page).body)))
                }
                #expect(try await running.owed() == 0)
                stage.apns.turn { $0.errorShare = 0 }
            }
            // A stop sends what was admitted.
            _ = try await late.next("a delivery")
            said += files(below: stage.folder.path)
            #expect(said.contains { $0.place.hasSuffix("-wal") })
            // The search can find: what is public is there.
            let nostrKey = try #require(
                FileManager.default.contents(atPath: stage.folder.path + "/nostr.key"))
            let pair = try NostrKeyFile.parse(Secret(nostrKey))
            let known = Canary("public key", pair.publicKey.hex)
            #expect(said.contains { $0.place.hasSuffix("run.json") && known.isIn($0.bytes) })
            canaries.expectNone(in: said)
        }
    }
}
