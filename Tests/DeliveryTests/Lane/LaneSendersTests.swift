import Dispatch
import Synchronization
import Testing

@testable import Delivery

/// Runs tasks when it is told to.
private final class HandExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "hand executor")
    private let jobs = Mutex<[UnownedJob]>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
    }

    /// Until nothing is left to run.
    func run() async {
        // Bound: no job waits for another one's thread, so the queue comes to its end.
        await withCheckedContinuation { done in
            queue.async {
                while let job = self.jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
                    job.runSynchronously(on: self.asUnownedTaskExecutor())
                }
                done.resume()
            }
        }
    }
}

private final class Item: Sendable {
    let number: Int
    init(_ number: Int) { self.number = number }
}

/// Senders whose pushes are under way for as long as the test wants.
private final class Stage: Sendable {
    let senders = LaneSenders()
    private let executor = HandExecutor()
    private let held = Mutex<[Int: CheckedContinuation<Void, Never>]>([:])
    private let isOver = Mutex(false)
    private let items = Mutex<[Item]>([])
    /// Waits for what is to be sent, and for the end.
    private let bell = Mutex<CheckedContinuation<Void, Never>?>(nil)
    private let isClosed = Mutex(false)
    private let instant = Mutex(ContinuousClock.now)

    init() {
        Task(executorPreference: executor) {
            await withDiscardingTaskGroup { sends in
                while await self.something() { self.sendAll(&sends) }
                self.senders.close()
            }
            self.isOver.withLock { $0 = true }
        }
    }

    var underWay: Int { held.withLock(\.count) }
    var hasEnded: Bool { isOver.withLock { $0 } }

    private func something() async -> Bool {
        // Bound: each test closes its stage, and runs the tasks itself.
        await withCheckedContinuation { own in bell.withLock { $0 = own } }
        return !isClosed.withLock { $0 }
    }

    private func sendAll(_ sends: inout DiscardingTaskGroup) {
        for item in items.withLock({ items in
            defer { items = [] }
            return items
        }) {
            if !senders.give({ await self.hold(item.number) }) {
                sends.addTask { await self.senders.work() }
            }
        }
    }

    private func hold(_ number: Int) async {
        // Bound: each test ends what it has sent.
        await withCheckedContinuation { own in held.withLock { $0[number] = own } }
    }

    private func ring() { bell.withLock { $0.take() }?.resume() }

    /// Sends, and runs until all wait.
    func send(_ numbers: Range<Int>) async { await send(numbers.map(Item.init)) }

    func send(_ more: [Item]) async {
        await executor.run()
        items.withLock { $0 += more }
        ring()
        await executor.run()
    }

    /// Lets the sending of these end.
    func end(_ numbers: Range<Int>) async {
        for number in numbers { held.withLock { $0.removeValue(forKey: number) }?.resume() }
        await executor.run()
    }

    /// - Parameter span: since the last one.
    func look(after span: Duration = .seconds(5)) async -> Int {
        senders.endUnneeded(
            at: instant.withLock { instant in
                instant += span
                return instant
            })
        await executor.run()
        return senders.tasks.parked
    }

    func close() async {
        isClosed.withLock { $0 = true }
        ring()
        await executor.run()
    }
}

@Suite("A lane's pushes are sent at once, by few tasks", .timeLimit(.minutes(30)))
struct LaneSendersTests {
    @Test("However many are under way, the next leaves at once, and each push once")
    func atOnce() async throws {
        let stage = Stage()
        await stage.send(0..<20)
        #expect(stage.underWay == 20)
        await stage.end(0..<10)
        await stage.send(20..<50)
        #expect(stage.underWay == 40)
        #expect(stage.senders.tasks == (parked: 0, made: 40))
        await stage.end(10..<50)
        await stage.close()
        #expect(stage.hasEnded)
    }

    @Test("They are at rest when two looks have found nothing to end and nothing under way")
    func rests() async throws {
        let stage = Stage()
        #expect(stage.senders.isAtRest)
        await stage.send(0..<5)
        #expect(!stage.senders.isAtRest)
        await stage.end(0..<5)
        #expect(!stage.senders.isAtRest, "five tasks stay")
        #expect(await stage.look() == 5)
        #expect(!stage.senders.isAtRest)
        #expect(await stage.look() == 0)
        #expect(await stage.look() == 0)
        #expect(stage.senders.isAtRest)
        await stage.send(5..<6)
        #expect(await stage.look() == 0)
        #expect(!stage.senders.isAtRest, "a push is under way for as long as it takes")
        await stage.end(5..<6)
        await stage.close()
    }

    @Test("Tasks stay from one burst to the next, for five seconds at least")
    func bursts() async throws {
        let stage = Stage()
        #expect(await stage.look() == 0)
        for burst in 0..<3 {
            let numbers = burst * 10..<(burst + 1) * 10
            await stage.send(numbers)
            await stage.end(numbers)
            for _ in 0..<40 { #expect(await stage.look(after: .milliseconds(100)) == 10) }
        }
        #expect(stage.senders.tasks == (parked: 10, made: 10))
        await stage.close()
        #expect(stage.hasEnded)
    }

    @Test("Some pushes, too few at once for tasks to stay, keep nothing from its rest")
    func few() async throws {
        let stage = Stage()
        await stage.send(0..<3)
        #expect(!stage.senders.isAtRest)
        await stage.end(0..<3)
        #expect(stage.senders.isAtRest)
        await stage.close()
    }

    @Test("Tasks stay where many pushes were under way a moment ago, and none where a few were")
    func stays() async throws {
        let stage = Stage()
        await stage.send(0..<3)
        await stage.end(0..<3)
        #expect(stage.senders.tasks == (parked: 0, made: 3))
        await stage.send(3..<603)
        await stage.end(3..<603)
        #expect(stage.senders.tasks == (parked: 512, made: 603))
        #expect(await stage.look() == 512)
        #expect(await stage.look() == 0)
        // Three at a time, one look after the other.
        await stage.send(603..<606)
        await stage.end(603..<606)
        #expect(stage.senders.tasks.parked == 0)
        await stage.close()
        #expect(stage.hasEnded)
    }

    @Test("Tasks that nobody has needed between two looks end while others wait for their answers")
    func unneeded() async throws {
        let stage = Stage()
        await stage.send(0..<20)
        await stage.end(0..<6)
        #expect(await stage.look() == 6)
        await stage.send(20..<22)
        await stage.end(20..<22)
        #expect(stage.senders.tasks == (parked: 6, made: 20))
        #expect(await stage.look() == 2, "four were not needed")
        #expect(await stage.look() == 0)
        #expect(stage.underWay == 14)
        await stage.end(6..<20)
        await stage.close()
        #expect(stage.hasEnded)
    }

    @Test("A task that stays holds nothing of what it has sent, be it its first push or another")
    func holdsNothing() async throws {
        let stage = Stage()
        await stage.send(2..<20)
        weak var first: Item?
        weak var second: Item?
        do {
            let item = Item(0)
            first = item
            await stage.send([item])
        }
        #expect(first != nil)
        await stage.end(0..<1)
        #expect(stage.senders.tasks == (parked: 1, made: 19))
        #expect(first == nil)
        do {
            let item = Item(1)
            second = item
            await stage.send([item])
        }
        #expect(stage.senders.tasks == (parked: 0, made: 19))
        #expect(second != nil)
        await stage.end(1..<2)
        #expect(stage.senders.tasks.parked == 1)
        #expect(second == nil)
        await stage.end(2..<20)
        await stage.close()
        #expect(stage.hasEnded)
    }

    @Test("At the close tasks that stay end, and those that are under way when they are done")
    func close() async throws {
        let stage = Stage()
        await stage.send(0..<20)
        await stage.end(0..<6)
        #expect(stage.senders.tasks.parked == 6)
        await stage.close()
        #expect(stage.senders.tasks.parked == 0)
        #expect(!stage.hasEnded)
        #expect(stage.underWay == 14)
        await stage.end(6..<20)
        #expect(stage.senders.tasks.parked == 0)
        #expect(stage.hasEnded)
    }
}
