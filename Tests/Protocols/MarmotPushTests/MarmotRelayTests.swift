import Delivery
import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Testing

/// A server with one key that serves both push services, and somebody who sends to it.
private func stage(
    keys: Int = 1, _ change: (inout MarmotServing) -> Void = { _ in },
    limits: DeliveryLimits = DeliveryLimits(),
    _ body: (MarmotRig, Sender, [Secp256k1KeyPair]) async throws -> Void
) async throws {
    let drawing = World.fixed(seed: 3, at: UnixTime(seconds: 1_800_000_000))
    let pairs = (0..<keys).map { _ in Secp256k1KeyPair.generate(drawing) }
    var serving = try MarmotServing(keys: pairs, topic: MarmotRig.topic, servesFCM: true)
    change(&serving)
    let bench = try await MarmotRig(serving, limits: limits)
    try await bench.running { bench in
        try await body(bench, Sender(bench.world, to: pairs[0]), pairs)
    }
}

@Suite("The relay of Marmot, step by step", .timeLimit(.minutes(30)))
struct MarmotRelayTests {
    @Test("Every format wakes its devices, and decoys wake nobody", arguments: TokenFormat.allCases)
    func formats(_ format: TokenFormat) async throws {
        try await stage { bench, sender, _ in
            let (apple, google) = (try sender.device(.apns, 1), try sender.device(.fcm, 2))
            let chunks = try [
                sender.decoy(format), sender.chunk(apple, format), sender.decoy(format),
                sender.chunk(google, format)
            ]
            let result = await bench.receive(try sender.wrapped(format, chunks))
            let wakes: Set = [
                Wake(platform: .apns, tokenHex: String(repeating: "31", count: 32)),
                Wake(platform: .fcm, tokenHex: "66636d3a746f6b656e2d32")
            ]
            #expect(result == MarmotRig.Result(wakes: wakes, count: 2, notes: ["marmot.decoy": 2]))
        }
    }

    @Test("A signed trigger straight in the wrap wakes too, an unsigned one does not")
    func direct() async throws {
        try await stage { bench, sender, _ in
            let chunk = try sender.chunk(sender.device(.fcm, 1), .seed)
            let rumor = try sender.trigger(.seed, [chunk])
            let signed = NostrEvent.signed(
                kind: rumor.kind, createdAt: rumor.createdAt, tags: rumor.tags, content: rumor.content,
                by: sender.author, auxiliary: bench.world.randomBytes(32))
            for (inner, count) in [(rumor, 0), (signed, 1)] {
                let wrap = try GiftWrap.wrap(
                    inner, by: .generate(bench.world), to: sender.server.publicKey, .random(bench.world))
                let result = await bench.receive(wrap)
                #expect(result.count == count)
                #expect(result.refusal == (count == 0 ? .badSignature : nil))
            }
        }
    }

    @Test("Step 1: another kind, another server, or nobody at all")
    func addressee() async throws {
        try await stage { bench, sender, _ in
            let good = try sender.wrapped(.pushV1, [sender.chunk(sender.device(.fcm, 1), .pushV1)])
            func again(kind: Int = NostrKind.giftWrap, tags: [[String]], content: Secret) -> NostrEvent {
                .signed(
                    kind: kind, createdAt: good.createdAt, tags: tags, content: content,
                    by: .generate(bench.world), auxiliary: bench.world.randomBytes(32))
            }
            let other = Secp256k1KeyPair.generate(bench.world).publicKey.hex
            let large = Secret([UInt8](repeating: 0x41, count: MarmotLimits.payloadBytes + 1))
            let rows: [(NostrEvent, MarmotError.Code)] = [
                (again(kind: 1060, tags: good.tags, content: good.content), .wrongKind),
                (again(kind: 21059, tags: good.tags, content: good.content), .wrongKind),
                (again(tags: [], content: good.content), .wrongRecipient),
                (again(tags: [["p"]], content: good.content), .wrongRecipient),
                (again(tags: [["p", other]], content: good.content), .wrongRecipient),
                (again(tags: good.tags, content: large), .tooLarge)
            ]
            for (wrap, code) in rows { await bench.expect(code, of: wrap) }
            #expect(bench.relay.remembered == 0)
            await bench.expect(wakes: 1, by: good)
        }
    }

    @Test(
        "Steps 2 and 3: a forgery of a wrap neither wakes nor stands in its way; the wrap itself wakes once")
    func forgery() async throws {
        try await stage { bench, sender, _ in
            let good = try sender.wrapped(.pushV1, [sender.chunk(sender.device(.fcm, 1), .pushV1)])
            let text = good.serialized().reveal { String(decoding: $0, as: UTF8.self) }
            let forged = text.replacing(
                "\"created_at\":\(good.createdAt)", with: "\"created_at\":\(good.createdAt + 1)")
            let forgery = try NostrEvent.parse(Secret(forged.utf8))
            #expect(forgery.id == good.id)
            await bench.expect(.badSignature, of: forgery)
            await bench.expect(wakes: 1, by: good, relay: 0)
            await bench.expect(.repeated, of: good, relay: 1)
            #expect(bench.services.sent.count == 1)
        }
    }

    @Test("Step 3: what was seen before a reload is no news to the relay that takes its place")
    func replaced() async throws {
        try await stage { bench, sender, keys in
            let old = try sender.wrapped(.pushV1, [sender.chunk(sender.device(.fcm, 1), .pushV1)])
            let new = try sender.wrapped(.pushV1, [sender.chunk(sender.device(.fcm, 2), .pushV1)])
            await bench.expect(wakes: 1, by: old)
            var other = try MarmotServing(keys: keys, topic: MarmotRig.topic, servesFCM: true)
            other.formats = [.pushV1]
            let next = MarmotRelay(other, replacing: bench.relay, world: bench.world)
            await #expect(throws: MarmotError(.repeated)) {
                try await next.receive(MarmotInbound(old, relay: 0, arrival: .live))
            }
            #expect(try await next.receive(MarmotInbound(new, relay: 0, arrival: .live)).pushes.count == 1)
        }
    }

    @Test("Step 4: beyond the global budget nothing is decrypted, and the same wrap is taken a minute later")
    func globalBudget() async throws {
        // A wrap and its one token are two.
        try await stage({ $0.budgets.everything = RateRule(perMinute: 4, perHour: 100) }) {
            bench, sender, _ in
            let wraps = try (0..<3).map {
                try sender.wrapped(.pushV1, [sender.chunk(sender.device(.fcm, $0), .pushV1)])
            }
            await bench.expect(wakes: 1, by: wraps[0])
            await bench.expect(wakes: 1, by: wraps[1])
            await bench.expect(.overBudget, of: wraps[2])
            bench.clock.advance(by: .seconds(61))
            await bench.expect(wakes: 1, by: wraps[2])
            await bench.expect(.repeated, of: wraps[2])
        }
    }

    @Test("Step 5: what does not open is refused, and the second time before anything is decrypted")
    func doesNotOpen() async throws {
        try await stage { bench, sender, _ in
            let stranger = Secp256k1KeyPair.generate(bench.world)
            let rumor = try sender.trigger(
                .pushV1, [sender.chunk(sender.device(.fcm, 1), .pushV1)])
            let foreign = try sender.wrap(rumor, to: stranger.publicKey)
            let wrap = NostrEvent.signed(
                kind: NostrKind.giftWrap, createdAt: foreign.createdAt,
                tags: [["p", sender.server.publicKey.hex]], content: foreign.content,
                by: .generate(bench.world), auxiliary: bench.world.randomBytes(32))
            await bench.expect(.doesNotOpen, of: wrap)
            await bench.expect(.repeated, of: wrap)
            // The trigger itself was never taken.
            try await bench.expect(wakes: 1, by: sender.wrap(rumor))
        }
    }

    @Test(
        "Step 6: a format that is switched off wakes nobody, the others do", arguments: TokenFormat.allCases)
    func switchedOff(_ format: TokenFormat) async throws {
        try await stage({ $0.formats.remove(format) }) { bench, sender, _ in
            for each in TokenFormat.allCases {
                let chunk = try sender.chunk(sender.device(.fcm, 1), each)
                let result = await bench.receive(try sender.wrapped(each, [chunk]))
                #expect(result.count == (each == format ? 0 : 1))
                #expect(result.refusal == (each == format ? .formatSwitchedOff : nil))
            }
        }
    }

    @Test(
        "Step 7: the same trigger in fresh wraps wakes once, in every format", arguments: TokenFormat.allCases
    )
    func rewrapped(_ format: TokenFormat) async throws {
        try await stage { bench, sender, _ in
            let rumor = try sender.trigger(format, [sender.chunk(sender.device(.apns, 1), format)])
            try await bench.expect(wakes: 1, by: sender.wrap(rumor))
            try await bench.expect(.repeated, of: sender.wrap(rumor))
            bench.clock.advance(by: .seconds(172_800))
            try await bench.expect(.repeated, of: sender.wrap(rumor))
        }
    }

    @Test(
        "Step 7: the same tokens of another author count as a repeat in push-v1, for as long as is set",
        arguments: [30, 300, 0])
    func content(seconds: Int64) async throws {
        try await stage({ $0.contentSpan = .seconds(seconds) }) { bench, sender, _ in
            for format in [TokenFormat.pushV1, .mip05Long] {
                let chunks = [try sender.chunk(sender.device(.apns, 1), format)]
                try await bench.expect(wakes: 1, by: sender.wrapped(format, chunks))
                bench.clock.advance(by: .seconds(max(0, seconds - 1)))
                let repeated = await bench.receive(try sender.wrapped(format, chunks))
                #expect(repeated.refusal == (format == .pushV1 && seconds > 0 ? .repeated : nil))
                bench.clock.advance(by: .seconds(2))
                try await bench.expect(wakes: 1, by: sender.wrapped(format, chunks))
            }
        }
    }

    @Test("Step 8: one author has its own budget; what it could not have comes again")
    func senderBudget() async throws {
        try await stage({ $0.budgets.sender = RateRule(perMinute: 2, perHour: 100) }) { bench, sender, _ in
            let wraps = try (0..<3).map {
                try sender.wrap(sender.trigger(.seed, [sender.chunk(sender.device(.fcm, $0), .seed)]))
            }
            await bench.expect(wakes: 1, by: wraps[0])
            await bench.expect(wakes: 1, by: wraps[1])
            await bench.expect(.overBudget, of: wraps[2])
            let other = try sender.wrapped(.seed, [sender.chunk(sender.device(.fcm, 9), .seed)])
            await bench.expect(wakes: 1, by: other)
            bench.clock.advance(by: .seconds(60))
            await bench.expect(wakes: 1, by: wraps[2])
        }
    }

    @Test("A wall clock that jumps frees no repeat and spends no budget")
    func clockJumps() async throws {
        try await stage({ $0.budgets.sender = RateRule(perMinute: 2, perHour: 100) }) { bench, sender, _ in
            let wraps = try (0..<3).map {
                try sender.wrap(sender.trigger(.seed, [sender.chunk(sender.device(.fcm, $0), .seed)]))
            }
            await bench.expect(wakes: 1, by: wraps[0])
            for jump in [Duration.seconds(400_000), .seconds(-800_000)] {
                bench.clock.skewWall(by: jump)
                await bench.expect(.repeated, of: wraps[0])
            }
            await bench.expect(wakes: 1, by: wraps[1])
            bench.clock.skewWall(by: .seconds(7_200))
            await bench.expect(.overBudget, of: wraps[2])
        }
    }
}

@Suite("The chunks of a trigger", .timeLimit(.minutes(30)))
struct RelayChunkTests {
    @Test("A chunk that stands twice in a trigger wakes once")
    func twice() async throws {
        try await stage { bench, sender, _ in
            let chunk = try sender.chunk(sender.device(.fcm, 1), .pushV1)
            let result = await bench.receive(try sender.wrapped(.pushV1, [chunk, chunk, chunk]))
            #expect(result.count == 1)
            #expect(result.notes == ["marmot.token-repeated": 2])
        }
    }

    @Test(
        "A device wakes once for a trigger, however many of its boxes there are",
        arguments: TokenFormat.allCases)
    func oneDevice(_ format: TokenFormat) async throws {
        try await stage { bench, sender, _ in
            let device = try sender.device(.apns, 1)
            // What a wrap holds of the long ones, and then some of the short.
            let count = (format.tokenBytes ?? 0) > 1_000 ? 15 : 100
            let chunks = try (0..<count).map { _ in try sender.chunk(device, format) }
            let result = await bench.receive(try sender.wrapped(format, chunks))
            #expect(result.count == 1)
            #expect(result.notes == ["marmot.token-repeated": count - 1])
        }
    }

    @Test("Triggers within a device's pause make one wake together, when it is over")
    func pause() async throws {
        try await stage({ $0.pause = .seconds(10) }) { bench, sender, _ in
            func trigger() throws -> NostrEvent {
                try sender.wrapped(.mip05Long, [sender.chunk(sender.device(.fcm, 1), .mip05Long)])
            }
            await bench.expect(wakes: 1, by: try trigger())
            let now = bench.clock.now
            let second = try await bench.relay.receive(MarmotInbound(trigger(), relay: 0))
            #expect(second.pushes.map(\.notBefore) == [now + .seconds(10)])
            bench.clock.advance(by: .seconds(9))
            let third = try await bench.relay.receive(MarmotInbound(trigger(), relay: 0))
            #expect(third.pushes.isEmpty && third.notes == [.init(NoteCode("marmot.token-covered"))])
            // There was no room for the second: the next one wakes.
            bench.relay.release(second.held)
            await bench.expect(wakes: 1, by: try trigger())
            bench.clock.advance(by: .seconds(10))
            await bench.expect(wakes: 1, by: try trigger())
        }
    }

    @Test("A device whose budget is spent gets no pause that covers what comes later")
    func pauseWithoutBudget() async throws {
        try await stage({
            $0.pause = .seconds(120)
            $0.budgets.deviceToken = RateRule(perMinute: 1, perHour: 0)
        }) { bench, sender, _ in
            func trigger() throws -> NostrEvent {
                try sender.wrapped(.mip05Long, [sender.chunk(sender.device(.fcm, 1), .mip05Long)])
            }
            await bench.expect(wakes: 1, by: try trigger())
            bench.clock.advance(by: .seconds(1))
            // Its turn would come when the pause is over, and there is nothing left to pay it with.
            await bench.expect(.overBudget, of: try trigger())
            // Within the pause still, the budget whole again: no wake is to come that could stand for this.
            bench.clock.advance(by: .seconds(109))
            let paid = try await bench.relay.receive(MarmotInbound(trigger(), relay: 0))
            #expect(paid.pushes.map(\.notBefore) == [bench.clock.now + .seconds(10)])
        }
    }

    @Test("Each token of a trigger is tried, however much junk stands before it")
    func junk() async throws {
        try await stage { bench, sender, _ in
            for format in [TokenFormat.seed, .mip05Short, .pushV1] {
                // As many as a frame holds.
                let junk = format == .pushV1 ? 18 : 64
                let good = try sender.chunk(sender.device(.fcm, 1), format)
                let chunks = (0..<junk).map { _ in sender.decoy(format) } + [good]
                let received = await bench.receive(try sender.wrapped(format, chunks))
                #expect(received.count == 1 && received.notes == ["marmot.decoy": junk])
                // The device's own pause.
                bench.clock.advance(by: .seconds(120))
            }
        }
    }

    @Test("An encrypted token has a budget of its own, though its device has more")
    func encryptedTokenBudget() async throws {
        try await stage({ $0.budgets.encryptedToken = RateRule(perMinute: 2, perHour: 100) }) {
            bench, sender, _ in
            let device = try sender.device(.fcm, 1)
            let chunk = try sender.chunk(device, .mip05Long)
            let results = try await bench.counts(
                (0..<3).map { _ in try sender.wrapped(.mip05Long, [chunk]) })
            #expect(results == [1, 1, nil])
            let fresh = try sender.wrapped(.mip05Long, [sender.chunk(device, .mip05Long)])
            await bench.expect(wakes: 1, by: fresh)
        }
    }

    @Test("A device token has a budget over all its encrypted tokens; what it refuses charges no other")
    func deviceTokenBudget() async throws {
        try await stage({
            $0.budgets.deviceToken = RateRule(perMinute: 2, perHour: 100)
            $0.budgets.encryptedToken = RateRule(perMinute: 2, perHour: 100)
        }) { bench, sender, _ in
            let (device, other) = (try sender.device(.fcm, 1), try sender.device(.fcm, 2))
            let chunks = try (0..<3).map { _ in try sender.chunk(device, .mip05Long) }
            let first = try await bench.counts(chunks[..<2].map { try sender.wrapped(.mip05Long, [$0]) })
            #expect(first == [1, 1])
            // Refused three times for its device, the third chunk still has its own budget afterwards.
            let refused = try await bench.counts(
                (0..<3).map { _ in try sender.wrapped(.mip05Long, [chunks[2]]) })
            #expect(refused == [nil, nil, nil])
            let mixed = try sender.wrapped(.mip05Long, [chunks[2], sender.chunk(other, .mip05Long)])
            let result = await bench.receive(mixed)
            #expect(result.count == 1)
            #expect(result.notes == ["marmot.token-over-budget": 1])
            bench.clock.advance(by: .seconds(60))
            let later = try await bench.counts(
                (0..<3).map { _ in try sender.wrapped(.mip05Long, [chunks[2]]) })
            #expect(later == [1, 1, nil])
        }
    }

    @Test("Refused for all its tokens, a trigger is taken when it comes again; with one queued it is done")
    func released() async throws {
        try await stage({ $0.budgets.deviceToken = RateRule(perMinute: 1, perHour: 100) }) {
            bench, sender, _ in
            let (device, other) = (try sender.device(.fcm, 1), try sender.device(.fcm, 2))
            let first = try sender.wrapped(.pushV1, [sender.chunk(device, .pushV1)])
            await bench.expect(wakes: 1, by: first)
            let refused = try sender.wrapped(
                .pushV1, [sender.chunk(device, .pushV1), sender.decoy(.pushV1)])
            await bench.expect(.overBudget, of: refused)
            let partly = try sender.wrapped(
                .pushV1, [sender.chunk(device, .pushV1), sender.chunk(other, .pushV1)])
            await bench.expect(wakes: 1, by: partly)
            bench.clock.advance(by: .seconds(60))
            await bench.expect(wakes: 1, by: refused)
            await bench.expect(.repeated, of: partly)
        }
    }

    @Test("When the relay owes as much as it may, the same trigger is taken later")
    func noRoom() async throws {
        var limits = DeliveryLimits()
        limits.volatilePushes = 0
        try await stage(limits: limits) { bench, sender, _ in
            let wrap = try sender.wrapped(.pushV1, [sender.chunk(sender.device(.fcm, 1), .pushV1)])
            for _ in 0..<2 {
                let result = await bench.receive(wrap)
                #expect(result.count == 0)
                #expect(result.refusal == nil)
            }
        }
    }

    @Test("Old and new key stand side by side: for wraps, and for the tokens inside")
    func rotation() async throws {
        try await stage(keys: 2) { bench, sender, pairs in
            for (wrapped, token) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let chunk = try sender.chunk(
                    sender.device(.fcm, 1), .pushV1, to: pairs[token].publicKey)
                let rumor = try sender.trigger(.pushV1, [chunk, sender.decoy(.pushV1)])
                let wrap = try sender.wrap(rumor, to: pairs[wrapped].publicKey)
                let result = await bench.receive(wrap)
                #expect(result.count == 1)
                #expect(result.ignored == 1)
            }
            #expect(bench.relay.subscription().tags == ["p": pairs.map(\.publicKey.hex)])
        }
    }

    @Test("A token for a push service that is not served leads nowhere")
    func unserved() async throws {
        for platform in DeviceTarget.Platform.allCases {
            try await stage({
                if platform == .apns { $0.topic = nil } else { $0.servesFCM = false }
            }) { bench, sender, _ in
                let chunks = try [
                    sender.chunk(sender.device(.apns, 1), .seed), sender.chunk(sender.device(.fcm, 2), .seed)
                ]
                let result = await bench.receive(try sender.wrapped(.seed, chunks))
                #expect(result.count == 1)
                #expect(result.wakes.allSatisfy { $0.platform != platform })
                #expect(result.notes == ["marmot.token-unserved": 1])
            }
        }
    }

    @Test("An APNs token longer than any path is a decoy")
    func longToken() async throws {
        try await stage { bench, sender, _ in
            let tokens = [100, 101].map { Secret([UInt8](repeating: 7, count: $0)) }
            let chunks = try tokens.map { try sender.chunk(DeviceTarget(.apns, token: $0), .pushV1) }
            let result = await bench.receive(try sender.wrapped(.pushV1, chunks))
            #expect(result.wakes.map(\.tokenHex.utf8.count) == [200])
            #expect(result.ignored == 1)
        }
    }
}

@Suite("What a wake is, and what waits", .timeLimit(.minutes(30)))
struct RelayWakeTests {
    @Test(
        "Every wake is the same: fixed words, one collapse id, a day at the push service; owed ten minutes")
    func silent() async throws {
        try await stage { bench, sender, _ in
            let chunks = try [
                sender.chunk(sender.device(.apns, 1), .pushV1), sender.chunk(sender.device(.fcm, 2), .pushV1)
            ]
            _ = await bench.receive(try sender.wrapped(.pushV1, chunks))
            for sent in bench.services.sent {
                #expect(sent.custodyEnds == bench.clock.now + .seconds(600))
                #expect(sent.custody == .volatile)
                #expect(sent.record == nil && sent.mark == nil)
                if let message = sent.message.apns {
                    #expect(message.pushType == .background && message.priority == 5)
                    #expect(message.expiration == bench.clock.now + .seconds(86_400))
                    #expect(message.collapseID.map { $0 == Secret("wake".utf8) } == true)
                    #expect(message.payload == Secret(#"{"aps":{"content-available":1}}"#.utf8))
                } else {
                    let message = try #require(sent.message.fcm)
                    #expect(message.priority == .high && message.ttl == .seconds(86_400))
                    #expect(message.collapseKey.map { $0 == Secret("wake".utf8) } == true)
                    #expect(message.data == Secret(#"{"content_available":"true"}"#.utf8))
                }
            }
            #expect(MarmotRelay.custody == .volatile)
        }
    }

    @Test("The visible modes say the same to everybody", arguments: [false, true])
    func alert(isMutable: Bool) async throws {
        let wake = try MarmotWake.alert(
            title: MarmotWake.defaultTitle, body: "Ein \"Wort\"", isMutable: isMutable)
        try await stage({ $0.wake = wake }) { bench, sender, _ in
            let chunk = try sender.chunk(sender.device(.apns, 1), .pushV1)
            _ = await bench.receive(try sender.wrapped(.pushV1, [chunk]))
            let message = try #require(bench.services.sent.first?.message.apns, "not for Apple")
            #expect(message.pushType == .alert && message.priority == 10)
            let mutable = isMutable ? #","mutable-content":1"# : ""
            let body =
                #"{"aps":{"alert":{"title":"New activity","body":"Ein \"Wort\""},"#
                + #""sound":"default"\#(mutable)}}"#
            #expect(message.payload.reveal { String(decoding: $0, as: UTF8.self) } == body)
        }
    }

    @Test(
        "Words that Apple would not take are refused at the start",
        arguments: [("", "b"), ("t", ""), ("t", String(repeating: "ä", count: 2_048))])
    func words(title: String, body: String) {
        #expect(throws: MarmotError(.tooMuchContent)) {
            try MarmotWake.alert(title: title, body: body, isMutable: false)
        }
    }

    @Test("A server has a key, and no more than it needs for a change", arguments: [0, 4])
    func keyCount(_ count: Int) {
        let world = World.fixed(seed: 5, at: UnixTime(seconds: 1))
        let pairs = (0..<count).map { _ in Secp256k1KeyPair.generate(world) }
        #expect(throws: MarmotError(.malformedKey)) {
            try MarmotServing(keys: pairs, topic: nil, servesFCM: true)
        }
    }

    @Test("Live only: what a relay had stored is not even verified, what comes live is taken at any age")
    func liveOnly() async throws {
        try await stage({ $0.backlog = .liveOnly }) { bench, sender, _ in
            let now = bench.clock.now.seconds
            for age: Int64 in [0, 300, 259_200] {
                let chunk = try sender.chunk(sender.device(.fcm, 1), .pushV1)
                let wrap = try sender.wrapped(.pushV1, [chunk], createdAt: now - age)
                await bench.expect(.tooOld, of: wrap, arrival: .stored)
                await bench.expect(wakes: 1, by: wrap, arrival: .live)
            }
        }
    }

    @Test(
        "With a grace what was stored is taken when the trigger is young enough, and not from the future",
        arguments: [(Int64(0), true), (300, true), (301, false), (-300, true), (-301, false)])
    func grace(age: Int64, isTaken: Bool) async throws {
        try await stage { bench, sender, _ in
            let chunk = try sender.chunk(sender.device(.fcm, 1), .pushV1)
            let wrap = try sender.wrapped(.pushV1, [chunk], createdAt: bench.clock.now.seconds - age)
            let result = await bench.receive(wrap, arrival: .stored)
            #expect(result.refusal == (isTaken ? nil : .tooOld))
            #expect(result.count == (isTaken ? 1 : 0))
        }
    }

    @Test(
        "A wrap that its author wants forgotten by now wakes nobody (NIP-40)",
        arguments: [(0, true), (-1, true), (1, false)])
    func expired(after span: Int64, isRefused: Bool) async throws {
        try await stage { bench, sender, _ in
            let rumor = try sender.trigger(.seed, [sender.chunk(sender.device(.fcm, 1), .seed)])
            let wrapper = Secp256k1KeyPair.generate(bench.world)
            let seal = try GiftWrap.seal(
                rumor, by: sender.author, to: sender.server.publicKey, .random(bench.world))
            let good = try GiftWrap.wrap(
                seal, by: wrapper, to: sender.server.publicKey, .random(bench.world))
            func again(_ expiration: String) -> NostrEvent {
                .signed(
                    kind: good.kind, createdAt: good.createdAt,
                    tags: good.tags + [["expiration", expiration]], content: good.content,
                    by: wrapper, auxiliary: bench.world.randomBytes(32))
            }
            let wrap = again(String(bench.clock.now.seconds + span))
            if isRefused {
                await bench.expect(.tooOld, of: wrap)
            } else {
                await bench.expect(wakes: 1, by: wrap)
            }
            #expect(!again("soon").hasExpired(at: .max) && again("0").hasExpired(at: 0))
        }
    }

    @Test(
        "What came while the connection was away is taken by its age, be stored triggers wanted or not",
        arguments: [
            (away: 0, age: Int64(300), isTaken: true), (0, 301, false), (20, 320, true), (20, 321, false),
            (3_600, 3_900, true), (7_200, 3_900, true), (7_200, 3_901, false), (20, -301, false)
        ], [MarmotBacklog.liveOnly, .grace(MarmotLimits.backlogGrace)])
    func missed(_ row: (away: Int, age: Int64, isTaken: Bool), backlog: MarmotBacklog) async throws {
        try await stage({ $0.backlog = backlog }) { bench, sender, _ in
            bench.clock.advance(by: .seconds(10_000))
            let chunk = try sender.chunk(sender.device(.fcm, 1), .pushV1)
            let wrap = try sender.wrapped(.pushV1, [chunk], createdAt: bench.clock.now.seconds - row.age)
            let result = await bench.receive(wrap, arrival: .missed(.seconds(row.away)))
            #expect(result.refusal == (row.isTaken ? nil : .tooOld))
            #expect(result.count == (row.isTaken ? 1 : 0))
        }
    }

    @Test(
        "What came or may have come before this memory began is left alone: another process may have woken",
        arguments: [0, 1, 300, 999])
    func missedBefore(millisecondsIntoSecond: Int) async throws {
        try await stage { bench, sender, _ in
            let began = bench.clock.now.seconds
            try #require(bench.clock.now == UnixTime(seconds: began))
            bench.clock.skewWall(by: .milliseconds(millisecondsIntoSecond))
            bench.clock.advance(by: .seconds(60))
            let rows = [
                (began - 1, false), (began, millisecondsIntoSecond == 0), (began + 1, true),
                (began + 59, true)
            ]
            for (at, isTaken) in rows {
                let chunk = try sender.chunk(sender.device(.fcm, Int(at - began) + 5), .pushV1)
                let wrap = try sender.wrapped(.pushV1, [chunk], createdAt: at)
                let result = await bench.receive(wrap, arrival: .missed(.seconds(20)))
                #expect(result.refusal == (isTaken ? nil : .tooOld))
            }
        }
    }

    @Test("A flood of wraps that do not open leaves memory flat, and a good one behind it wakes")
    func flood() async throws {
        try await stage({ $0.budgets.keys = 50 }) { bench, sender, _ in
            for _ in 0..<200 {
                let junk = NostrEvent.signed(
                    kind: NostrKind.giftWrap, createdAt: bench.clock.now.seconds,
                    tags: [["p", sender.server.publicKey.hex]], content: Secret([0x41, 0x41]),
                    by: .generate(bench.world), auxiliary: bench.world.randomBytes(32))
                await bench.expect(.doesNotOpen, of: junk)
            }
            for _ in 0..<20 {
                let decoys = try sender.wrapped(.pushV1, (0..<10).map { _ in sender.decoy(.pushV1) })
                await bench.expect(ignored: 10, by: decoys)
            }
            #expect(bench.relay.remembered <= 6 * 50)
            let good = try sender.wrapped(.pushV1, [sender.chunk(sender.device(.fcm, 1), .pushV1)])
            await bench.expect(wakes: 1, by: good)
        }
    }
}

extension MarmotRig {
    func expect(
        wakes count: Int, by wrap: NostrEvent, relay: Int = 0, arrival: MarmotInbound.Arrival = .live,
        at place: SourceLocation = #_sourceLocation
    ) async {
        let result = await receive(wrap, relay: relay, arrival: arrival)
        #expect(result.count == count, sourceLocation: place)
        #expect(result.refusal == nil, sourceLocation: place)
    }

    func expect(ignored count: Int, by wrap: NostrEvent, at place: SourceLocation = #_sourceLocation) async {
        let result = await receive(wrap)
        #expect(result.ignored == count, sourceLocation: place)
    }

    func expect(
        _ refusal: MarmotError.Code, of wrap: NostrEvent, relay: Int = 0,
        arrival: MarmotInbound.Arrival = .live, at place: SourceLocation = #_sourceLocation
    ) async {
        let result = await receive(wrap, relay: relay, arrival: arrival)
        #expect(result.refusal == refusal, sourceLocation: place)
        #expect(result.count == 0, sourceLocation: place)
    }

    /// How many each wrap wakes; `nil` where it was refused for want of budget.
    func counts(_ wraps: [NostrEvent]) async throws -> [Int?] {
        var counts: [Int?] = []
        for wrap in wraps {
            let result = await receive(wrap)
            #expect(result.refusal == nil || result.refusal == .overBudget)
            counts.append(result.refusal == nil ? result.count : nil)
        }
        return counts
    }
}
