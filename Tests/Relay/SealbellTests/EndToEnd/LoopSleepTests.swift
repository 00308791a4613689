import EventLoops
import NIOCore
import NIOPosix
import PushModel
import PushTesting
import Testing

@testable import RelayProgram

@Suite("Sleeps by an event loop's timers", .timeLimit(.minutes(30)))
struct LoopSleepTests {
    private static let loop = MultiThreadedEventLoopGroup.singleton.next()
    private static let executor = LoopExecutor(loop)

    /// A live world that counts the sleeps which do not go by a loop.
    private func world(_ others: AwaitedCount) -> World {
        var world = World.live
        world.sleep = { _ in others.add() }
        return world.sleepingOnLoops()
    }

    private func onLoop<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await Task(executorPreference: Self.executor) { try await work() }.value
    }

    @Test("A task on a loop sleeps there, no shorter than it was to, and stays there")
    func onItsLoop() async throws {
        let others = AwaitedCount()
        let world = world(others)
        let (late, isOnLoop) = try await onLoop {
            let end = world.instant() + .milliseconds(5)
            // Bound: the loop's timer.
            try await world.sleep(end)
            return (world.instant() - end, Self.loop.inEventLoop)
        }
        #expect(late >= .zero && isOnLoop && others.count == 0)
        try await onLoop { try await world.sleep(world.instant() - .seconds(1)) }
    }

    @Test("A long span, and a task that runs on no loop, sleep as ever")
    func others() async throws {
        let others = AwaitedCount()
        let world = world(others)
        try await world.sleep(world.instant() + .seconds(1))
        #expect(others.count == 1)
        try await onLoop { try await world.sleep(world.instant() + World.longestOnLoop + .seconds(60)) }
        #expect(others.count == 2)
    }

    @Test("A cancellation ends the sleep at once, before it has begun and from any thread", arguments: 0..<50)
    func cancelled(_ round: Int) async throws {
        let begun = AwaitedCount()
        // Longer than the test may last: on a busy machine the cancellation comes late.
        let task = Task(executorPreference: Self.executor) {
            begun.add()
            try await LoopSleep.sleep(.seconds(7_200), on: Self.loop)
        }
        if round % 2 == 0 { await begun.wait(for: 1) }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }
}
