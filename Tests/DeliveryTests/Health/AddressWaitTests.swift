import AtRest
import PushModel
import PushTesting
import Synchronization
import Testing

@testable import Delivery

extension Answer {
    /// Too much for that one phone.
    static func limited(_ after: Duration? = nil) -> Answer {
        Answer(.retry(after: after), .tooManyRequests, sentAt: sent)
    }
}

/// What one address has used up is its own wait (decision 0080).
@Suite("Addresses that wait", .timeLimit(.minutes(30)))
struct AddressWaitTests {
    private let start = ContinuousClock.now
    private var waits = AddressWaits(limits: DeliveryLimits())

    private mutating func wait(_ pushClass: PushClass = .normal, after span: Duration = .zero) -> Duration? {
        waits.wait(for: 7, pushClass, hasWaited: true, at: start + span)
    }

    /// Asks for the address at that moment, if it may be asked, and hears that it was too much.
    private mutating func isRefused(_ pushClass: PushClass = .normal, after span: Duration) -> Bool {
        guard wait(pushClass, after: span) == nil else { return false }
        waits.sent(to: 7)
        waits.ended(7)
        waits.note(.limited(), of: 7, at: start + span, random: .max)
        return true
    }

    @Test("The wait doubles with each refusal, up to a minute, and nobody else waits")
    mutating func doubles() {
        var asked: [Int] = []
        for tenth in 0..<3_000 where isRefused(after: .milliseconds(100 * tenth)) { asked.append(tenth) }
        let spans = zip(asked, asked.dropFirst()).map { $1 - $0 }
        for (span, most) in zip(spans, [10, 20, 40, 80, 160, 320, 600, 600, 600]) {
            #expect((most / 2...most).contains(span), "\(spans)")
        }
        #expect(waits.wait(for: 8, .normal, hasWaited: true, at: start + .seconds(300)) == nil)
        #expect(waits.refused == 1)
    }

    @Test("A call waits for its address five seconds at most, and calls do not make it be asked more often")
    mutating func calls() {
        var asked = 0
        for tenth in 0..<3_000 where isRefused(.urgent, after: .milliseconds(100 * tenth)) { asked += 1 }
        #expect((300 / 5...300 / 5 + 10).contains(asked))
        let call = waits.wait(for: 7, .urgent, hasWaited: true, at: start + .seconds(300)) ?? .zero
        let message = waits.wait(for: 7, .normal, hasWaited: true, at: start + .seconds(300)) ?? .zero
        #expect(call <= .seconds(5) && message > .seconds(20))
    }

    @Test("What the service asks for is waited, by calls too, up to the longest that any service is granted")
    mutating func retryAfter() {
        waits.note(.limited(.seconds(40)), of: 7, at: start, random: 0)
        #expect(wait() ?? .zero >= .seconds(40))
        #expect(wait(.urgent) == .seconds(40))
        waits.note(.limited(.seconds(86_400)), of: 8, at: start, random: 0)
        #expect(waits.wait(for: 8, .urgent, hasWaited: true, at: start) == .seconds(15 * 60))
    }

    @Test("Refusals of what was under way together are one")
    mutating func burst() {
        for _ in 0..<500 { waits.note(.limited(), of: 7, at: start, random: .max) }
        #expect(wait(.urgent) ?? .zero <= .seconds(1))
        #expect(wait(after: .seconds(1)) == nil)
        // Nor does an acceptance of what left before the wait end it.
        waits.note(.limited(), of: 7, at: start + .seconds(1), random: .max)
        waits.note(.accepted, of: 7, at: start + .seconds(1), random: .max)
        #expect(wait(.urgent, after: .seconds(1)) != nil)
    }

    @Test("After a wait one request finds out, and each acceptance allows one more at once")
    mutating func opens() {
        waits.note(.limited(), of: 7, at: start, random: .max)
        var (at, allowed) = (start + .seconds(1), 1)
        for _ in 0..<6 {
            var sent = 0
            while sent < 1_000, waits.wait(for: 7, .normal, hasWaited: true, at: at) == nil {
                waits.sent(to: 7)
                sent += 1
            }
            #expect(sent == allowed)
            for _ in 0..<sent {
                waits.ended(7)
                waits.note(.accepted, of: 7, at: at, random: 0)
            }
            allowed *= 2
            at += .milliseconds(10)
        }
        #expect(waits.refused == 0)
    }

    @Test("Before anything is known of an address no more than a few requests to it are under way")
    mutating func window() {
        func fill(_ address: Int) -> Int {
            var sent = 0
            while sent < 2_000, waits.wait(for: address, .normal, hasWaited: true, at: start) == nil {
                waits.sent(to: address)
                sent += 1
            }
            return sent
        }
        #expect(fill(7) == DeliveryLimits().addressWindow)
        #expect(fill(8) == DeliveryLimits().addressWindow, "another has its own")
        for _ in 0..<16 {
            waits.ended(7)
            waits.note(.accepted, of: 7, at: start, random: 0)
        }
        #expect(fill(7) == 32)
    }

    @Test("A phone that takes all it is sent is sent a thousand within seconds")
    mutating func eager() {
        let roundTrip = 80
        var waiting = [(due: Int, hasWaited: Bool)](repeating: (0, false), count: 1_000)
        var answers: [Int] = []
        var (now, most) = (0, 0)
        while !waiting.isEmpty, now < 60_000 {
            let instant = start + .milliseconds(now)
            for _ in answers.prefix(while: { $0 <= now }) {
                answers.removeFirst()
                waits.ended(7)
                waits.note(.accepted, of: 7, at: instant, random: 0)
            }
            waiting = waiting.compactMap { due, hasWaited in
                guard due <= now else { return (due, hasWaited) }
                if let wait = waits.wait(for: 7, .normal, hasWaited: hasWaited, at: instant) {
                    return (now + max(1, Int(wait.wholeMilliseconds)), true)
                }
                waits.sent(to: 7)
                answers.append(now + roundTrip)
                return nil
            }
            most = max(most, answers.count)
            now += 1
        }
        #expect(now < 5_000, "milliseconds until the last has left")
        // Each acceptance allows one more, and no more than that.
        #expect(most > DeliveryLimits().addressWindow && most < 500)
    }

    @Test("Those that wait come back one behind the other")
    mutating func returns() {
        waits.note(.limited(), of: 7, at: start, random: .max)
        let waited = (0..<100).compactMap { _ in wait() }
        for (earlier, later) in zip(waited, waited.dropFirst()) {
            #expect(later - earlier == .milliseconds(50))
        }
    }

    @Test("What has not waited goes behind what has, however often it comes just when a wait is over")
    mutating func order() {
        waits.note(.limited(), of: 7, at: start, random: .max)
        let first = wait(after: .milliseconds(10)) ?? .zero
        #expect(first > .seconds(0.9))
        func fresh(_ span: Duration) -> Duration? {
            waits.wait(for: 7, .normal, hasWaited: false, at: start + span)
        }
        // The first is on its way back from the store, and these have come meanwhile.
        #expect(fresh(.milliseconds(1_000)) != nil && fresh(.milliseconds(1_400)) != nil)
        #expect(wait(after: .milliseconds(1_500)) == nil, "its turn")
        // Where nobody is on the way back any more, nobody waits.
        #expect(fresh(.seconds(10)) == nil)
    }

    @Test("A full table remembers no further address, and has room again when waits are over")
    func bounded() {
        var waits = AddressWaits(limits: changing(DeliveryLimits()) { $0.waitingAddresses = 3 })
        for address in 1...4 { waits.note(.limited(), of: address, at: start, random: .max) }
        #expect(waits.refused == 3)
        #expect(
            waits.wait(for: 3, .normal, hasWaited: true, at: start) != nil
                && waits.wait(for: 4, .normal, hasWaited: true, at: start) == nil)
        // Busy ones that cannot be counted are not held up either.
        for _ in 0..<100 { waits.sent(to: 5) }
        #expect(waits.wait(for: 5, .normal, hasWaited: true, at: start) == nil)
        for tick in 1...700 { waits.tick(at: start + .milliseconds(100 * tick)) }
        #expect(waits.refused == 0)
        waits.note(.limited(), of: 4, at: start + .seconds(70), random: .max)
        #expect(waits.refused == 1)
    }
}

@Suite("A phone whose quota is full", .timeLimit(.minutes(30)))
struct PhoneQuotaTests {
    /// A service that takes so many pushes to one phone in a minute, and says of the others that it was too
    /// much.
    private final class Quota: Sendable {
        private let clock: ManualClock
        private let most: Int
        private let refusal: Answer
        private let taken = Mutex<[String: Int]>([:])
        private let refusals = Mutex(0)
        var refused: Int { refusals.withLock(\.self) }

        init(_ clock: ManualClock, of most: Int, refusal: Answer) {
            self.clock = clock
            self.most = most
            self.refusal = refusal
        }

        func answer(_ push: OwedPush) -> Answer {
            let key = "\(push.address) \(clock.elapsed.components.seconds / 60)"
            let isTaken = taken.withLock { taken in
                guard taken[key, default: 0] < most else { return false }
                taken[key, default: 0] += 1
                return true
            }
            if !isTaken { refusals.withLock { $0 += 1 } }
            return isTaken ? .accepted : refusal
        }
    }

    static let refusals = [
        Answer.limited(), Answer(.retry(after: nil), .deviceQuotaExceeded, sentAt: Answer.sent),
        Answer(.retry(after: .seconds(10)), .quotaExceeded, sentAt: Answer.sent)
    ]

    @Test(
        "However much is owed to it, its service is seldom asked, and nobody else's push waits",
        arguments: refusals)
    func others(_ refusal: Answer) async throws {
        let depot = Depot()
        let quota = Quota(depot.clock, of: 20, refusal: refusal)
        let provider = ScriptedProvider(Names.fcm, slots: 1_000) { quota.answer($0) }
        try await Rig.run(depot, .of(provider)) { rig in
            // Few enough that nobody is told to come back for the length of the queue, even where the store is
            // slow and each is counted on its way there and back.
            try await rig.owe((1...400).map { push($0, origin: "stranger", .urgent, address: "phone") })
            // A little less than the minute, after which the phone takes twenty more.
            for number in 1_000..<1_118 {
                let other = push(number, origin: "two", address: "phone \(number)")
                try await rig.expect([.accepted], of: [other])
                await rig.pass(.milliseconds(500), step: .milliseconds(500))
            }
            #expect(quota.refused <= 60, "\(quota.refused) refusals in a minute")
            #expect(!rig.journal.contains("lane slowed") && rig.events.text.isEmpty)
            #expect(try rig.lane().waitingAddresses == 1)
        }
    }

    @Test("What is owed to it arrives as fast as there is room for it", arguments: EngineKind.allCases)
    func arrives(_ kind: EngineKind) async throws {
        let depot = Depot(kind)
        let quota = Quota(depot.clock, of: 20, refusal: .limited())
        let provider = ScriptedProvider(Names.fcm, slots: 8) { quota.answer($0) }
        try await Rig.run(depot, .of(provider)) { rig in
            try await rig.owe((1...60).map { push($0, address: "phone") })
            await rig.pass(until: rig.outbox.ended, reaches: 60, step: .milliseconds(500))
            // Three minutes' worth: the longest wait may be added to each of two.
            #expect(depot.clock.elapsed < .seconds(300))
            #expect(quota.refused < 100)
            try await rig.expectRows(0)
        }
    }

    @Test("A thousand pushes to one phone at once are not a thousand questions")
    func thousand() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 1_000) { _ in .limited() }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe((1...1_000).map { push($0, origin: "o\($0 % 7)", address: "phone") })
            await rig.pass(.seconds(20))
            #expect(provider.sent.count <= DeliveryLimits().addressWindow + 10)
            try await rig.expectRows(1_000)
        }
    }

    @Test("No reply waits for a phone that waits, and a call leaves within five seconds")
    func replies() async throws {
        let depot = Depot()
        let quota = Quota(depot.clock, of: 1, refusal: .limited())
        let provider = ScriptedProvider(Names.fcm) { quota.answer($0) }
        try await Rig.run(depot, .of(provider)) { rig in
            try await rig.expect([.accepted], of: [push(1, address: "phone")])
            for number in 2...8 { try await rig.owe([push(number, address: "phone")]) }
            await rig.pass(.seconds(40), step: .milliseconds(500))
            // No time passes here.
            try await rig.expect(
                [.pending, .accepted], of: [push(20, address: "phone"), push(21, address: "other")])
            await rig.pass(.seconds(20), step: .milliseconds(500))
            let before = provider.sent.count
            try await rig.owe([push(30, .urgent, address: "phone")])
            await rig.pass(.seconds(6))
            #expect(provider.sent.dropFirst(before).contains { $0.pushClass == .urgent })
        }
    }

    @Test("Two phones for which the service alone has no time wait by themselves, and slow nobody")
    func fewAddresses() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 8) { push in
            push.address.hasPrefix("bad") ? .busy() : .accepted
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe((1...400).map { push($0, address: "bad \($0 % 2)") })
            await provider.waitForSent(100)
            await rig.pass(.seconds(1))
            let before = provider.sent.count
            try await rig.expect(
                Array(repeating: .accepted, count: 40),
                of: (1_000..<1_040).map { push($0, origin: "two", address: "good \($0)") })
            await rig.pass(.seconds(20))
            #expect(provider.sent.count - before - 40 < 40)
            #expect(!rig.journal.contains("lane slowed"))
        }
    }
}
