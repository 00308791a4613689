import Delivery
import PushModel
import PushTesting
import Testing

/// Two levels of turns: holders, and within each its phones.
@Suite("Turns of holders and phones in one lane's queue")
struct LaneRoundTests {
    let now = UnixTime(seconds: 1_000)

    @Test("Holders take turns, and within a holder's turns its phones do, each in order of coming")
    func turns() {
        var queue = LaneQueue(limit: 100)
        for (row, origin, phone) in [
            (1, 1, "a"), (2, 1, "a"), (3, 1, "a"), (4, 1, "b"), (5, 2, "c"), (6, 2, "c"), (7, 1, "c")
        ] {
            queue.admit(samplePush(row, origin: UInt64(origin), phone: phone), now: now)
        }
        #expect(queue.drain() == [1, 5, 4, 6, 7, 2, 3])
    }

    @Test("A holder's thousand phones are one turn of a thousand")
    func manyPhones() {
        var queue = LaneQueue(limit: 2_000)
        for row in 1...1_000 { queue.admit(samplePush(row), now: now) }
        queue.admit(samplePush(1_001, origin: 2), now: now)
        #expect([queue.take()?.push.row, queue.take()?.push.row] == [1, 1_001])
        #expect(queue.drain() == (2...1_000).map(Int64.init))
    }

    @Test("In a full queue the fullest phone of the fullest holder makes room, and a holder's own phone else")
    func room() {
        var queue = LaneQueue(limit: 6)
        for (row, phone) in [(1, "a"), (2, "b"), (3, "b"), (4, "b"), (5, "c")] {
            queue.admit(samplePush(row, phone: phone), now: now)
        }
        queue.admit(samplePush(6, origin: 2, phone: "a"), now: now)
        var gone: [Int64] = []
        for (row, origin, phone) in [(7, 3, "a"), (8, 1, "d"), (9, 1, "e"), (10, 1, "b"), (11, 4, "b")] {
            let push = samplePush(row, origin: UInt64(origin), phone: phone)
            switch queue.admit(push, now: now) {
            case .held: Issue.record("\(row) found room in a full queue")
            case .displaced(let other): gone.append(other.push.row)
            case .parked: gone.append(-Int64(row))
            }
        }
        // Holder 1 has a, b, b, b, c: 4 and 3 go, then nobody of it has several; d's is the newest of all.
        #expect(gone == [4, 3, -9, -10, 8])
        #expect(queue.count == 6)
    }

    @Test("Whatever comes and goes, a naive queue of two levels does the same", arguments: [5, 21, 34, 55])
    func model(seed: Int) {
        var random = SeededRandom(seed: UInt64(seed))
        var queue = LaneQueue(limit: 10_000)
        var naive = NaiveQueue()
        for row in 1...6_000 {
            let dice = random.next() % 100
            if dice < 45 {
                // Whole floods come and go, so that all memory is given back now and then.
                for _ in 0..<(row % 2_000 < 1_000 ? 1 : 2) {
                    let taken = queue.take()
                    #expect(taken?.push.row == naive.take(), "seed \(seed), row \(row)")
                    if dice < 3, let taken {
                        queue.putBack(taken)
                        naive.insert(taken.push.row, taken.push.origin.low, taken.push.phone, isFirst: true)
                    }
                }
            } else if dice < 46 {
                let divisor = Int64(2 + random.next() % 9)
                let gone = queue.remove { $0.push.row % divisor == 0 }.map(\.push.row)
                #expect(gone.sorted() == naive.remove { $0 % divisor == 0 }.sorted(), "seed \(seed)")
            } else {
                let origin = random.next() % (random.next() % 2 == 0 ? 3 : 500)
                let phone = "p\(random.next() % (random.next() % 2 == 0 ? 2 : 50))"
                queue.admit(samplePush(row, origin: origin, phone: phone), now: now)
                naive.insert(Int64(row), origin, phone, isFirst: false)
            }
            #expect(queue.count == naive.count, "seed \(seed), row \(row)")
        }
        while let row = naive.take() { #expect(queue.take()?.push.row == row, "seed \(seed)") }
        #expect(queue.isEmpty)
    }
}

extension OwedPush {
    fileprivate var phone: String { message.address.reveal { String(decoding: $0, as: UTF8.self) } }
}

/// What the queue is to do, by walking over everything.
private struct NaiveQueue {
    private var holders: [(name: UInt64, phones: [(name: String, rows: [Int64])])] = []

    var count: Int { holders.reduce(0) { $0 + $1.phones.reduce(0) { $0 + $1.rows.count } } }

    mutating func insert(_ row: Int64, _ holder: UInt64, _ phone: String, isFirst: Bool) {
        if !holders.contains(where: { $0.name == holder }) {
            holders.insert((holder, []), at: isFirst ? 0 : holders.count)
        }
        guard let at = holders.firstIndex(where: { $0.name == holder }) else { return }
        if !holders[at].phones.contains(where: { $0.name == phone }) {
            holders[at].phones.insert((phone, []), at: isFirst ? 0 : holders[at].phones.count)
        }
        guard let place = holders[at].phones.firstIndex(where: { $0.name == phone }) else { return }
        holders[at].phones[place].rows.insert(row, at: isFirst ? 0 : holders[at].phones[place].rows.count)
    }

    mutating func take() -> Int64? {
        guard !holders.isEmpty else { return nil }
        var holder = holders.removeFirst()
        var phone = holder.phones.removeFirst()
        let row = phone.rows.removeFirst()
        if !phone.rows.isEmpty { holder.phones.append(phone) }
        if !holder.phones.isEmpty { holders.append(holder) }
        return row
    }

    mutating func remove(_ condition: (Int64) -> Bool) -> [Int64] {
        var gone: [Int64] = []
        for holder in holders.indices {
            for phone in holders[holder].phones.indices {
                gone += holders[holder].phones[phone].rows.filter(condition)
                holders[holder].phones[phone].rows.removeAll(where: condition)
            }
            holders[holder].phones.removeAll(where: \.rows.isEmpty)
        }
        holders.removeAll(where: \.phones.isEmpty)
        return gone
    }
}
