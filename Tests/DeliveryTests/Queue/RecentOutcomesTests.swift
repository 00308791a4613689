import PushModel
import PushTesting
import Testing

@testable import Delivery

@Suite("The last first outcomes")
struct RecentOutcomesTests {
    private static func id(_ number: UInt64) -> PushID { PushID(Digest16(high: 3, low: number)) }

    @Test("What was known first stays known; what was pending becomes known")
    func first() {
        var recent = RecentOutcomes(4)
        #expect(recent[Self.id(1)] == nil)
        #expect(recent.note(.pending, of: Self.id(1)) == nil)
        #expect(recent[Self.id(1)] == .pending)
        _ = recent.note(.known(.accepted), of: Self.id(1))
        #expect(recent.note(.known(.rejected), of: Self.id(1)) == nil)
        #expect(recent[Self.id(1)] == .known(.accepted))
        _ = recent.note(.dropped, of: Self.id(2))
        _ = recent.note(.known(.accepted), of: Self.id(2))
        #expect(recent[Self.id(2)] == .dropped && recent.count == 2)
    }

    @Test(
        "As many as it has room for, the oldest forgotten first, whatever comes",
        arguments: [1, 2, 7, 64, 300])
    func model(_ capacity: Int) {
        var random = SeededRandom(seed: UInt64(capacity))
        var recent = RecentOutcomes(capacity)
        var known: [PushID: FirstOutcome] = [:]
        var order: [PushID] = []
        let outcomes: [FirstOutcome] = [.pending, .dropped, .known(.accepted), .known(.retry)]
        for _ in 0..<capacity * 20 {
            // Of few, so that some come again.
            let id = Self.id(random.next() % UInt64(capacity * 3))
            let outcome = outcomes[Int(random.next() % 4)]
            let forgotten = recent.note(outcome, of: id)
            var expected: PushID?
            if let before = known[id] {
                if before == .pending { known[id] = outcome }
            } else {
                known[id] = outcome
                order.append(id)
                if order.count > capacity {
                    expected = order.removeFirst()
                    if let expected { known[expected] = nil }
                }
            }
            #expect(forgotten == expected)
        }
        for number in 0..<UInt64(capacity * 3) {
            #expect(recent[Self.id(number)] == known[Self.id(number)])
        }
        #expect(recent.count == capacity)
    }

    @Test("Without room nothing is remembered")
    func none() {
        var recent = RecentOutcomes(0)
        #expect(recent.note(.dropped, of: Self.id(1)) == Self.id(1))
        #expect(recent[Self.id(1)] == nil && recent.count == 0)
    }
}
