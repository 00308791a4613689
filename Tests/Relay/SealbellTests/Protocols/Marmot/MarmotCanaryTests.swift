import Foundation
import MarmotPublishing
import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

/// One Marmot exchange with a canary in each field, and what lying relays say around it.
struct MarmotCast {
    let sender: MarmotSender
    let apple: (target: DeviceTarget, token: String)
    let google: (target: DeviceTarget, token: String)
    private(set) var canaries: [Canary] = []
    private(set) var wraps: [NostrEvent] = []
    private let stray = CanaryCast.word("stray")
    /// The server keeps a relay's latest challenge for as long as the connection lasts (NIP-42).
    let challenge = CanaryCast.word("challenge")

    init(_ sender: MarmotSender) throws {
        self.sender = sender
        (apple, google) = (try MarmotSender.apple(), try MarmotSender.google())
        canaries += try Canary.hex("APNs token", apple.token)
        canaries.append(Canary("FCM token", google.token))
        canaries.append(Canary("a relay's words", stray))
        for format in TokenFormat.allCases {
            let boxes = [try sender.box(apple.target, format), try sender.box(google.target, format)]
            for box in boxes {
                canaries.append(Canary("one-time key of a token", box.reveal { Array($0.prefix(32)) }))
                canaries.append(Canary("nonce of a token", box.reveal { Array($0[32..<44]) }))
                canaries.append(Canary("ciphertext of a token", box.reveal { Array($0[44..<92]) }))
            }
            let (rumor, wrap) = try sender.trigger(boxes, format)
            try plant(rumor, "rumor")
            try plant(wrap, "wrap")
            wraps.append(wrap)
        }
    }

    private mutating func plant(_ event: NostrEvent, _ name: String) throws {
        canaries += try Canary.hex("\(name)'s id", Hex.encode(event.id))
        canaries += try Canary.hex("\(name)'s author", event.pubkey.hex)
        if let signature = event.signature {
            canaries += try Canary.hex("\(name)'s signature", Hex.encode(signature))
        }
        canaries.append(
            Canary("\(name)'s content", event.content.reveal { Array($0.dropFirst(64).prefix(60)) }))
    }

    /// What the server reads and drops: the wraps with a fault each, and events with strange members.
    func wrong() throws -> [NostrEvent] {
        var events: [NostrEvent] = []
        for wrap in wraps {
            events.append(
                .signed(
                    kind: NostrKind.giftWrap, createdAt: wrap.createdAt,
                    tags: [["p", sender.server.hex], ["subject", stray], [stray, stray]],
                    content: wrap.content, by: .generate(.live), auxiliary: World.live.randomBytes(32)))
            events.append(
                .signed(
                    kind: NostrKind.giftWrap, createdAt: wrap.createdAt, tags: [["p", sender.server.hex]],
                    content: Secret(stray.utf8), by: .generate(.live),
                    auxiliary: World.live.randomBytes(32)))
        }
        return events
    }

    /// Texts that no relay has a reason to send, with a canary in every place.
    func lies() -> [@Sendable (String) -> [UInt8]] {
        let (stray, wrap) = (stray, wraps[0].serialized().reveal { String(decoding: $0, as: UTF8.self) })
        let (id, challenge) = (Hex.encode(wraps[0].id), challenge)
        return [
            { _ in Array("[\"NOTICE\",\"\(stray): \(id)\"]".utf8) },
            { _ in Array("[\"AUTH\",\"\(challenge)\"]".utf8) },
            { _ in Array("[\"OK\",\"\(id)\",false,\"restricted: \(stray)\"]".utf8) },
            { _ in Array("[\"CLOSED\",\"\(stray)\",\"error: \(stray)\"]".utf8) },
            { _ in Array("[\"EOSE\",\"\(stray)\"]".utf8) },
            { _ in Array("[\"\(stray)\",\"\(stray)\",{\"\(stray)\":1}]".utf8) },
            { _ in Array("[\"EVENT\",\"\(stray)\",\(wrap)]".utf8) },
            { Array("[\"EVENT\",\"\($0)\",{\"\(stray)\":\"\(stray)\",\(wrap.dropFirst())]".utf8) },
            { Array("[\"EVENT\",\"\($0)\",\(wrap.dropLast(9))".utf8) },
            { _ in Array("{\"\(stray)\":\"\(id)\"".utf8) },
            // The last: the subscription is asked for again behind it.
            { Array("[\"CLOSED\",\"\($0)\",\"error: \(stray)\"]".utf8) }
        ]
    }
}

@Suite("What a notification server was told is told to nobody", .timeLimit(.minutes(30)))
struct MarmotCanaryTests {
    private static let instance = "marmot-canaries"
    private static let listening = ["instance": instance, "note": "listening"]

    @Test("No canary of any trigger, and no word of any relay, is in log, metrics, pages or files")
    func operation() async throws {
        let text = MarmotFloodTests.text(Self.instance)
        let query = CanaryCast.word("query")
        try await RelayStage.with(text) { stage in
            let other = try await stage.addNostrRelay(path: "/\(query)?key=\(query)")
            other.turn { $0.authentication = .onConnect }
            // Retries too: what is owed stays owed for a while.
            stage.apns.turn { $0.errorShare = 0.5 }
            var cast: MarmotCast?
            var said: [Said] = []
            try await stage.run { running in
                let sender = try MarmotSender(running, Self.instance)
                let made = try MarmotCast(sender)
                cast = made
                try await running.until(MarmotFloodTests.notes, Self.listening, reaches: 2)
                for wrap in made.wraps {
                    let woken = stage.apns.subscribe(token: made.apple.token)
                    await sender.publish(wrap)
                    _ = try await woken.next("a delivery")
                }
                for event in try made.wrong() {
                    for relay in [stage.sandbox.nostr, other] { relay.inject(event) }
                }
                for lie in made.lies() { for relay in [stage.sandbox.nostr, other] { relay.say(lie) } }
                // Both were closed, and are listened at again.
                try await running.until(MarmotFloodTests.notes, Self.listening, reaches: 4)
                other.turn { $0.refusesEvents = .blocked }
                other.killConnections()
                try await running.until(MarmotFloodTests.notes, Self.listening, reaches: 5)
                try running.writeRunFile()
                _ = try await running.server()
                said = try await running.said()
            }
            said.append(("log at the end", Data(stage.log.all.joined(separator: "\n").utf8)))
            let found = try #require(cast)
            #expect(said.contains { $0.place.hasSuffix("-wal") })
            #expect(stage.log.all.contains { $0.contains("nostr relay") })
            // The search can find: what is public is there.
            let known = Canary("public key", found.sender.server.hex)
            #expect(said.contains { $0.place.hasSuffix("run.json") && known.isIn($0.bytes) })
            let canaries =
                found.canaries + [
                    Canary("the query of a relay's address", query), Canary("a challenge", found.challenge)
                ]
            canaries.expectNone(in: said)
        }
    }

    @Test("An address with a password is refused without its bytes")
    func credentials() throws {
        let word = CanaryCast.word("password")
        let text = MarmotTests.text(#"relays: ["wss://operator:\#(word)@relay.example.org"]"#)
        let folder = try TemporaryFolder()
        do {
            _ = try ConfigurationLoader.read(
                text, file: folder.path + "/sealbell.yaml",
                ConfigurationRequest(state: folder.path + "/state"), facts(home: folder.path))
            Issue.record("it is taken")
        } catch {
            #expect(!"\(error)".contains(word))
        }
    }
}
