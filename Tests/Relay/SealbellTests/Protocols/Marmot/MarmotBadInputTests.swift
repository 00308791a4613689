import Foundation
import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import Testing
import WireFormats

@testable import RelayProgram

/// Frames, events and tokens that no honest party makes, through the sockets, the role and the lanes.
@Suite("Bad input to Marmot, over real sockets", .timeLimit(.minutes(30)))
struct MarmotBadInputTests {
    private static let wraps = MarmotFloodTests.wraps
    private static let notes = MarmotFloodTests.notes
    private static let frameBytes = 256 << 10

    private typealias Frame = @Sendable (_ subscription: String) -> [UInt8]

    /// What makes the server hang up, or ask for its subscription anew, and not only look away.
    private enum Fate { case passedOver, askedAnew, hungUp }

    private static func event(_ json: String) -> Frame {
        { Array("[\"EVENT\",\"\($0)\",\(json)]".utf8) }
    }

    private static func raw(_ text: String) -> Frame { { _ in Array(text.utf8) } }

    private static func json(_ event: NostrEvent) -> String {
        event.serialized().reveal { String(decoding: $0, as: UTF8.self) }
    }

    /// An event in a frame of just so many bytes.
    private static func padded(_ event: NostrEvent, _ bytes: Int) -> Frame {
        { subscription in
            let head = "[\"EVENT\",\"\(subscription)\","
            let rest = json(event) + "]"
            let room = bytes - head.utf8.count - rest.utf8.count
            return Array((head + String(repeating: " ", count: room) + rest).utf8)
        }
    }

    private static func frames(_ sender: MarmotSender) throws -> [(name: String, frame: Frame, fate: Fate)] {
        let wrap = try sender.junk()
        let text = json(wrap)
        let key = wrap.pubkey.hex
        func with(_ pubkey: String) -> Frame { event(text.replacing(key, with: pubkey)) }
        let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
        let tags = (0..<10_000).map { _ in ["t", "x"] }
        let tagged = NostrEvent.signed(
            kind: NostrKind.giftWrap, createdAt: wrap.createdAt, tags: [["p", sender.server.hex]] + tags,
            content: wrap.content, by: .generate(.live), auxiliary: World.live.randomBytes(32))
        return [
            ("nothing", raw(""), .passedOver), ("no array", raw("{\"a\":1}"), .passedOver),
            ("an empty array", raw("[]"), .passedOver),
            ("an unknown word", raw("[\"WHATEVER\",1]"), .passedOver),
            ("a number", raw("1e999999"), .passedOver),
            ("half a message", raw("[\"EVENT\",\"s\""), .passedOver),
            ("a depth", raw(deep), .passedOver),
            ("a depth in an event", event("{\"a\":\(deep)}"), .passedOver),
            ("ten thousand tags", event(json(tagged)), .passedOver),
            ("no point: not on the curve", with(String(repeating: "0", count: 63) + "5"), .passedOver),
            ("no point: beyond the field", with(String(repeating: "f", count: 64)), .passedOver),
            ("no point: zero", with(String(repeating: "0", count: 64)), .passedOver),
            (
                "a notice of the largest size",
                raw("[\"NOTICE\",\"\(String(repeating: "n", count: 262_000))\"]"),
                .askedAnew
            ),
            ("a byte too many", padded(wrap, frameBytes + 1), .hungUp),
            ("invalid UTF-8", { _ in [0x5B, 0x22, 0xFF, 0xC0, 0x22, 0x5D] }, .hungUp),
            ("a surrogate", { _ in [0x5B, 0x22, 0xED, 0xA0, 0x80, 0x22, 0x5D] }, .hungUp)
        ]
    }

    @Test("Behind every frame that no relay should send the next good wrap wakes, and nobody else is woken")
    func frames() async throws {
        let instance = "marmot-frames"
        try await RelayStage.with(MarmotFloodTests.text(instance)) { stage in
            let relay = stage.sandbox.nostr
            try await stage.run { running in
                let sender = try MarmotSender(running, instance)
                try await MarmotFloodTests.listening(running, instance, 1)
                var listenings = 1
                var devices: [String] = []
                for (name, frame, fate) in try Self.frames(sender) {
                    relay.say(frame)
                    if fate != .passedOver {
                        listenings += 1
                        try await MarmotFloodTests.listening(running, instance, listenings)
                    }
                    let apple = try MarmotSender.apple()
                    devices.append(apple.token)
                    let woken = stage.apns.subscribe(token: apple.token)
                    relay.inject(try sender.wake(apple.target))
                    _ = try await woken.next("a delivery behind \(name)")
                }
                // The largest frame itself is taken.
                let apple = try MarmotSender.apple()
                devices.append(apple.token)
                let woken = stage.apns.subscribe(token: apple.token)
                relay.say(Self.padded(try sender.wake(apple.target), Self.frameBytes))
                _ = try await woken.next("a delivery")
                #expect(stage.apns.deliveries().map(\.token) == devices)
                #expect(
                    try await running.metric(Self.notes, ["instance": instance, "note": "listening"])
                        == Double(listenings),
                    "it has hung up or asked anew where it had to, and nowhere else")
                #expect(!stage.log.all.contains { $0.contains("\"level\":\"error\"") })
            }
        }
    }

    // MARK: Vectors

    /// The file's objects as they are: some are no events.
    private static func vectors() throws -> [String: Any] {
        let path = repositoryRoot().path + "/Tests/Vectors/marmot.json"
        let data = try #require(FileManager.default.contents(atPath: path))
        return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    }

    /// A stage whose server has the vectors' two keys.
    private static func withVectors(
        _ instance: String,
        _ body: ([String: Any], RelayStage, RunningRelay, MarmotSender) async throws -> Void
    ) async throws {
        let file = try vectors()
        let keys = try #require(file["keys"] as? [String: [String: Any]])
        func prepare(_ folder: String) throws {
            for (name, key) in [("server", "nostr.key"), ("server_odd", "odd.key")] {
                let secret = try #require(keys[name]?["secret"] as? String)
                try writeFile("\(folder)/\(key)", Array((secret + "\n").utf8), replacing: true)
            }
        }
        let text = MarmotFloodTests.text(instance, "old_key_files: [odd.key]")
        try await RelayStage.running(text, prepare: prepare) { running in
            let sender = try MarmotSender(running, instance)
            #expect(sender.server.hex == keys["server"]?["pubkey"] as? String)
            try await MarmotFloodTests.listening(running, instance, 1)
            try await body(file, running.stage, running, sender)
        }
    }

    @Test("No refused wrap of the vectors wakes anybody")
    func refusedWraps() async throws {
        let instance = "marmot-refused"
        try await Self.withVectors(instance) { file, stage, running, sender in
            let rows = try #require(file["gift_wraps"] as? [[String: Any]])
            var sent = 0
            for row in rows {
                guard let expect = row["expect"] as? [String: Any], expect["accept"] as? Bool == false,
                    let event = row["event"] as? [String: Any]
                else { continue }
                let data = try JSONSerialization.data(withJSONObject: event)
                stage.sandbox.nostr.say(Self.event(String(decoding: data, as: UTF8.self)))
                sent += 1
            }
            #expect(sent >= 50)
            try await running.owesNothing(instance)
            // They are worked on side by side, so the good one may be done before the last of them.
            var came = try await Self.came(running, instance)
            let all = sent
            try await asked(for: "\(all) wraps refused and one taken") {
                came = try await Self.came(running, instance)
                return came.refused >= all && came.taken >= 1
            }
            #expect(came.taken == 1)
            #expect(came.refused == sent, "each of them came as far as it was to come")
            #expect(stage.apns.deliveries().isEmpty && stage.fcm.deliveries().count == 1)
        }
    }

    /// Wraps that were taken, and those that were refused or dropped before.
    private static func came(
        _ running: RunningRelay, _ instance: String
    ) async throws -> (taken: Int, refused: Int) {
        var refused = 0.0
        for note in ["malformed", "wrong-filter"] {
            refused += try await running.metric(notes, ["instance": instance, "note": note])
        }
        refused += try await running.metric(wraps, ["instance": instance])
        let taken = try await running.metric(wraps, ["instance": instance, "outcome": "taken"])
        refused -= taken
        return (Int(taken), Int(refused))
    }

    @Test("No bad token of the vectors wakes anybody, in a trigger that is sound, beside a good token")
    func badTokens() async throws {
        let instance = "marmot-bad-tokens"
        try await Self.withVectors(instance) { file, stage, running, sender in
            let rows = try #require(file["token_decrypt"] as? [[String: Any]])
            var devices: [String] = []
            for row in rows {
                guard let expect = row["expect"] as? [String: Any], expect["ok"] as? Bool == false,
                    let hex = row["encrypted_token"] as? String, let name = row["format"] as? String,
                    let format = TokenFormat(rawValue: name)
                else { continue }
                let bad = Secret(try Hex.decode(Array(hex.utf8)))
                let apple = try MarmotSender.apple()
                let good = try sender.box(apple.target, format)
                // One of another size spoils the trigger, so that it comes alone; else beside a good one.
                guard bad.count == good.count || format == .seed else {
                    stage.sandbox.nostr.inject(try Self.alone(bad, format, sender))
                    continue
                }
                devices.append(apple.token)
                let woken = stage.apns.subscribe(token: apple.token)
                stage.sandbox.nostr.inject(try sender.trigger([bad, good], format).wrap)
                _ = try await woken.next("a delivery behind \(row["name"] ?? "")")
            }
            #expect(devices.count >= 20)
            try await running.owesNothing(instance)
            #expect(stage.apns.deliveries().map(\.token) == devices)
            #expect(stage.fcm.deliveries().count == 1)
        }
    }

    /// A trigger of one token, whatever its size.
    private static func alone(
        _ token: Secret, _ format: TokenFormat, _ sender: MarmotSender
    ) throws -> NostrEvent {
        let author = Secp256k1KeyPair.generate(.live)
        let rumor = NostrEvent.rumor(
            kind: NostrKind.trigger, createdAt: World.live.now().seconds, tags: format.triggerTags,
            content: Secret(token.reveal { Base64.text(Array($0)) }.utf8), author: author.publicKey)
        return try GiftWrap.wrap(sealing: rumor, by: author, to: sender.server, world: .live)
    }

    @Test(
        "Points off the curve, in a wrap's layers and in a token, wake nobody",
        arguments: TokenFormat.allCases)
    func points(_ format: TokenFormat) async throws {
        let instance = "marmot-points-\(format.rawValue)"
        try await RelayStage.running(MarmotFloodTests.text(instance)) { running in
            let sender = try MarmotSender(running, instance)
            try await MarmotFloodTests.listening(running, instance, 1)
            let apple = try MarmotSender.apple()
            let good = try sender.box(apple.target, format)
            let points = [
                [UInt8](repeating: 0, count: 31) + [5], [UInt8](repeating: 0xFF, count: 32),
                [UInt8](repeating: 0, count: 32)
            ]
            let bad = points.map { point in good.reveal { Secret(point + Array($0.dropFirst(32))) } }
            let woken = running.stage.apns.subscribe(token: apple.token)
            running.stage.sandbox.nostr.inject(try sender.trigger(bad, format).wrap)
            running.stage.sandbox.nostr.inject(try sender.trigger(bad + [good], format).wrap)
            _ = try await woken.next("a delivery")
            try await running.owesNothing(instance)
            #expect(running.stage.apns.deliveries().count == 1)
            // The wraps are worked on side by side: the one without a good point may be the later one.
            let decoys = ["instance": instance, "note": "marmot.decoy"]
            try await running.until("sealbell_notes_total", decoys, reaches: 6)
            #expect(try await running.metric("sealbell_notes_total", decoys) == 6)
            #expect(running.stage.apns.deliveries().count == 1)
        }
    }
}
