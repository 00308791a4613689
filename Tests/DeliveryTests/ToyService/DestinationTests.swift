import AtRest
@testable import Delivery
import PushModel
import PushTesting
import Synchronization
import Testing

/// Pushes of one lane that go to several authorities, of which one is in trouble.
@Suite("Destinations of one lane", .timeLimit(.minutes(30)))
struct DestinationTests {
    private static let lane = LaneName(app: Names.acme, service: .pigeon, environment: .production)
    private static let good = "good.example:443"
    private static let bad = "bad.example:443"

    private static func pigeon(_ number: Int, to coast: String, custodyEnds: Int64 = 1_801_000_000) -> Push {
        Push(
            message: ProviderMessage(
                PigeonMessage(
                    loft: Secret("\(coast)/\(number)".utf8), note: Secret("n".utf8), coast: coast)),
            pushClass: .normal, origin: Secret("one".utf8), record: nil, touchedAt: .distantPast,
            custodyEnds: UnixTime(seconds: custodyEnds), repeatIdentity: Secret("\(coast) \(number)".utf8))
    }

    private static func plan(_ provider: ScriptedProvider) -> DeliveryService.Setup {
        let outlet = PigeonOutlet(environment: .fixed(.production))
        let app = AppDirectory.App(name: Names.acme, outlets: [outlet])
        return DeliveryService.Setup(
            apps: AppDirectory([AppDirectory.Instance(name: Names.instance, apps: [app])]),
            lanes: [DeliveryService.LaneSpec(provider, credential: Credential())], overrides: [:])
    }

    private func count(_ provider: ScriptedProvider, _ coast: String) -> Int {
        provider.addresses.count { $0.hasPrefix(coast) }
    }

    /// A lane of which the bad one answers as the test says, until it is cured.
    private func run(
        _ kind: EngineKind = .memory, limits: DeliveryLimits = DeliveryLimits(), slots: Int = 4,
        bad answer: @escaping @Sendable () async -> Answer,
        _ body: (Rig, ScriptedProvider, _ cure: () -> Void) async throws -> Void
    ) async throws {
        let isCured = Mutex(false)
        let provider = ScriptedProvider(Self.lane, slots: slots) { push in
            let isGood = push.address.hasPrefix(Self.good) || isCured.withLock(\.self)
            return isGood ? .accepted : await answer()
        }
        try await Rig.run(
            Depot(kind), Self.plan(provider), limits: limits, services: .withPigeons
        ) { rig in
            try await body(rig, provider) { isCured.withLock { $0 = true } }
        }
    }

    @Test("One that is out holds nothing of another, and gets what is its own when it is back")
    func out() async throws {
        try await run(bad: { .notReached }) { rig, provider, cure in
            try await rig.owe((1...60).map { Self.pigeon($0, to: Self.bad) })
            await rig.pass(untilSent: DeliveryLimits().silentAnswers, by: provider)
            let tried = provider.sent.count
            try await rig.expect(
                Array(repeating: .accepted, count: 30), of: (1...30).map { Self.pigeon($0, to: Self.good) })
            #expect(count(provider, Self.bad) <= tried + 1, "and it was asked no more than now and then")
            let lane = try rig.lane(Self.lane)
            #expect(!lane.isHalted && !lane.isUnanswered && lane.heldDestinations == 1)
            await rig.outbox.ended.wait(for: 30)
            cure()
            await rig.pass(until: rig.outbox.ended, reaches: 90)
            try await rig.expectRows(0)
            #expect(try rig.lane(Self.lane).heldDestinations == 0)
        }
    }

    @Test(
        "However much it is owed, what another is owed behind it in the store goes on",
        arguments: EngineKind.allCases)
    func behind(_ kind: EngineKind) async throws {
        var limits = DeliveryLimits()
        limits.lanePushes = 16
        limits.claimRows = 8
        try await run(kind, limits: limits, bad: { .notReached }) { rig, provider, cure in
            try await rig.owe((1...150).map { Self.pigeon($0, to: Self.bad) })
            try await rig.owe((1...40).map { Self.pigeon($0, to: Self.good) })
            await rig.pass(until: rig.outbox.ended, reaches: 40)
            #expect(count(provider, Self.good) == 40)
            try await rig.expectRows(150)
            cure()
            await rig.pass(until: rig.outbox.ended, reaches: 190)
            try await rig.expectRows(0)
        }
    }

    @Test("One that takes requests and answers none keeps a few of them under way, and no more")
    func hangs() async throws {
        let release = AwaitedCount()
        let answer: @Sendable () async -> Answer = { await Answer.accepted.after(release) }
        let window = DeliveryLimits().destinationWindow
        // A slot is free before the lane has read the answer: fewer than the window are left for the other.
        try await run(slots: window + window / 2, bad: answer) { rig, provider, _ in
            try await rig.owe((1...50).map { Self.pigeon($0, to: Self.bad) })
            await provider.waitForSent(window)
            try await rig.expect(
                Array(repeating: .accepted, count: 20), of: (1...20).map { Self.pigeon($0, to: Self.good) })
            await rig.pass(.seconds(2))
            #expect(count(provider, Self.bad) == window)
            release.add()
            await rig.pass(until: rig.outbox.ended, reaches: 70)
            #expect(count(provider, Self.bad) == 50)
        }
    }

    @Test("A credential that one refuses halts what goes there; one probe a minute, and no other is halted")
    func refused() async throws {
        try await run(limits: .haltsAtOnce, slots: 1, bad: { .badCredential }) { rig, provider, cure in
            try await rig.expect([.known(.misconfigured)], of: [Self.pigeon(1, to: Self.bad)])
            try await rig.owe((2...10).map { Self.pigeon($0, to: Self.bad) })
            try await rig.expect([.accepted], of: [Self.pigeon(1, to: Self.good)])
            let lane = try rig.lane(Self.lane)
            #expect(!lane.isHalted && lane.heldDestinations == 1)
            #expect(rig.events.text == [], "no lane is halted")
            let before = count(provider, Self.bad)
            await rig.pass(.seconds(30), step: .seconds(1))
            #expect(count(provider, Self.bad) == before, "no probe before its time")
            await rig.pass(.seconds(60), step: .seconds(1))
            await provider.waitForSent(before + 2)
            cure()
            await rig.pass(until: rig.outbox.ended, reaches: 11)
            try await rig.expectRows(0)
        }
    }

    @Test("One that asks for time is slowed alone")
    func slowed() async throws {
        let limits = changing(DeliveryLimits()) { $0.throttleRefusals = 5 }
        try await run(limits: limits, bad: { .busy() }) { rig, provider, _ in
            try await rig.owe((1...40).map { Self.pigeon($0, to: Self.bad) })
            await provider.waitForSent(5)
            try await rig.expect(
                Array(repeating: .accepted, count: 20), of: (1...20).map { Self.pigeon($0, to: Self.good) })
            #expect(!rig.journal.contains("lane slowed"))
        }
    }

    @Test("What a destination puts off ends with its custody")
    func ends() async throws {
        try await run(bad: { .notReached }) { rig, provider, _ in
            let ends = rig.clock.now.seconds + 120
            try await rig.owe((1...60).map { Self.pigeon($0, to: Self.bad, custodyEnds: ends) })
            await rig.pass(untilSent: DeliveryLimits().silentAnswers, by: provider)
            await rig.pass(until: rig.custodyEnded, reaches: 60, step: .seconds(1))
            try await rig.expectRows(0)
        }
    }

    // MARK: the value

    @Test("A bounded number is remembered: the longest unused is forgotten, of those without requests first")
    func bounded() {
        let instant = ContinuousClock.now
        var known = Destinations(limits: changing(DeliveryLimits()) { $0.destinations = 3 })
        known.change(1) { $0.sent(at: instant) }
        for number in 2...3 { known.change(number) { _ in } }
        known.change(4) { _ in }
        #expect(known.numbers == [1, 3, 4], "2 had nothing under way")
        for number in [1, 3, 4] { known.change(number) { $0.sent(at: instant) } }
        known.change(5) { _ in }
        #expect(known.numbers == [3, 4, 5], "when all have, the oldest")
        // The answer of one that was forgotten is nobody's.
        known.change(1) { $0.ended() }
        #expect(known.change(1) { $0.inFlight } == 0)
    }

    @Test("A window opens with answers and closes with silence")
    func window() {
        let instant = ContinuousClock.now
        var one = Destination(limits: changing(DeliveryLimits()) { $0.destinationWindow = 2 })
        let some = samplePush(1)
        func fill() -> Int {
            var sent = 0
            while sent < 100, one.wait(for: some, at: instant) == nil {
                one.sent(at: instant)
                sent += 1
            }
            for _ in 0..<sent { one.ended() }
            return sent
        }
        #expect(fill() == 2)
        for _ in 0..<6 { _ = one.note(.accepted, address: 1, at: instant, random: 0) }
        #expect(fill() == 8)
        _ = one.note(.silence, address: 1, at: instant, random: 0)
        #expect(fill() == 4)
        for _ in 0..<5 { _ = one.note(.silence, address: 1, at: instant, random: 0) }
        #expect(fill() == 1)
    }
}

/// Destinations that do not answer.
@Suite("Silent destinations", .timeLimit(.minutes(30)))
struct SilentDestinationTests {
    @Test("While one push is tried the others look again soon, and all leave once it is answered")
    func aTry() {
        let limits = DeliveryLimits()
        var instant = ContinuousClock.now
        var one = Destination(limits: limits)
        for _ in 0..<limits.silentAnswers { _ = one.note(.notReached, address: 1, at: instant, random: .max) }
        instant += .seconds(60)
        let urgent = samplePush(1, pushClass: .urgent)
        #expect(one.wait(for: urgent, at: instant) == nil)
        one.sent(at: instant)
        let wait = one.wait(for: urgent, at: instant) ?? .zero
        #expect(wait > .zero && wait <= limits.silentCap, "\(wait)")
        one.ended()
        _ = one.note(.accepted, address: 1, at: instant, random: 0)
        #expect(one.wait(for: urgent, at: instant) == nil)
    }

    @Test("Those that have not answered have few requests together, and take none of the others'")
    func together() {
        let instant = ContinuousClock.now
        var known = Destinations(limits: changing(DeliveryLimits()) { $0.doubtfulRequests = 2 })
        func leaves(_ number: Int) -> Bool {
            let mayDoubt = known.mayDoubt(number)
            return known.change(number) { destination in
                guard destination.wait(for: samplePush(1), at: instant, mayDoubt: mayDoubt) == nil else {
                    return false
                }
                destination.sent(at: instant)
                return true
            }
        }
        for number in 1...4 {
            known.change(number) { _ = $0.note(.silence, address: number, at: instant, random: 0) }
        }
        #expect((1...4).map(leaves) == [true, true, false, false])
        #expect(leaves(5), "one that nothing is known of")
        known.change(1) { $0.ended() }
        #expect(leaves(3))
        known.change(2) { destination in
            destination.ended()
            _ = destination.note(.accepted, address: 2, at: instant, random: 0)
        }
        #expect(leaves(2), "one that has answered")
        #expect(leaves(4))
    }
}

/// What a lane keeps of destinations, without the lane.
@Suite("Known destinations", .timeLimit(.minutes(30)))
struct KnownDestinationTests {
    private static let now = ContinuousClock.now

    private static func three() -> Destinations {
        var known = Destinations(limits: changing(DeliveryLimits()) { $0.destinations = 3 })
        for number in 1...3 { known.change(number) { _ in } }
        return known
    }

    @Test("A new one takes the place of the one that nobody has asked for longest")
    func oldest() {
        var known = Self.three()
        known.change(1) { _ in }
        known.change(4) { _ in }
        #expect(known.numbers == [1, 3, 4])
        known.change(3) { _ in }
        known.change(5) { _ in }
        #expect(known.numbers == [3, 4, 5])
        known.change(6) { _ in }
        #expect(known.numbers == [3, 5, 6])
    }

    @Test("One with requests under way stays while another has none, and its count with it")
    func busy() {
        var known = Self.three()
        for number in [1, 2] { known.change(number) { $0.sent(at: Self.now) } }
        known.change(4) { _ in }
        known.change(5) { _ in }
        #expect(known.numbers == [1, 2, 5])
        #expect(known.change(1) { $0.inFlight } == 1)
        // Asked for just now, and idle again: 5 is the one that waits longest.
        known.change(2) { $0.ended() }
        known.change(6) { _ in }
        #expect(known.numbers == [1, 2, 6])
        known.change(7) { _ in }
        #expect(known.numbers == [1, 6, 7])
    }

    @Test("Where all have requests the one that nobody has asked for longest goes, and begins anew")
    func allBusy() {
        var known = Self.three()
        for number in [2, 3, 1] { known.change(number) { $0.sent(at: Self.now) } }
        known.change(4) { $0.sent(at: Self.now) }
        #expect(known.numbers == [1, 3, 4])
        #expect(known.change(2) { $0.inFlight } == 0)
        #expect(known.numbers == [1, 2, 4])
    }

    @Test("As many as may be are known after any order of uses, and the last of them stay")
    func many() {
        var known = Destinations(limits: changing(DeliveryLimits()) { $0.destinations = 16 })
        var random = SeededRandom(seed: 7)
        var uses: [Int] = []
        for _ in 0..<5_000 {
            let number = Int.random(in: 0..<40, using: &random)
            known.change(number) { _ in }
            uses.removeAll { $0 == number }
            uses.append(number)
            #expect(known.numbers == Set(uses.suffix(16)))
        }
    }
}
