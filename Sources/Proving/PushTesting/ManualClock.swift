package import PushModel
import Synchronization

/// Wall and monotonic time that move only when a test says so, and sleepers that wake in the order of their
/// deadlines.
///
/// `sleepers(atLeast:)` lets a test wait until the code under test has reached its sleep, so that no test
/// needs a pause of its own.
package final class ManualClock: Sendable {
    private struct Sleeper {
        var id: UInt64
        var until: ContinuousClock.Instant
        var continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var elapsed: Duration = .zero
        var wallSkew: Duration = .zero
        var sleepers: [Sleeper] = []
        /// Tests, each with the number of sleepers that it waits for.
        var watchers = WaitList<Int>()
        var nextID: UInt64 = 0
        /// Sleeps cancelled before they had begun to wait.
        var cancelled: Set<UInt64> = []
    }

    private let state = Mutex(State())
    private let startWall: UnixTime
    private let startInstant = ContinuousClock.now

    /// - Parameter start: what the wall clock shows at first.
    package init(start: UnixTime = UnixTime(seconds: 1_800_000_000)) { startWall = start }

    /// The wall clock.
    package var now: UnixTime { state.withLock { startWall + $0.elapsed + $0.wallSkew } }
    /// The monotonic clock.
    package var instant: ContinuousClock.Instant { state.withLock { startInstant + $0.elapsed } }
    /// The time since it was made, regardless of changes of the wall clock.
    package var elapsed: Duration { state.withLock(\.elapsed) }
    /// How many tasks sleep now.
    package var sleeping: Int { state.withLock { $0.sleepers.count } }
    /// The time until the next sleeper wakes; `nil` when nobody sleeps.
    package var untilNext: Duration? {
        state.withLock { state in state.sleepers.map { $0.until - (startInstant + state.elapsed) }.min() }
    }

    /// Moves both clocks and wakes, in order, every sleeper whose deadline has come.
    package func advance(by span: Duration) {
        let woken = state.withLock { state -> [Sleeper] in
            state.elapsed += span
            let now = startInstant + state.elapsed
            let due = state.sleepers.filter { $0.until <= now }.sorted {
                $0.until == $1.until ? $0.id < $1.id : $0.until < $1.until
            }
            state.sleepers.removeAll { $0.until <= now }
            return due
        }
        for sleeper in woken { sleeper.continuation.resume() }
    }

    /// Moves both clocks and wakes nobody, as when a process is stopped: a sleeper that is due wakes at the
    /// next ``advance(by:)``.
    package func suspend(for span: Duration) { state.withLock { $0.elapsed += span } }

    /// Moves the wall clock alone, as an operator or NTP would. Nobody wakes.
    package func skewWall(by span: Duration) { state.withLock { $0.wallSkew += span } }

    /// Returns once at least `count` tasks sleep, or when the test has run out of time or of patience, which
    /// is reported as the test's failure.
    package func sleepers(
        atLeast count: Int, looks: Int = Patience.looks, file: String = #fileID, line: Int = #line
    ) async {
        _ = await waits(
            for: "sleeper \(count) of a manual clock", looks: looks, file: file, line: line
        ) { id, continuation in
            state.withLock { state in
                if state.sleepers.count >= count { return .came }
                if Task.isCancelled { return .cancelled }
                state.watchers.enter(id, count, continuation)
                return nil
            }
        } leave: { id in
            self.state.withLock { $0.watchers.take(id) }
        }
    }

    /// Sleeps until another task has moved the clock to the deadline.
    package func sleep(until deadline: ContinuousClock.Instant) async throws {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                begin(Sleeper(id: id, until: deadline, continuation: continuation))
            }
        } onCancel: {
            cancel(id)
        }
    }

    private enum Start { case waits([WaitList<Int>.Continuation]), due, cancelled }

    private func begin(_ sleeper: Sleeper) {
        let start = state.withLock { state -> Start in
            if state.cancelled.remove(sleeper.id) != nil { return .cancelled }
            if sleeper.until <= startInstant + state.elapsed { return .due }
            state.sleepers.append(sleeper)
            let count = state.sleepers.count
            return .waits(state.watchers.take { $0 <= count })
        }
        switch start {
        case .waits(let watchers): for watcher in watchers { watcher.resume(returning: .came) }
        case .due: sleeper.continuation.resume()
        case .cancelled: sleeper.continuation.resume(throwing: CancellationError())
        }
    }

    private func cancel(_ id: UInt64) {
        let sleeper = state.withLock { state -> Sleeper? in
            guard let index = state.sleepers.firstIndex(where: { $0.id == id }) else {
                state.cancelled.insert(id)
                return nil
            }
            return state.sleepers.remove(at: index)
        }
        sleeper?.continuation.resume(throwing: CancellationError())
    }

    /// A world of this clock and of random numbers that follow from the seed.
    package func world(seed: UInt64) -> World {
        let random = SharedRandom(seed: seed)
        return World(
            now: { self.now }, instant: { self.instant }, sleep: { try await self.sleep(until: $0) },
            random: { random.next() })
    }
}

/// A seeded generator that many tasks draw from.
private final class SharedRandom: Sendable {
    private let random: Mutex<SeededRandom>
    init(seed: UInt64) { random = Mutex(SeededRandom(seed: seed)) }
    func next() -> UInt64 { random.withLock { $0.next() } }
}

extension World {
    /// A world whose clocks stand still and whose random numbers follow from the seed.
    package static func fixed(seed: UInt64, at now: UnixTime) -> World {
        ManualClock(start: now).world(seed: seed)
    }
}
