import Delivery
import PushModel
import Testing

@Suite("One lane's queue")
struct LaneQueueTests {
    let now = UnixTime(seconds: 1_000)

    private func drain(_ queue: inout LaneQueue) -> [Int64] {
        var rows: [Int64] = []
        while let entry = queue.take() { rows.append(entry.push.row) }
        return rows
    }

    @Test("Urgent goes before normal, normal before background, each in order of coming")
    func classes() {
        var queue = LaneQueue(limit: 100)
        for (row, level) in [
            (1, PushClass.background), (2, .normal), (3, .urgent), (4, .normal), (5, .urgent)
        ] {
            _ = queue.admit(entry(samplePush(row, pushClass: level)), now: now)
        }
        #expect(drain(&queue) == [3, 5, 2, 4, 1])
        #expect(queue.isEmpty)
    }

    @Test("Origins take turns: with a hundred thousand before it, another's push is second")
    func roundRobin() {
        var queue = LaneQueue(limit: 200_000)
        for row in 1...100_000 { _ = queue.admit(entry(samplePush(row, origin: 1)), now: now) }
        _ = queue.admit(entry(samplePush(200_001, origin: 2)), now: now)
        let first = queue.take()?.push.row
        let second = queue.take()?.push.row
        #expect([first, second].contains(200_001))
    }

    @Test("Three origins are served in turn until each is empty")
    func turns() {
        var queue = LaneQueue(limit: 100)
        for (row, origin) in [(1, 1), (2, 1), (3, 1), (4, 2), (5, 3), (6, 3)] {
            _ = queue.admit(entry(samplePush(row, origin: UInt64(origin))), now: now)
        }
        #expect(drain(&queue) == [1, 4, 5, 2, 6, 3])
    }

    @Test("A full queue gives an urgent push the place of the newest background one")
    func displacedByClass() throws {
        var queue = LaneQueue(limit: 2)
        _ = queue.admit(entry(samplePush(1, pushClass: .background)), now: now)
        _ = queue.admit(entry(samplePush(2, pushClass: .background)), now: now)
        guard case .displaced(let gone) = queue.admit(entry(samplePush(3, pushClass: .urgent)), now: now)
        else {
            Issue.record("nothing was displaced")
            return
        }
        #expect(gone.push.row == 2)
        #expect(drain(&queue) == [3, 1])
    }

    @Test("A full queue gives another origin's push the place of the newest of the fullest origin")
    func displacedByOrigin() {
        var queue = LaneQueue(limit: 3)
        for row in 1...3 { _ = queue.admit(entry(samplePush(row, origin: 1)), now: now) }
        #expect(queue.wouldHold(.normal, origin: Digest16(high: 0, low: 2)))
        guard case .displaced(let gone) = queue.admit(entry(samplePush(4, origin: 2)), now: now) else {
            Issue.record("nothing was displaced")
            return
        }
        #expect(gone.push.row == 3)
        #expect(queue.count == 3)
    }

    @Test("The fullest origin itself is parked when the queue is full, and a background push never displaces")
    func parked() {
        var queue = LaneQueue(limit: 3)
        for row in 1...3 { _ = queue.admit(entry(samplePush(row, origin: 1)), now: now) }
        #expect(!queue.wouldHold(.normal, origin: Digest16(high: 0, low: 1)))
        guard case .parked(let own) = queue.admit(entry(samplePush(4, origin: 1)), now: now),
            case .parked(let low) = queue.admit(
                entry(samplePush(5, origin: 2, pushClass: .background)), now: now)
        else {
            Issue.record("a full queue took a push in")
            return
        }
        #expect(own.push.row == 4)
        #expect(low.push.row == 5)
        #expect(queue.count == 3)
    }

    @Test("A retry sleeps until it is due, counts toward the bound, and wakes in order of its time")
    func sleeping() {
        var queue = LaneQueue(limit: 3)
        _ = queue.admit(entry(samplePush(1, notBefore: UnixTime(seconds: 1_010))), now: now)
        _ = queue.admit(entry(samplePush(2, notBefore: UnixTime(seconds: 1_005))), now: now)
        _ = queue.admit(entry(samplePush(3)), now: now)
        #expect(queue.count == 3)
        #expect(queue.take()?.push.row == 3)
        #expect(queue.take() == nil)
        #expect(queue.nextDue == UnixTime(seconds: 1_005))
        queue.wake(now: UnixTime(seconds: 1_005))
        #expect(drain(&queue) == [2])
        queue.wake(now: UnixTime(seconds: 1_020))
        #expect(drain(&queue) == [1])
    }

    @Test("What is put back is first of its origin again")
    func putBack() throws {
        var queue = LaneQueue(limit: 10)
        for row in 1...3 { _ = queue.admit(entry(samplePush(row)), now: now) }
        let taken = queue.take()
        queue.putBack(try #require(taken))
        #expect(drain(&queue) == [1, 2, 3])
    }

    @Test("Removing by a condition keeps count, order and turns", arguments: [7, 8, 99])
    func removing(seed: Int) {
        var queue = LaneQueue(limit: 1_000)
        var random = SplitMix(state: UInt64(seed))
        for row in 1...500 {
            let push = samplePush(
                row, origin: random.next() % 7, pushClass: PushClass(rawValue: UInt8(random.next() % 3))!,
                notBefore: UnixTime(seconds: 990 + Int64(random.next() % 20)))
            _ = queue.admit(entry(push), now: now)
        }
        let removed = queue.remove { $0.push.row % 3 == 0 }
        #expect(removed.count == 166, "seed \(seed)")
        #expect(queue.count == 334)
        queue.wake(now: .distantFuture)
        let rest = drain(&queue)
        #expect(rest.count == 334)
        #expect(Set(rest) == Set((1...500).filter { $0 % 3 != 0 }.map(Int64.init)))
        #expect(queue.count == 0)
    }
}

/// A small generator for shuffles in tests (SplitMix64).
struct SplitMix: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
