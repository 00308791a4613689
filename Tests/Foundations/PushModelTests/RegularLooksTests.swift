import PushModel
import PushTesting
import Synchronization
import Testing

@Suite("Loops that look regularly, and rest while there is nothing", .timeLimit(.minutes(30)))
struct RegularLooksTests {
    private static let (span, rest) = (Duration.milliseconds(100), Duration.seconds(10))

    /// A loop over a manual clock.
    private final class Stage: Sendable {
        let clock = ManualClock()
        let looks: RegularLooks
        /// Something to look at.
        let isBusy = Mutex(false)
        let seen = AwaitedCount()

        init() { looks = RegularLooks(clock.world(seed: 1)) }

        func run() async {
            while !Task.isCancelled {
                await looks.next(every: span) { isBusy.withLock(\.self) ? nil : rest }
                if !Task.isCancelled { seen.add() }
            }
        }

        func come() {
            isBusy.withLock { $0 = true }
            looks.wake()
        }

        /// Lets time pass; the loop has seen it.
        func pass(_ span: Duration) async {
            clock.advance(by: span)
            await clock.sleepers(atLeast: 1)
        }
    }

    private func withStage(_ body: (Stage) async throws -> Void) async throws {
        let stage = Stage()
        try await beside({ await stage.run() }) {
            await stage.clock.sleepers(atLeast: 1)
            try await body(stage)
        }
    }

    @Test("It rests while there is nothing, and looks seldom")
    func rests() async throws {
        try await withStage { stage in
            #expect(stage.clock.untilNext == Self.rest)
            await stage.pass(Self.rest)
            #expect(stage.seen.count == 1)
            #expect(stage.clock.untilNext == Self.rest)
        }
    }

    @Test("What comes ends the rest: the first look is a span behind it, and one span lies between looks")
    func wakes() async throws {
        try await withStage { stage in
            await stage.pass(.seconds(3))
            stage.come()
            #expect(stage.clock.sleeping == 0 || stage.clock.untilNext == Self.span)
            await stage.clock.sleepers(atLeast: 1)
            #expect(stage.clock.untilNext == Self.span)
            for look in 1...5 {
                await stage.pass(Self.span)
                #expect(stage.seen.count == look)
                #expect(stage.clock.untilNext == Self.span)
            }
            stage.isBusy.withLock { $0 = false }
            await stage.pass(Self.span)
            #expect(stage.clock.untilNext == Self.rest)
        }
    }

    @Test("A span counts from what has come, however late the loop is told")
    func late() async throws {
        try await withStage { stage in
            stage.come()
            // The loop may have heard of it by now, or not yet.
            await stage.pass(Self.span)
            await stage.seen.wait(for: 1)
            #expect(stage.seen.count == 1)
        }
    }

    @Test("What comes while the loop asks whether there is anything is not missed")
    func between() async {
        let clock = ManualClock()
        let looks = RegularLooks(clock.world(seed: 1))
        async let looked: Void = looks.next(every: Self.span) {
            // It has come behind the question and before the rest.
            looks.wake()
            return Self.rest
        }
        await clock.sleepers(atLeast: 1)
        #expect(clock.untilNext == Self.span)
        clock.advance(by: Self.span)
        await looked
    }

    @Test("A wake-up that nobody needed does not end a later rest")
    func stale() async {
        let clock = ManualClock()
        let looks = RegularLooks(clock.world(seed: 1))
        async let first: Void = looks.next(every: Self.span) {
            looks.wake()
            return nil
        }
        await clock.sleepers(atLeast: 1)
        clock.advance(by: Self.span)
        await first
        looks.wake()
        async let second: Void = looks.next(every: Self.span) { Self.rest }
        await clock.sleepers(atLeast: 1)
        #expect(clock.untilNext == Self.rest)
        clock.advance(by: Self.rest)
        await second
    }

    @Test("A rest ends with the task that rests")
    func cancelled() async throws {
        let stage = Stage()
        let task = Task { await stage.run() }
        await stage.clock.sleepers(atLeast: 1)
        task.cancel()
        await task.value
        #expect(stage.clock.sleeping == 0 && stage.seen.count == 0)
    }

    /// What has come and was not looked at yet.
    private final class Basket: Sendable {
        private let count = Mutex(0)
        var isEmpty: Bool { count.withLock { $0 == 0 } }
        func add() { count.withLock { $0 += 1 } }
        func takeAll() -> Int {
            count.withLock { count in
                defer { count = 0 }
                return count
            }
        }
    }

    @Test("Of many that come at any moment, none is left for the end of a rest", arguments: 0..<20)
    func many(_ round: Int) async throws {
        let looks = RegularLooks(.live)
        let (basket, taken) = (Basket(), AwaitedCount())
        // A rest that must not end by itself.
        try await beside({
            while !Task.isCancelled {
                await looks.next(every: .zero) { basket.isEmpty ? .seconds(86_400) : nil }
                for _ in 0..<basket.takeAll() { taken.add() }
            }
        }) {
            for number in 1...500 {
                basket.add()
                looks.wake()
                if number % 7 == round % 7 { await taken.wait(for: number) }
            }
            await taken.wait(for: 500)
        }
        #expect(taken.count == 500)
    }
}

@Suite("A bell with a time limit", .timeLimit(.minutes(30)))
struct BellTests {
    @Test("Who waits until a moment is woken by a ring, and no longer sleeps when the ring returns")
    func rung() async {
        let clock = ManualClock()
        let (world, bell) = (clock.world(seed: 1), Bell())
        async let waited: Void = bell.wait(until: world.instant() + .seconds(1), in: world)
        await clock.sleepers(atLeast: 1)
        bell.ring()
        #expect(clock.sleeping == 0)
        await waited
        #expect(clock.elapsed == .zero)
    }

    @Test("A ring before the wait is remembered once")
    func before() async {
        let clock = ManualClock()
        let (world, bell) = (clock.world(seed: 1), Bell())
        bell.ring()
        bell.ring()
        await bell.wait(until: world.instant() + .seconds(1), in: world)
        async let waited: Void = bell.wait(until: world.instant() + .seconds(1), in: world)
        await clock.sleepers(atLeast: 1)
        #expect(clock.untilNext == .seconds(1))
        clock.advance(by: .seconds(1))
        await waited
        // A ring behind the end is for the next wait.
        bell.ring()
        await bell.wait()
    }
}
