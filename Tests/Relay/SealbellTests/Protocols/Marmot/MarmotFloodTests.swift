import MarmotPublishing
import MarmotPush
import NIOPosix
import NostrIngress
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import Testing
import WireFormats

@testable import RelayProgram

@Suite("Marmot under floods, liars and clocks, over real sockets", .timeLimit(.minutes(30)))
struct MarmotFloodTests {
    /// The meters are the whole process's, so each test counts under an instance of its own.
    static func text(_ instance: String, _ more: String = "") -> String {
        MarmotTests.text(more).replacing("marmot-main", with: instance)
    }

    static let wraps = "sealbell_marmot_wraps_total"
    static let notes = "sealbell_nostr_relay_notes_total"

    /// Returns when all relays of the instance have the subscription in force.
    static func listening(_ running: RunningRelay, _ instance: String, _ count: Int) async throws {
        try await running.until(notes, ["instance": instance, "note": "listening"], reaches: Double(count))
    }

    @Test("While one relay floods with wraps that do not open, those of another wake, and memory stays flat")
    func flood() async throws {
        let instance = "marmot-flood"
        // With grace: a connection that a loaded machine loses and makes again misses nothing.
        try await RelayStage.with(Self.text(instance, "backlog: grace")) { stage in
            let flooding = try await stage.addNostrRelay()
            try await stage.run { running in
                let sender = try MarmotSender(running, instance)
                try await Self.listening(running, instance, 2)
                // Most have right signatures, so that each costs the work of opening; the others are forged.
                let junk = try (0..<300).map { number in
                    let wrap = try sender.junk()
                    return number.isMultiple(of: 5) ? Self.forged(wrap) : wrap
                }
                let flood = 50_000_000
                flooding.flood(junk, count: flood)
                for (outcome, least) in [("doesNotOpen", 240.0), ("badSignature", 60), ("repeated", 400)] {
                    try await running.until(
                        Self.wraps, ["instance": instance, "outcome": outcome], reaches: least)
                }
                let keys = try await running.metric("sealbell_marmot_remembered", ["instance": instance])
                var before = try await running.metric(Self.wraps, ["instance": instance])
                for number in 1...3 {
                    let apple = try MarmotSender.apple()
                    let woken = stage.apns.subscribe(token: apple.token)
                    await sender.publish(try sender.wake(apple.target))
                    _ = try await woken.next("a delivery")
                    // The flood goes on meanwhile, and nothing of it is kept.
                    try await running.until(Self.wraps, ["instance": instance], reaches: before + 400)
                    before = try await running.metric(Self.wraps, ["instance": instance])
                    let queued = try await running.metric(
                        "sealbell_nostr_events_queued", ["instance": instance])
                    // Half of 32 MiB, and events of half a KiB at least.
                    #expect(queued <= Double(16 << 20) / 512 + 1)
                    let now = try await running.metric("sealbell_marmot_remembered", ["instance": instance])
                    // A wake leaves its wrap, rumor, content, sender, two tokens and its device's pause.
                    #expect(now <= keys + Double(7 * number))
                }
                #expect(flooding.counters.eventsSent < flood, "the flood goes on")
                #expect(keys <= 300)
                #expect(stage.apns.deliveries().count == 3)
            }
        }
    }

    /// The same with another content: neither id nor signature fits.
    private static func forged(_ wrap: NostrEvent) -> NostrEvent {
        let text = wrap.serialized().reveal { String(decoding: $0, as: UTF8.self) }
        let changed = text.replacing(#""created_at":"#, with: #""created_at":1"#)
        // A number with one digit more is as well-formed as it was.
        guard let event = try? NostrEvent.parse(Secret(changed.utf8)) else { return wrap }
        return event
    }

    @Test(
        "A relay that lies neither wakes anybody nor stands in the way of one that does not",
        arguments: NostrRelayKnobs.Lie.allCases)
    func lies(_ lie: NostrRelayKnobs.Lie) async throws {
        let instance = "marmot-\(lie.rawValue.lowercased())"
        try await RelayStage.with(Self.text(instance)) { stage in
            let liar = try await stage.addNostrRelay()
            liar.turn { $0.lies = [lie] }
            try await stage.run { running in
                let sender = try MarmotSender(running, instance)
                try await Self.listening(running, instance, 2)
                let apple = try MarmotSender.apple()
                let wrap = try sender.wake(apple.target)
                let woken = stage.apns.subscribe(token: apple.token)
                switch lie {
                case .badSignature, .wrongID:
                    liar.inject(wrap)
                    try await running.until(
                        Self.wraps, ["instance": instance, "outcome": "badSignature"], reaches: 1)
                case .strangeSubscription:
                    liar.inject(wrap)
                    try await running.until(
                        Self.notes, ["instance": instance, "note": "strange-subscription"], reaches: 1)
                case .wrongFilter:
                    for event in try [Self.foreign(wrap), Self.note()] { liar.inject(event) }
                    try await running.until(
                        Self.notes, ["instance": instance, "note": "wrong-filter"], reaches: 2)
                }
                #expect(stage.apns.deliveries().isEmpty)
                stage.sandbox.nostr.inject(wrap)
                _ = try await woken.next("a delivery")
                #expect(stage.apns.deliveries().count == 1)
            }
        }
    }

    /// A wrap for somebody else.
    private static func foreign(_ wrap: NostrEvent) -> NostrEvent {
        .signed(
            kind: NostrKind.giftWrap, createdAt: wrap.createdAt,
            tags: [["p", Secp256k1KeyPair.generate(.live).publicKey.hex]], content: wrap.content,
            by: .generate(.live), auxiliary: World.live.randomBytes(32))
    }

    private static func note() throws -> NostrEvent {
        .signed(
            kind: 1, createdAt: World.live.now().seconds, tags: [], content: Secret("hello".utf8),
            by: .generate(.live), auxiliary: World.live.randomBytes(32))
    }

    @Test("Two relays that say everything fifty times, and never that it was all, wake each phone once")
    func repeats() async throws {
        let instance = "marmot-repeats"
        try await RelayStage.with(Self.text(instance)) { stage in
            let relays = [stage.sandbox.nostr, try await stage.addNostrRelay()]
            for relay in relays { relay.turn { $0.copies = 50 } }
            relays[1].turn { $0.withholdsEndOfStored = true }
            try await stage.run(spans: { $0.spans.nostr.endOfStored = .seconds(10) }) { running in
                let sender = try MarmotSender(running, instance)
                try await Self.listening(running, instance, 1)
                try await running.until(
                    Self.notes, ["instance": instance, "note": "end-withheld"], reaches: 1)
                var devices: [String] = []
                for _ in 0..<4 {
                    let apple = try MarmotSender.apple()
                    devices.append(apple.token)
                    let wrap = try sender.wake(apple.target)
                    for relay in relays { relay.inject(wrap) }
                }
                try await running.until(
                    Self.wraps, ["instance": instance, "outcome": "repeated"], reaches: 4 * 100 - 4)
                try await running.until(
                    Self.wraps, ["instance": instance, "outcome": "taken"], reaches: 4)
                // Apple's are sent beside Google's.
                try await asked(for: "a delivery to each device") {
                    stage.apns.deliveries().count >= devices.count
                }
                try await running.owesNothing(instance)
                #expect(stage.apns.deliveries().map(\.token).sorted() == devices.sorted())
            }
        }
    }

    @Test("A clock that is set frees no repeat, spends no budget, and spoils neither tokens nor custody")
    func clocks() async throws {
        let instance = "marmot-clocks"
        let clock = SkewedClock()
        try await RelayStage.running(Self.text(instance), world: clock.world) { running in
            let sender = try MarmotSender(running, instance)
            try await Self.listening(running, instance, 1)
            let (apple, owed) = (try MarmotSender.apple(), try MarmotSender.apple())
            let first = try sender.wake(apple.target)
            let woken = running.stage.apns.subscribe(token: apple.token)
            await sender.publish(first)
            _ = try await woken.next("a delivery")
            // Owed while the clock is set, on a lane whose token was made before.
            running.stage.apns.turn { $0.errorShare = 1 }
            let late = running.stage.apns.subscribe(token: owed.token)
            await sender.publish(try sender.wake(owed.target))
            try await asked(for: "a refusal") {
                running.stage.apns.counters.byReason["InternalServerError"] != nil
            }
            clock.set(by: .seconds(200_000))
            running.stage.apns.turn { $0.errorShare = 0 }
            _ = try await late.next("a delivery")
            // Back again, further than it had gone.
            clock.set(by: .seconds(-400_000))
            running.stage.sandbox.nostr.flood(first, count: 20)
            try await running.until(
                Self.wraps, ["instance": instance, "outcome": "repeated"], reaches: 20)
            for _ in 0..<10 {
                let google = try MarmotSender.google()
                let wokenByGoogle = running.stage.fcm.subscribe(address: google.token)
                running.stage.sandbox.nostr.inject(try sender.wake(google.target))
                _ = try await wokenByGoogle.next("a delivery")
            }
            #expect(running.stage.apns.deliveries().count == 2)
            #expect(
                try await running.metric(Self.wraps, ["instance": instance, "outcome": "overBudget"]) == 0
            )
        }
    }
}

extension RunningRelay {
    /// Returns when a last wake has been sent. It comes behind all others; some may still be worked on.
    func owesNothing(_ instance: String) async throws {
        let sender = try MarmotSender(self, instance)
        let google = try MarmotSender.google()
        let woken = stage.fcm.subscribe(address: google.token)
        stage.sandbox.nostr.inject(try sender.wake(google.target))
        _ = try await woken.next("a delivery")
    }
}
