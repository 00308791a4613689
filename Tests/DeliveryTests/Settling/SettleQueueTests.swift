@testable import Delivery
import PushModel
import Testing

@Suite("What of the waiting outcomes is tried at once")
struct SettleQueueTests {
    private static func items(_ numbers: some Sequence<Int>) -> [Settler.Item] {
        numbers.map { Settler.Item(Settlement(samplePush($0), .settle, first: .accepted)) }
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
            tried.append(queue.next().count)
            _ = queue.failed(tried.last ?? 0, .unavailable)
        }
        #expect(tried == [1_024, 128, 16, 2, 1] && queue.failures == 5)
        var taken: [Int] = []
        for _ in 0..<4 {
            taken.append(queue.next().count)
            queue.settled(taken.last ?? 0)
        }
        #expect(taken == [1, 2, 4, 8] && queue.failures == 0)
        #expect(Self.numbers(queue.next().items).first == 15)
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
        #expect(!getsSmaller && queue.next().count == 500 && queue.failures == 1)
    }

    @Test("What may have been told stays so until it is taken, in whatever batches, and nothing else is")
    func told() {
        func doubted(_ items: [Settler.Item]) -> [Int] { Self.numbers(items.filter(\.rest.mayBeTold)) }
        var queue = SettleQueue(widest: 8)
        queue.append(Self.items(0..<8))
        _ = queue.failed(8, .uncertain)
        queue.append(Self.items(8..<10))
        // The next try fails for all of them, and so fewer are tried.
        let getsSmaller = queue.failed(8, .unavailable)
        #expect(getsSmaller)
        #expect(doubted(queue.next().items) == [0])
        queue.settled(1)
        #expect(doubted(queue.items) == Array(1..<8))
        let taken = queue.takeFirst()
        #expect(doubted(taken) == [1])
        queue.settled(6)
        #expect(doubted(queue.items).isEmpty && Self.numbers(queue.items) == [8, 9])
        var other = SettleQueue(widest: 8)
        other.takeOver(taken)
        #expect(doubted(other.next().items) == [1])
    }

    @Test("What comes while others are tried stays behind them, whether the store takes those or not")
    func meanwhile() {
        var queue = SettleQueue(widest: 4)
        queue.append(Self.items(0..<3))
        #expect(Self.numbers(queue.next().items) == [0, 1, 2])
        queue.append(Self.items(3..<6))
        #expect(Self.numbers(queue.items) == Array(0..<6) && queue.count == 6)
        _ = queue.failed(3, .uncertain)
        #expect(Self.numbers(queue.items) == Array(0..<6))
        #expect(queue.items.map(\.rest.mayBeTold) == [true, true, true, false, false, false])
        #expect(Self.numbers(queue.next().items) == [0, 1, 2, 3])
        queue.append(Self.items(6..<7))
        queue.settled(4)
        #expect(Self.numbers(queue.items) == [4, 5, 6] && !queue.isEmpty)
        #expect(Self.numbers(queue.next().items) == [4, 5, 6])
        queue.settled(3)
        #expect(queue.isEmpty && queue.next().isEmpty)
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
