@testable import Delivery
import PushModel
import PushTesting
import Synchronization
import Testing

@Suite("A service that refuses everything", .timeLimit(.minutes(30)))
struct ThrottleTests {
    private static let refusal = Answer.busy()

    @Test("A hundred refusals in a row slow the lane to one push a tick; ninety-nine do not")
    func begins() {
        var throttle = Throttle(refusals: 100, open: 4_096)
        for _ in 0..<99 {
            let change = throttle.note(Self.refusal, address: 1)
            #expect(change == .none)
        }
        #expect(throttle.allowance == nil)
        let change = throttle.note(Self.refusal, address: 1)
        #expect(change == .slowed)
        #expect(throttle.allowance == 1)
        #expect(!throttle.maySend)
        #expect(throttle.tick() == false)
        #expect(throttle.maySend)
        throttle.sent()
        #expect(!throttle.maySend)
    }

    @Test("One acceptance among them begins the count anew")
    func mixed() {
        var throttle = Throttle(refusals: 100, open: 4_096)
        for number in 0..<1_000 {
            let change = throttle.note(number % 60 == 59 ? .accepted : Self.refusal, address: number)
            #expect(change == .none)
        }
        #expect(throttle.allowance == nil)
    }

    @Test("Acceptances double what may be sent in a tick until nothing is held back; refusals halve it")
    func recovers() {
        var throttle = Throttle(refusals: 1, open: 32)
        _ = throttle.note(Self.refusal, address: 1)
        var seen: [Int?] = []
        _ = throttle.tick()
        for answer in [Answer.accepted, .accepted, .accepted, Self.refusal, .accepted, .accepted] {
            _ = throttle.note(answer, address: 1)
            _ = throttle.tick()
            seen.append(throttle.allowance)
        }
        #expect(seen == [2, 4, 8, 4, 8, 16])
        // As many of each leave it as it is.
        _ = throttle.note(.accepted, address: 1)
        _ = throttle.note(Self.refusal, address: 1)
        _ = throttle.tick()
        #expect(throttle.allowance == 16)
        _ = throttle.note(.accepted, address: 1)
        let isOpen = throttle.tick()
        #expect(isOpen)
        #expect(throttle.allowance == nil)
    }

    @Test(
        "What the service says of one push counts as an acceptance does: it has looked at it",
        arguments: [Answer.gone(at: .distantPast), .rejected, .badDeviceToken, .badTopic])
    func looksAtPushes(_ answer: Answer) {
        var throttle = Throttle(refusals: 1, open: 32)
        _ = throttle.note(Self.refusal, address: 1)
        _ = throttle.tick()
        for _ in 0..<5 {
            #expect(throttle.allowance != nil)
            _ = throttle.note(answer, address: 1)
            _ = throttle.tick()
        }
        #expect(throttle.allowance == nil)
    }

    @Test("A tick without an answer changes nothing, and the floor is one")
    func floor() {
        var throttle = Throttle(refusals: 1, open: 32)
        for _ in 0..<10 {
            _ = throttle.note(Self.refusal, address: 1)
            _ = throttle.tick()
            _ = throttle.tick()
            #expect(throttle.allowance == 1)
        }
    }

    @Test(
        "Nobody's device, connection or token slows a lane",
        arguments: [
            Answer(.retry(after: nil), .tooManyRequests, sentAt: Answer.sent),
            Answer(.retry(after: nil), .idleTimeout, sentAt: Answer.sent),
            Answer(.retry(after: nil), .shutdown, sentAt: Answer.sent),
            Answer(.retry(after: nil), .expiredProviderToken, sentAt: Answer.sent),
            Answer(.retry(after: nil), .deadlineExceeded, sentAt: Answer.sent, fate: .unknown),
            Answer(.retry(after: nil), .connectionLost, sentAt: Answer.sent, fate: .unprocessed),
            .rejected, .badDeviceToken, .badTopic
        ])
    func others(_ answer: Answer) {
        var throttle = Throttle(refusals: 1, open: 32)
        let change = throttle.note(answer, address: 1)
        #expect(change == .none)
    }

    @Test("Refusals of fewer addresses than it takes slow nobody else: these addresses are named")
    func fewAddresses() {
        var throttle = Throttle(refusals: 10, addresses: 3, open: 32)
        for round in 0..<5 {
            for number in 0..<9 {
                let change = throttle.note(Self.refusal, address: number % 2)
                #expect(change == .none, "round \(round)")
            }
            let change = throttle.note(Self.refusal, address: 0)
            #expect(change == .few([0, 1]), "round \(round)")
            #expect(throttle.allowance == nil)
        }
        for number in 0..<9 { _ = throttle.note(Self.refusal, address: number % 3) }
        let change = throttle.note(Self.refusal, address: 0)
        #expect(change == .slowed)
    }

    @Test("In a storm of 503 a lane that owes thousands sends one push a tick, a call before the others")
    func storm() async throws {
        let isBack = Mutex(false)
        let accepted = Mutex<[PushID]>([])
        let provider = ScriptedProvider(Names.fcm, slots: 64) { push in
            guard isBack.withLock(\.self) else { return .busy() }
            accepted.withLock { $0.append(push.id) }
            return .accepted
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe((0..<5_000).map { push($0, origin: "o\($0 % 9)") })
            await provider.waitForSent(100)
            await rig.pass(.seconds(1))
            let before = provider.sent.count
            // What was under way when the hundredth answer came is sent as well.
            #expect(before <= 100 + 64 + 10)
            await rig.pass(.seconds(60))
            #expect(provider.sent.count <= before + 600)
            try await rig.owe([push(9_999, .urgent)])
            let calls = provider.sent.count
            await rig.pass(.milliseconds(300))
            await rig.pass(untilSent: calls + 2, by: provider)
            // One may have been on its way when the call came.
            #expect(provider.addresses[calls..<calls + 2].contains("t9999"))
            isBack.withLock { $0 = true }
            await rig.pass(until: rig.outbox.ended, reaches: 5_001)
            try await rig.expectRows(0)
        }
        #expect(Set(accepted.withLock(\.self)).count == 5_001)
        #expect(accepted.withLock(\.count) == 5_001)
    }
}
