@testable import MarmotPush
import PushModel
import Testing

private func key(_ number: Int) -> Digest16 { Digest16(high: 0, low: UInt64(number)) }

@Suite("Budgets and memories of repeats")
struct RelayMemoryTests {
    @Test("A window forgets an eighth of its span at a time, and never holds more than the span")
    func window() {
        var window = SlidingWindow<UInt16>()
        for at: Int64 in [0, 1, 7_499, 7_500] { window.add(at: at, span: 60_000) }
        let counts = [7_500, 59_999, 60_000, 67_499, 67_500, 1_000_000].map {
            window.count(at: $0, span: 60_000)
        }
        #expect(counts == [4, 4, 1, 1, 0, 0])
        window.add(at: 5_000_000, span: 60_000)
        #expect(window.count(at: 5_000_000, span: 60_000) == 1)
        window.remove()
        #expect(window.count(at: 5_000_000, span: 60_000) == 0)
    }

    @Test("The minute and the hour both hold; what is refused is not charged")
    func budget() {
        let rule = RateRule(perMinute: 2, perHour: 3)
        var budget = Budget<UInt32>()
        let times: [(Int64, Bool)] = [
            (0, true), (1, true), (2, false), (59_000, false), (60_000, true), (120_000, false),
            (3_599_999, false), (3_600_000, true)
        ]
        for (at, expected) in times {
            let isGranted = budget.charge(rule, at: at)
            #expect(isGranted == expected, "at \(at)")
        }
    }

    @Test("Zero is no limit")
    func unlimited() {
        var budget = Budget<UInt16>()
        let granted = (0..<100_000).map { _ in budget.charge(RateRule(perMinute: 0, perHour: 0), at: 5) }
        #expect(!granted.contains(false))
    }

    @Test("A refund gives back one")
    func refund() {
        var budgets = KeyedBudget(RateRule(perMinute: 1, perHour: 10), limit: 10)
        var granted = [budgets.charge(key(1), at: 0), budgets.charge(key(1), at: 1)]
        budgets.refund(key(1))
        granted.append(budgets.charge(key(1), at: 2))
        budgets.refund(key(2))
        #expect(granted == [true, false, true])
        #expect(budgets.count == 1)
    }

    @Test("Processes that share what comes each allow a part, and together no less than the whole")
    func parts() {
        var budgets = (0..<3).map { _ in KeyedBudget(RateRule(perMinute: 10, perHour: 0), limit: 4) }
        var counts = [0, 0, 0]
        for process in 0..<3 {
            for at in 0..<20 where budgets[process].charge(key(1), at: Int64(at), among: 3) {
                counts[process] += 1
            }
        }
        #expect(counts == [4, 4, 4])
        // One of them dies: what another may do rises with the next charge.
        var more = 0
        for at in 20..<40 where budgets[0].charge(key(1), at: Int64(at), among: 2) { more += 1 }
        #expect(more == 1)
    }

    @Test("A key of which nothing was taken for an hour is forgotten, at the next charges or by the sweep")
    func forgotten() {
        var budgets = KeyedBudget(RateRule(perMinute: 10, perHour: 100), limit: 1_000)
        var granted = (0..<100).map { budgets.charge(key($0), at: 0) }
        granted.append(budgets.charge(key(7), at: 1_800_000))
        budgets.forget(at: 1_800_000)
        #expect(budgets.count == 100)
        // Each charge looks at two: a busy table gives back more than it takes.
        granted += (200..<220).map { budgets.charge(key($0), at: 3_600_000) }
        // Of the forty that were looked at one may have been used since.
        #expect(!granted.contains(false) && (80...81).contains(budgets.count))
        budgets.forget(at: 3_600_000)
        #expect(budgets.count == 21)
        budgets.forget(at: 20_000_000)
        #expect(budgets.count == 0)
        // What is forgotten was not spent: the whole budget is there.
        granted = (0..<11).map { budgets.charge(key(7), at: 20_000_001 + Int64($0)) }
        #expect(granted == Array(repeating: true, count: 10) + [false])
    }

    @Test("A device is woken at once, and once more when its pause is over, whatever comes meanwhile")
    func pauses() {
        var pauses = DevicePauses(span: 1_000, limit: 10)
        let turns = [0, 1, 999, 1_000, 1_001, 1_999, 2_000, 3_000, 4_000].map {
            pauses.take(key(1), at: $0)
        }
        #expect(
            turns == [
                .now, .later(999), .covered, .later(1_000), .covered, .covered, .later(1_000), .later(1_000),
                .later(1_000)
            ])
        var others = [pauses.take(key(2), at: 4_000), pauses.take(key(1), at: 9_000)]
        pauses.release(key(1))
        others.append(pauses.take(key(1), at: 9_001))
        #expect(others == [.now, .now, .now])
        pauses.forget(at: 100_000)
        #expect(pauses.count == 0)
    }

    @Test("More devices than it holds are woken at once, and no pause is none")
    func pausesBounded() {
        var pauses = DevicePauses(span: 1_000, limit: 3)
        var turns = (0..<10).map { pauses.take(key($0), at: 0) }
        turns += [pauses.take(key(9), at: 1), pauses.take(key(0), at: 1)]
        #expect(turns == Array(repeating: .now, count: 11) + [.later(999)] && pauses.count == 3)
        var none = DevicePauses(span: 0, limit: 3)
        turns = (0..<10).map { _ in none.take(key(1), at: 0) }
        #expect(turns == Array(repeating: .now, count: 10) && none.count == 0)
    }

    @Test("A full table makes room where something is left, keeps those that are spent, and stays as large")
    func fullTable() {
        var budgets = KeyedBudget(RateRule(perMinute: 1, perHour: 10), limit: 4)
        let first = (0..<4).map { budgets.charge(key($0), at: 0) }
        #expect(first == [true, true, true, true])
        // All four are spent: a new one has no place.
        var granted = [budgets.charge(key(9), at: 1)]
        #expect(budgets.count == 4)
        budgets.refund(key(2))
        granted.append(budgets.charge(key(9), at: 2))
        granted.append(budgets.charge(key(0), at: 3))
        #expect(granted == [false, true, false])
        #expect(budgets.count == 4)
        // From a minute later on nobody is spent, and thousands pass through the same four places.
        for number in 100..<5_000 {
            let isCharged = budgets.charge(key(number), at: 60_000 * Int64(number))
            #expect(isCharged && budgets.count <= 4)
        }
    }

    @Test("A key is held for its span, and no longer")
    func span() {
        var window = ReplayWindow(span: 300_000, limit: 10)
        let isNew = [0, 1, 299_999, 300_000, 300_001].map { window.reserve(key(1), at: $0) }
        #expect(isNew == [true, false, false, true, false])
    }

    @Test("A released key may come again, and its old place does not free the new one")
    func release() {
        var window = ReplayWindow(span: 1_000, limit: 3)
        var isNew = [window.reserve(key(1), at: 0)]
        window.release(key(1))
        isNew += [900, 1_500, 1_900].map { window.reserve(key(1), at: $0) }
        #expect(isNew == [true, true, false, true])
    }

    @Test("The oldest makes room, and the places are never more than the limit")
    func limit() {
        var window = ReplayWindow(span: 1_000_000, limit: 100)
        for number in 0..<10_000 {
            let isNew = window.reserve(key(number), at: Int64(number))
            #expect(isNew && window.count <= 100)
            if number.isMultiple(of: 3) { window.release(key(number)) }
        }
        let isNew = [9_998, 9_901, 9_800].map { window.reserve(key($0), at: 10_000) }
        #expect(isNew == [false, false, true])
    }
}
