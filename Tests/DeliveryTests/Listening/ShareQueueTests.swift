import Delivery
import PushModel
import PushTesting
import Testing

@Suite("The queue in shares", .timeLimit(.minutes(30)))
struct ShareQueueTests {
    typealias Queue = ShareQueue<Int, Int>
    static let fits = [Queue.Fit.whole, .overrun]

    @Test("Sources take turns, so a flood delays another's item by one of its own")
    func turns() async {
        let queue = Queue(share: 1 << 20, .whole)
        for number in 0..<50 { #expect(await queue.put(100 + number, bytes: 10, of: 1)) }
        #expect(await queue.put(200, bytes: 10, of: 2))
        #expect(await queue.put(300, bytes: 10, of: 3))
        var items: [Int?] = []
        for _ in 0..<5 { items.append(await queue.take()) }
        #expect(items == [100, 200, 300, 101, 102])
        #expect(queue.count == 47)
    }

    @Test("One source's items come in their order")
    func order() async {
        let queue = Queue(share: 1 << 20, .whole)
        for number in 0..<150 { #expect(await queue.put(number, bytes: 10, of: 1)) }
        for number in 0..<150 { #expect(await queue.take() == number) }
    }

    @Test("Who finds the own share full waits, and another source does not")
    func full() async {
        // Of three such items the third does not fit.
        let queue = Queue(share: 3_000, .whole)
        #expect(await queue.put(1, bytes: 1_400, of: 1))
        #expect(await queue.put(2, bytes: 1_400, of: 1))
        await withTaskGroup(of: Bool.self) { group in
            group.addTask { await queue.put(3, bytes: 1_400, of: 1) }
            #expect(await queue.put(4, bytes: 1_400, of: 2))
            #expect(await queue.take() == 1)
            #expect(await group.next() == true)
        }
        #expect(queue.count == 3)
    }

    @Test("Small items fill a share too, and a larger share lets the next one in")
    func share() async {
        let queue = Queue(share: 100 * 600, .whole)
        for number in 1...100 { #expect(await queue.put(number, bytes: 600, of: 1)) }
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                for number in 101...150 where !(await queue.put(number, bytes: 600, of: 1)) { return false }
                return true
            }
            queue.setShare(1 << 20)
            #expect(await group.next() == true)
        }
        #expect(queue.count == 150)
    }

    @Test("An item above the byte bound passes when it is alone")
    func large() async {
        let queue = Queue(share: 100, .whole)
        #expect(await queue.put(1, bytes: 1_000, of: 1))
        #expect(await queue.take() == 1)
    }

    @Test("The last item may exceed a share that takes overruns; all who wait go on when half of it is free")
    func overrun() async {
        let queue = Queue(share: 1_000, .overrun)
        for number in 1...2 { #expect(await queue.put(number, bytes: 600, of: 1)) }
        #expect(queue.bytes(of: 1) == 1_200 && queue.bytes(of: 2) == 0)
        await withTaskGroup(of: Bool.self) { group in
            for number in 3...4 { group.addTask { await queue.put(number, bytes: 10, of: 1) } }
            for number in 1...2 { #expect(await queue.take() == number) }
            for await isTaken in group { #expect(isTaken) }
        }
        #expect(queue.count == 2)
    }

    @Test("A source whose share is full is told when half of it is free; the others go on meanwhile")
    func told() async throws {
        let told = AwaitedCount()
        let queue = Queue(share: 1_000, .overrun) { source in
            #expect(source == 1)
            told.add()
        }
        while queue.takes(from: 1) { queue.add(1, bytes: 356, of: 1) }
        #expect(queue.count == 3 && queue.takes(from: 2))
        _ = await queue.take()
        #expect(told.count == 0, "less than half is free")
        while queue.count > 0 { _ = await queue.take() }
        #expect(told.count == 1 && queue.takes(from: 1))
    }

    @Test("A closed queue refuses, wakes who waits, and hands out what it has", arguments: fits)
    func close(_ fit: Queue.Fit) async {
        let queue = Queue(share: 1, fit)
        #expect(await queue.put(1, bytes: 10, of: 1))
        await withTaskGroup(of: Bool.self) { group in
            group.addTask { await queue.put(2, bytes: 10, of: 1) }
            queue.close()
            #expect(await group.next() == false)
        }
        #expect(await !queue.put(3, bytes: 10, of: 2))
        queue.add(4, bytes: 10, of: 2)
        #expect(queue.isClosed && queue.count == 1)
        #expect(await queue.take() == 1)
        #expect(await queue.take() == nil)
    }

    @Test("A queue that is closed dropping hands nothing out, and wakes its workers")
    func dropping() async {
        let queue = Queue(share: .max, .overrun)
        await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<2 { group.addTask { await queue.take() } }
            queue.close(dropping: true)
            for await item in group { #expect(item == nil) }
        }
        let full = Queue(share: .max, .overrun)
        full.add(1, bytes: 0, of: 0)
        full.close(dropping: true)
        #expect(await full.take() == nil)
    }

    @Test(
        "A cancelled reader stops waiting for room, and another one of its source waits on", arguments: fits)
    func cancelled(_ fit: Queue.Fit) async {
        let queue = Queue(share: 1, fit)
        #expect(await queue.put(1, bytes: 10, of: 1))
        await withTaskGroup(of: Bool.self) { others in
            others.addTask { await queue.put(2, bytes: 10, of: 1) }
            await withTaskGroup(of: Bool.self) { group in
                group.addTask { await queue.put(3, bytes: 10, of: 1) }
                group.cancelAll()
                #expect(await group.next() == false)
            }
            #expect(queue.count == 1)
            #expect(await queue.take() == 1)
            #expect(await others.next() == true)
        }
        #expect(await queue.take() == 2)
    }

    @Test("Workers that wait are woken, each by an item of its own")
    func takers() async {
        let queue = Queue(share: 1 << 20, .whole)
        await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<4 { group.addTask { await queue.take() } }
            for number in 1...4 { #expect(await queue.put(number, bytes: 10, of: number)) }
            var found: Set<Int> = []
            for await number in group { if let number { found.insert(number) } }
            #expect(found == [1, 2, 3, 4])
        }
    }

    // MARK: Serving

    @Test("Serving ends when reading does, and what is left is taken first")
    func served() async {
        let queue = Queue(share: 1 << 20, .whole)
        let taken = Noted<[Int]>([])
        await queue.serve(workers: 2, take: { item in taken.change { $0.append(item) } }, stop: {}) {
            for number in 1...100 { #expect(await queue.put(number, bytes: 1, of: number % 3)) }
        }
        #expect(taken.value.sorted() == Array(1...100) && queue.isClosed)
    }

    @Test("A cancelled task stops the reading, and what is left is still taken")
    func stopped() async {
        let queue = Queue(share: 1 << 20, .whole)
        let taken = Noted<[Int]>([])
        let stopping = Bell()
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                await queue.serve(
                    workers: 1, take: { item in taken.change { $0.append(item) } }, stop: { stopping.ring() }
                ) {
                    await stopping.waitThroughCancellation()
                    queue.add(1, bytes: 1, of: 1)
                }
            }
            group.cancelAll()
        }
        #expect(taken.value == [1])
    }
}
