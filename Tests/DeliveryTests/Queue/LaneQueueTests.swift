import Delivery
import PushModel
import PushTesting
import Testing

@Suite("One lane's queue")
struct LaneQueueTests {
    let now = UnixTime(seconds: 1_000)

    @Test("Urgent goes before normal, normal before background, each in order of coming")
    func classes() {
        var queue = LaneQueue(limit: 100)
        for (row, level) in [
            (1, PushClass.background), (2, .normal), (3, .urgent), (4, .normal), (5, .urgent)
        ] {
            queue.admit(samplePush(row, pushClass: level), now: now)
        }
        #expect(queue.drain() == [3, 5, 2, 4, 1])
        #expect(queue.isEmpty)
    }

    @Test("Origins take turns: with a hundred thousand before it, another's push is second")
    func roundRobin() {
        var queue = LaneQueue(limit: 200_000)
        for row in 1...100_000 { queue.admit(samplePush(row, origin: 1), now: now) }
        queue.admit(samplePush(200_001, origin: 2), now: now)
        let first = queue.take()?.push.row
        let second = queue.take()?.push.row
        #expect([first, second].contains(200_001))
    }

    @Test("Three origins are served in turn until each is empty")
    func turns() {
        var queue = LaneQueue(limit: 100)
        for (row, origin) in [(1, 1), (2, 1), (3, 1), (4, 2), (5, 3), (6, 3)] {
            queue.admit(samplePush(row, origin: UInt64(origin)), now: now)
        }
        #expect(queue.drain() == [1, 4, 5, 2, 6, 3])
    }

    @Test("A full queue gives an urgent push the place of the newest background one")
    func displacedByClass() {
        var queue = LaneQueue(limit: 2)
        queue.admit(samplePush(1, pushClass: .background), now: now)
        queue.admit(samplePush(2, pushClass: .background), now: now)
        #expect(queue.displaced(by: samplePush(3, pushClass: .urgent), now: now) == 2)
        #expect(queue.drain() == [3, 1])
    }

    @Test("A full queue gives another origin's push the place of the newest of the fullest origin")
    func displacedByOrigin() {
        var queue = LaneQueue(limit: 3)
        for row in 1...3 { queue.admit(samplePush(row, origin: 1), now: now) }
        #expect(queue.wouldHold(.normal, origin: Digest16(high: 0, low: 2), address: { 0 }))
        #expect(queue.displaced(by: samplePush(4, origin: 2), now: now) == 3)
        #expect(queue.count == 3)
    }

    @Test("The fullest origin itself is parked when the queue is full, and a background push never displaces")
    func parked() {
        var queue = LaneQueue(limit: 3)
        for row in 1...3 { queue.admit(samplePush(row, origin: 1), now: now) }
        #expect(!queue.wouldHold(.normal, origin: Digest16(high: 0, low: 1), address: { 0 }))
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
        queue.admit(samplePush(1, notBefore: UnixTime(seconds: 1_010)), now: now)
        queue.admit(samplePush(2, notBefore: UnixTime(seconds: 1_005)), now: now)
        queue.admit(samplePush(3), now: now)
        #expect(queue.count == 3)
        #expect(queue.take()?.push.row == 3)
        #expect(queue.take() == nil)
        #expect(queue.nextDue == UnixTime(seconds: 1_005))
        queue.wake(now: UnixTime(seconds: 1_005))
        #expect(queue.drain() == [2])
        queue.wake(now: UnixTime(seconds: 1_020))
        #expect(queue.drain() == [1])
    }

    @Test(
        "Whatever comes and goes, who makes room is always the origin that holds most", arguments: [3, 14, 15]
    )
    func fullest(seed: Int) {
        var queue = LaneQueue(limit: 300)
        var random = SeededRandom(seed: UInt64(seed))
        var held: [Digest16: [Int64]] = [:]
        var displaced = 0
        for row in 1...6_000 {
            if random.next() % 3 == 0, let taken = queue.take() {
                let first = held[taken.push.origin]?.removeFirst()
                #expect(first == taken.push.row, "seed \(seed)")
                continue
            }
            // A few origins ask often, thousands ask once.
            let origin = random.next() % 2 == 0 ? random.next() % 5 : 10 + random.next() % 5_000
            let push = samplePush(row, origin: origin)
            let own = held[push.origin]?.count ?? 0
            let most = held.values.map(\.count).max() ?? 0
            let isFull = queue.count == 300
            switch queue.admit(push, now: now) {
            case .held:
                #expect(!isFull)
                held[push.origin, default: []].append(Int64(row))
            case .displaced(let gone):
                displaced += 1
                #expect(isFull && held[gone.push.origin]?.count == most && most > own + 1, "seed \(seed)")
                #expect(held[gone.push.origin]?.popLast() == gone.push.row)
                held[push.origin, default: []].append(Int64(row))
            case .parked:
                #expect(isFull && most <= own + 1, "seed \(seed)")
            }
            #expect(queue.count == held.values.reduce(0) { $0 + $1.count })
        }
        #expect(displaced > 100)
        #expect(queue.drain().sorted() == held.values.flatMap(\.self).sorted())
    }

    @Test("Calls that empty thousands of origins out of turn leave no more than the queue's bound behind")
    func emptied() {
        var queue = LaneQueue(limit: 4)
        for row in 1...10_000 {
            queue.admit(samplePush(row, origin: UInt64(row), pushClass: .background), now: now)
            for call in 0..<4 {
                let push = samplePush(100_000 + row * 4 + call, origin: 1, pushClass: .urgent)
                queue.admit(push, now: now)
            }
            #expect(queue.count == 4)
            for _ in 0..<4 { #expect(queue.take()?.push.pushClass == .urgent) }
            #expect(queue.isEmpty)
        }
        queue.admit(samplePush(1, pushClass: .background), now: now)
        #expect(queue.drain() == [1])
    }

    @Test("What custody has ended of leaves the queue, asleep or awake, and the rest keeps its order")
    func ended() {
        var queue = LaneQueue(limit: 1_000)
        for row in 1...100 {
            let push = samplePush(
                row, origin: UInt64(row % 3), notBefore: UnixTime(seconds: row % 2 == 0 ? 1_005 : 0),
                custodyEnds: UnixTime(seconds: 1_000 + Int64(row)))
            queue.admit(push, now: now)
        }
        #expect(queue.removeEnded(now: now).isEmpty)
        for seconds in [1_010, 1_010, 1_030] as [Int64] {
            let gone = queue.removeEnded(now: UnixTime(seconds: seconds)).map(\.push.row)
            #expect(gone.allSatisfy { $0 <= seconds - 1_000 })
            #expect(queue.count == 1_100 - Int(seconds))
        }
        // One that comes later and ends earlier than all the others is seen as well.
        queue.admit(samplePush(500, custodyEnds: UnixTime(seconds: 1_031)), now: now)
        #expect(queue.removeEnded(now: UnixTime(seconds: 1_031)).map(\.push.row).sorted() == [31, 500])
        queue.wake(now: UnixTime(seconds: 1_031))
        #expect(queue.drain().sorted() == (32...100).map(Int64.init))
    }

    @Test("What is put back is first of its origin again")
    func putBack() throws {
        var queue = LaneQueue(limit: 10)
        for row in 1...3 { queue.admit(samplePush(row), now: now) }
        let taken = queue.take()
        queue.putBack(try #require(taken))
        #expect(queue.drain() == [1, 2, 3])
    }

    @Test("Removing by a condition keeps count, order and turns", arguments: [7, 8, 99])
    func removing(seed: Int) {
        var queue = LaneQueue(limit: 1_000)
        var random = SeededRandom(seed: UInt64(seed))
        for row in 1...500 {
            let push = samplePush(
                row, origin: random.next() % 7, pushClass: PushClass(rawValue: UInt8(random.next() % 3))!,
                notBefore: UnixTime(seconds: 990 + Int64(random.next() % 20)))
            queue.admit(push, now: now)
        }
        let removed = queue.remove { $0.push.row % 3 == 0 }
        #expect(removed.count == 166, "seed \(seed)")
        #expect(queue.count == 334)
        queue.wake(now: .distantFuture)
        let rest = queue.drain()
        #expect(rest.count == 334)
        #expect(Set(rest) == Set((1...500).filter { $0 % 3 != 0 }.map(Int64.init)))
        #expect(queue.count == 0)
    }

    @Test("What is held is counted by class, wherever it stands and however it goes")
    func countsByClass() {
        var queue = LaneQueue(limit: 6)
        let now = UnixTime(seconds: 100)
        func counts() -> [Int] { PushClass.allCases.map { queue.durableCount(upTo: $0) } }
        for number in 1...2 { queue.admit(samplePush(number, pushClass: .background), now: now) }
        queue.admit(samplePush(3, notBefore: now + .seconds(5)), now: now)
        queue.admit(samplePush(4), now: now)
        #expect(counts() == [0, 2, 4])
        queue.setAside(entry(samplePush(5, pushClass: .background)))
        queue.admit(samplePush(6, pushClass: .urgent), now: now)
        #expect(counts() == [1, 3, 6])
        // The last of the background goes.
        queue.admit(samplePush(7, pushClass: .urgent), now: now)
        #expect(counts() == [2, 4, 6])
        _ = queue.take()
        #expect(counts() == [1, 3, 5])
        _ = queue.remove { $0.push.pushClass == .background }
        #expect(counts() == [1, 3, 3])
        _ = queue.remove { _ in true }
        #expect(counts() == [0, 0, 0])
    }

    @Test("A full queue makes room for a call out of probes that came back, when nothing else yields")
    func benchYields() {
        var queue = LaneQueue(limit: 2)
        let now = UnixTime(seconds: 100)
        for number in 1...2 { queue.setAside(entry(samplePush(number))) }
        #expect(queue.wouldHold(.urgent, origin: Digest16(high: 0, low: 1), address: { 0 }))
        #expect(!queue.wouldHold(.normal, origin: Digest16(high: 0, low: 1), address: { 0 }))
        #expect(queue.displaced(by: samplePush(3, pushClass: .urgent), now: now) == 1)
        #expect(queue.count == 2)
    }

    @Test("Probes that came back have their turn when all others had it, and go first at the end")
    func bench() {
        var queue = LaneQueue(limit: 8)
        let now = UnixTime(seconds: 100)
        for number in 3...4 { queue.admit(samplePush(number), now: now) }
        for number in 1...2 { queue.setAside(entry(samplePush(number))) }
        var ended = queue
        #expect((0..<5).map { _ in queue.takeTurn()?.push.row } == [3, 4, 1, 2, nil])
        ended.endTurns()
        #expect((0..<5).map { _ in ended.take()?.push.row } == [1, 2, 3, 4, nil])
    }

    @Test("However many the others are, such a probe has a turn after sixteen of theirs")
    func benchAmongMany() {
        var queue = LaneQueue(limit: 200)
        let now = UnixTime(seconds: 100)
        for number in 3..<100 { queue.admit(samplePush(number), now: now) }
        for number in 1...2 { queue.setAside(entry(samplePush(number))) }
        let rows = (0..<99).map { _ in queue.takeTurn()?.push.row ?? 0 }
        #expect(rows.firstIndex(of: 1) == 16 && rows.firstIndex(of: 2) == 33)
        #expect(Set(rows).count == 99 && queue.isEmpty)
    }
}
