import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import HTTPIngress

/// Runs tasks when it is told to.
private final class HandExecutor: TaskExecutor {
    private let jobs = Mutex<[UnownedJob]>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
    }

    /// Until nothing is left to run.
    func run() {
        while let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}

private final class Item: Sendable {
    let number: Int
    init(_ number: Int) { self.number = number }
}

/// A mailbox whose elements are served for as long as the test wants.
private final class Stage: Sendable {
    let mailbox = Mailbox<Item>(capacity: 100)
    private let executor = HandExecutor()
    private let held = Mutex<[Int: CheckedContinuation<Void, Never>]>([:])
    private let loop = MultiThreadedEventLoopGroup.singleton.any()
    private let isOver = Mutex(false)

    init() {
        Task(executorPreference: executor) {
            await self.mailbox.serveAll { item in await self.hold(item.number) }
            self.isOver.withLock { $0 = true }
        }
    }

    var served: Int { held.withLock(\.count) }
    var hasEnded: Bool { isOver.withLock { $0 } }

    private func hold(_ number: Int) async {
        // Bound: each test ends what it has offered, and runs the tasks itself.
        await withCheckedContinuation { own in held.withLock { $0[number] = own } }
    }

    func offer(_ numbers: Range<Int>) {
        for number in numbers { #expect(mailbox.offer(Item(number))) }
    }

    /// Lets the serving of these end, once tasks run.
    func end(_ numbers: Range<Int>) {
        for number in numbers { held.withLock { $0.removeValue(forKey: number) }?.resume() }
    }

    func run() async throws { try await loop.submit { self.executor.run() }.get() }

    /// Offers these, and runs until all are served or wait.
    func serve(_ numbers: Range<Int>) async throws {
        offer(numbers)
        try await run()
    }

    /// Lets the serving of these end, and runs until nothing is left to do.
    func finish(_ numbers: Range<Int>) async throws {
        end(numbers)
        try await run()
    }

    /// Closes the mailbox, with which all tasks end.
    func close(at place: SourceLocation = #_sourceLocation) async throws {
        mailbox.close()
        try await run()
        #expect(hasEnded, sourceLocation: place)
    }
}

@Suite("A loop's requests are served at once, by few tasks", .timeLimit(.minutes(30)))
struct MailboxTests {
    @Test("However many are held, the next is served at once, and each element once")
    func atOnce() async throws {
        let stage = Stage()
        try await stage.serve(0..<20)
        #expect(stage.served == 20)
        stage.end(0..<10)
        try await stage.serve(20..<50)
        #expect(stage.served == 40)
        stage.end(10..<50)
        try await stage.close()
    }

    @Test("A task that has served one goes on with what waits")
    func goesOn() async throws {
        let stage = Stage()
        try await stage.serve(0..<1)
        for number in 1..<5 {
            stage.end(number - 1..<number)
            try await stage.serve(number..<number + 1)
            #expect(stage.served == 1)
        }
        #expect(stage.mailbox.tasks == (parked: 0, made: 1))
        stage.end(4..<5)
        try await stage.close()
    }

    @Test("Tasks stay where many were busy a moment ago, and none where a few were")
    func stays() async throws {
        let stage = Stage()
        try await stage.serve(0..<20)
        try await stage.finish(0..<6)
        #expect(stage.mailbox.tasks == (parked: 6, made: 20))
        try await stage.serve(20..<27)
        #expect(stage.served == 21)
        #expect(stage.mailbox.tasks == (parked: 0, made: 21))
        try await stage.finish(6..<23)
        #expect(stage.served == 4)
        #expect(stage.mailbox.tasks.parked == 17)
        try await stage.finish(23..<27)
        #expect(stage.served == 0)
        #expect(stage.mailbox.tasks.parked == 21, "all that were asked for together")
        // In two parts, for a hundred may wait.
        try await stage.serve(27..<117)
        try await stage.serve(117..<207)
        #expect(stage.served == 180)
        try await stage.finish(27..<207)
        #expect(stage.mailbox.tasks.parked == 128)
        for parked in [128, 0] {
            stage.mailbox.endUnneeded()
            try await stage.run()
            #expect(stage.mailbox.tasks.parked == parked)
        }
        // Three at a time, one look after the other.
        try await stage.serve(207..<210)
        try await stage.finish(207..<210)
        #expect(stage.mailbox.tasks.parked == 0)
        try await stage.close()
    }

    @Test("A task that stays holds nothing of what it has served")
    func holdsNothing() async throws {
        let stage = Stage()
        stage.offer(1..<20)
        weak var item: Item?
        do {
            let first = Item(0)
            item = first
            #expect(stage.mailbox.offer(first))
        }
        try await stage.run()
        #expect(item != nil)
        try await stage.finish(0..<1)
        #expect(stage.mailbox.tasks.parked == 1)
        #expect(item == nil)
        stage.end(1..<20)
        try await stage.close()
    }

    @Test("Tasks that nobody has needed between two looks end while others are held")
    func unneeded() async throws {
        let stage = Stage()
        try await stage.serve(0..<20)
        try await stage.finish(0..<6)
        func look() async throws -> Int {
            stage.mailbox.endUnneeded()
            try await stage.run()
            return stage.mailbox.tasks.parked
        }
        #expect(try await look() == 6)
        try await stage.serve(20..<22)
        try await stage.finish(20..<22)
        #expect(stage.mailbox.tasks == (parked: 6, made: 20))
        #expect(try await look() == 2, "four were not needed")
        #expect(try await look() == 0)
        #expect(stage.served == 14)
        stage.end(6..<20)
        try await stage.close()
    }

    @Test("What waits at the close is served, nothing more is taken, and tasks that stay end")
    func close() async throws {
        let stage = Stage()
        try await stage.serve(0..<20)
        try await stage.finish(0..<6)
        stage.offer(20..<30)
        stage.mailbox.close()
        #expect(!stage.mailbox.offer(Item(30)))
        try await stage.run()
        #expect(stage.served == 24)
        #expect(stage.mailbox.tasks.parked == 0)
        #expect(!stage.hasEnded)
        try await stage.finish(6..<30)
        #expect(stage.mailbox.tasks.parked == 0)
        #expect(stage.hasEnded)
    }

    @Test("A full mailbox takes nothing more until tasks have what waits")
    func full() async throws {
        let stage = Stage()
        stage.offer(0..<100)
        #expect(!stage.mailbox.offer(Item(100)))
        try await stage.run()
        try await stage.serve(100..<101)
        #expect(stage.served == 101)
        stage.end(0..<101)
        try await stage.close()
    }
}
