#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Dispatch
import PushModel
import PushTesting
import Synchronization

/// Everything that could happen next, in one thread: the jobs of all simulated machines, and the clock.
///
/// Chance picks among the jobs that are ready; when none is, the clock moves to the next sleeper. With the
/// same seed the same happens again, in a process whose hashing is seeded alike
/// (`SWIFT_DETERMINISTIC_HASHING`).
final class Scheduler: Sendable {
    /// How a run ended.
    enum End: Sendable, Equatable {
        case over
        /// Nothing is ready, nobody sleeps, and it is not over: somebody waits for what will never come.
        case stuck
        /// More jobs than a run may take: something goes round and round.
        case tooLong
    }

    private enum MachineState { case running, paused([UnownedJob]), dead }

    private struct Ready {
        let job: UnownedJob
        let machine: SimulatedExecutor
    }

    private struct Sleeper {
        let until: Duration
        let number: UInt64
        let wake: @Sendable () -> Void
    }

    private struct State {
        var random: SeededRandom
        var elapsed: Duration = .zero
        var ready: [Ready] = []
        /// Sorted, the next one last.
        var sleepers: [Sleeper] = []
        var nextSleeper: UInt64 = 0
        /// Sleepers that were called off: they go when their moment comes.
        var calledOff: Set<UInt64> = []
        var machines: [MachineState] = []
        /// Calls into code that has a thread of its own; while one is under way nothing else happens.
        var outside = 0
        /// What came back from there.
        var returning: [Ready] = []
        var runner: pthread_t?
        var jobs = 0
        var trace: UInt64 = 0xCBF2_9CE4_8422_2325
    }

    private let state: Mutex<State>
    private let back = DispatchSemaphore(value: 0)
    private let beginning = ContinuousClock.now
    private let beginningWall = UnixTime(seconds: 1_800_000_000)

    init(seed: UInt64) { state = Mutex(State(random: SeededRandom(seed: seed))) }

    // MARK: Time and chance

    /// Since the beginning of the run.
    var elapsed: Duration { state.withLock(\.elapsed) }
    var instant: ContinuousClock.Instant { beginning + elapsed }
    /// True time; each machine's own clock may differ from it.
    var now: UnixTime { beginningWall + elapsed }
    /// Jobs so far, and a digest of all choices: equal for equal runs.
    var trace: (jobs: Int, digest: UInt64) { state.withLock { ($0.jobs, $0.trace) } }

    func random() -> UInt64 { state.withLock { $0.random.next() } }

    /// A uniform number in the range.
    func random(in range: ClosedRange<Int>) -> Int {
        state.withLock { Int.random(in: range, using: &$0.random) }
    }

    /// True so many times of a hundred.
    func chance(_ percent: Int) -> Bool { random(in: 1...100) <= percent }

    func random(in range: ClosedRange<Duration>) -> Duration {
        let (low, high) = (range.lowerBound.wholeMicroseconds, range.upperBound.wholeMicroseconds)
        return .microseconds(random(in: low...high))
    }

    /// Calls when the moment has come.
    ///
    /// - Returns: a number by which it can be called off.
    @discardableResult
    func at(_ instant: ContinuousClock.Instant, _ wake: @escaping @Sendable () -> Void) -> UInt64 {
        state.withLock { state in
            state.nextSleeper += 1
            let until = max(beginning.duration(to: instant), state.elapsed)
            let sleeper = Sleeper(until: until, number: state.nextSleeper, wake: wake)
            // Of two for the same moment the one that came first wakes first.
            var (low, high) = (0, state.sleepers.count)
            while low < high {
                let middle = (low + high) / 2
                if state.sleepers[middle].until <= until { high = middle } else { low = middle + 1 }
            }
            state.sleepers.insert(sleeper, at: low)
            return sleeper.number
        }
    }

    /// Whoever has been called already is not called again.
    func callOff(_ number: UInt64) { state.withLock { _ = $0.calledOff.insert(number) } }

    func sleep(until instant: ContinuousClock.Instant) async throws {
        let nap = Nap()
        try await withTaskCancellationHandler {
            // Unsafe: who sleeps on a machine that dies is never woken, and that is no mistake.
            try await withUnsafeThrowingContinuation { (continuation: UnsafeContinuation<Void, any Error>) in
                guard nap.begin(continuation) else { return }
                at(instant) { nap.end(.success(())) }
            }
        } onCancel: {
            nap.end(.failure(CancellationError()))
        }
    }

    /// Sleeps for a random while; a cancelled task goes on at once.
    func pause(_ range: ClosedRange<Duration>) async {
        let span = random(in: range)
        // Cancelled: a task that is has somewhere to go.
        try? await sleep(until: instant + span)
    }

    // MARK: Machines

    func machine() -> SimulatedExecutor {
        state.withLock { state in
            state.machines.append(.running)
            return SimulatedExecutor(scheduler: self, number: state.machines.count - 1)
        }
    }

    /// Nothing of it happens ever again: neither jobs that are ready nor those that come.
    func kill(_ machine: Int) {
        state.withLock { state in
            state.machines[machine] = .dead
            state.ready.removeAll { $0.machine.number == machine }
        }
    }

    /// What is ready waits until ``goOn(_:)``, as after SIGSTOP.
    func hold(_ machine: SimulatedExecutor) {
        state.withLock { state in
            guard case .running = state.machines[machine.number] else { return }
            let held = state.ready.filter { $0.machine === machine }.map(\.job)
            state.ready.removeAll { $0.machine === machine }
            state.machines[machine.number] = .paused(held)
        }
    }

    func goOn(_ machine: SimulatedExecutor) {
        state.withLock { state in
            guard case .paused(let held) = state.machines[machine.number] else { return }
            state.machines[machine.number] = .running
            state.ready += held.map { Ready(job: $0, machine: machine) }
        }
    }

    func enqueue(_ job: UnownedJob, on machine: SimulatedExecutor) {
        let comesBack = state.withLock { state -> Bool in
            let ready = Ready(job: job, machine: machine)
            if state.outside > 0, state.runner.map({ pthread_equal($0, pthread_self()) == 0 }) ?? false {
                state.returning.append(ready)
                return true
            }
            switch state.machines[machine.number] {
            case .running: state.ready.append(ready)
            case .paused(let held): state.machines[machine.number] = .paused(held + [job])
            case .dead: break
            }
            return false
        }
        if comesBack { back.signal() }
    }

    /// Runs what has a thread of its own. The run stands still until it is back, so that no chance but the
    /// seed's comes in.
    func outside<Value: Sendable, Failure: Error>(
        _ body: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        state.withLock { $0.outside += 1 }
        defer { state.withLock { $0.outside -= 1 } }
        return try await body()
    }

    // MARK: Running

    /// Runs until it is over, on the calling thread.
    func run(jobs limit: Int = 20_000_000, until isOver: () -> Bool) -> End {
        state.withLock { $0.runner = pthread_self() }
        while !isOver() {
            enum Next { case job(Ready), wake(Sleeper), wait, stuck, tooLong }
            let next = state.withLock { state -> Next in
                if state.outside > 0 {
                    return state.returning.isEmpty ? .wait : .job(state.returning.removeFirst())
                }
                if state.ready.isEmpty {
                    guard var sleeper = state.sleepers.popLast() else { return .stuck }
                    while state.calledOff.remove(sleeper.number) != nil {
                        guard let next = state.sleepers.popLast() else { return .stuck }
                        sleeper = next
                    }
                    state.elapsed = max(state.elapsed, sleeper.until)
                    return .wake(sleeper)
                }
                state.jobs += 1
                guard state.jobs <= limit else { return .tooLong }
                let place = Int.random(in: 0..<state.ready.count, using: &state.random)
                state.trace = (state.trace ^ UInt64(place &* 31 &+ state.ready.count)) &* 0x100_0000_01B3
                return .job(state.ready.remove(at: place))
            }
            switch next {
            case .job(let ready):
                ready.job.runSynchronously(on: ready.machine.asUnownedTaskExecutor())
            case .wake(let sleeper): sleeper.wake()
            // Bounded by the one that is outside: a database file answers.
            case .wait: back.wait()
            case .stuck: return .stuck
            case .tooLong: return .tooLong
            }
        }
        return .over
    }
}

/// One machine, or one process of it: what it runs stops with it.
final class SimulatedExecutor: TaskExecutor {
    let scheduler: Scheduler
    let number: Int

    init(scheduler: Scheduler, number: Int) {
        self.scheduler = scheduler
        self.number = number
    }

    func enqueue(_ job: consuming ExecutorJob) {
        scheduler.enqueue(UnownedJob(job), on: self)
    }

    /// Begins something on this machine. Nobody owns it: it ends by itself, or dies with the machine.
    func begin(_ body: @escaping @Sendable () async -> Void) {
        Task(executorPreference: self) { await body() }
    }

    func kill() { scheduler.kill(number) }
    func hold() { scheduler.hold(self) }
    func goOn() { scheduler.goOn(self) }
}

/// One sleep, which ends once.
private final class Nap: Sendable {
    private enum State {
        case before, over(Result<Void, any Error>)
        case asleep(UnsafeContinuation<Void, any Error>)
    }

    private let state = Mutex(State.before)

    /// False when it has ended already.
    func begin(_ continuation: UnsafeContinuation<Void, any Error>) -> Bool {
        let ended = state.withLock { state -> Result<Void, any Error>? in
            if case .over(let result) = state { return result }
            state = .asleep(continuation)
            return nil
        }
        if let ended { continuation.resume(with: ended) }
        return ended == nil
    }

    func end(_ result: Result<Void, any Error>) {
        let continuation = state.withLock { state -> UnsafeContinuation<Void, any Error>? in
            defer { if case .over = state {} else { state = .over(result) } }
            if case .asleep(let continuation) = state { return continuation }
            return nil
        }
        continuation?.resume(with: result)
    }
}

extension Duration {
    fileprivate var wholeMicroseconds: Int {
        let (seconds, attoseconds) = components
        return Int(seconds * 1_000_000 + attoseconds / 1_000_000_000_000)
    }
}
