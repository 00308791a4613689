@testable import Delivery
import PushModel
import Testing

@Suite("What of the waiting outcomes is tried at once")
struct SettleQueueTests {
    private static func items(_ numbers: some Sequence<Int>) -> [Settler.Item] {
        numbers.map { Settler.Item(settlement: Settlement(samplePush($0), .settle, first: .accepted)) }
    }

    private static func numbers(_ items: [Settler.Item]) -> [Int] {
        items.map { Int($0.settlement.push.row) }
    }

    @Test("Behind a failure fewer are tried, in the end one alone; behind each success twice as many")
    func widths() {
        var queue = SettleQueue(widest: 1_024)
        queue.append(Self.items(0..<3_000))
        var tried: [Int] = []
        for _ in 0..<5 {
            tried.append(queue.batch.count)
            _ = queue.failed(queue.batch.count, .unavailable)
        }
        #expect(tried == [1_024, 128, 16, 2, 1] && queue.failures == 5)
        var taken: [Int] = []
        for _ in 0..<4 {
            taken.append(queue.batch.count)
            queue.settled(queue.batch.count)
        }
        #expect(taken == [1, 2, 4, 8] && queue.failures == 0)
        #expect(Self.numbers(queue.batch).first == 15)
    }

    @Test(
        "A fault of the whole store is nobody's: as many are tried again",
        arguments: [
            StoreError.Code.noSpace, .readOnly, .uncertain
        ])
    func whole(_ code: StoreError.Code) {
        var queue = SettleQueue(widest: 1_024)
        queue.append(Self.items(0..<500))
        let getsSmaller = queue.failed(500, code)
        #expect(!getsSmaller && queue.batch.count == 500 && queue.failures == 1)
    }

    @Test("What may have been told stays so until it is taken, in whatever batches, and nothing else is")
    func told() {
        func doubted(_ items: [Settler.Item]) -> [Int] { Self.numbers(items.filter(\.mayBeTold)) }
        var queue = SettleQueue(widest: 8)
        queue.append(Self.items(0..<8))
        _ = queue.failed(8, .uncertain)
        queue.append(Self.items(8..<10))
        // The next try fails for all of them, and so fewer are tried.
        let getsSmaller = queue.failed(8, .unavailable)
        #expect(getsSmaller)
        #expect(doubted(queue.batch) == [0])
        queue.settled(1)
        #expect(doubted(queue.items) == Array(1..<8))
        let taken = queue.takeFirst()
        #expect(doubted(taken) == [1])
        queue.settled(6)
        #expect(doubted(queue.items).isEmpty && Self.numbers(queue.items) == [8, 9])
        var other = SettleQueue(widest: 8)
        other.takeOver(taken)
        #expect(doubted(other.batch) == [1])
    }

    @Test("What is said of one push stays in order when it makes way for others")
    func order() {
        var queue = SettleQueue(widest: 4)
        queue.append(Self.items([1, 2, 1, 3]))
        queue.rotate()
        #expect(Self.numbers(queue.items) == [2, 3, 1, 1])
        let taken = queue.takeFirst()
        #expect(Self.numbers(taken) == [2] && Self.numbers(queue.items) == [3, 1, 1])
        queue.takeOver(taken)
        #expect(queue.failures == 1 && Self.numbers(queue.items) == [3, 1, 1, 2])
    }
}
