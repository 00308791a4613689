import PushModel
import Synchronization

/// Calls that wait for room, or for the store.
///
/// Deployed origins drop a message whose call was refused (docs/conformance/zulip.md), so an intake that is
/// full for a moment, or a store that is out for a moment, keeps the caller waiting instead of refusing the
/// call. Bounded in number, in bytes and in time. A call that waits is let go when room has been made or the
/// store has answered again, at most once a tick, and once in ``DeliveryLimits/holdPoll`` whatever happens;
/// then it asks again.
final class Hold: Sendable {
    private struct State {
        var waiting: [(until: ContinuousClock.Instant, continuation: CheckedContinuation<Void, Never>)] = []
        var calls = 0
        var bytes = 0
        /// Something has happened after which waiting calls should ask again.
        var isStirred = false
        var lookedAt: ContinuousClock.Instant
        /// A loop releases the waiting calls.
        var isRunning = false
    }

    private let state: Mutex<State>
    private let bell = Bell()
    private let limits: DeliveryLimits
    private let world: World

    init(limits: DeliveryLimits, world: World) {
        self.limits = limits
        self.world = world
        state = Mutex(State(lookedAt: world.instant()))
    }

    /// A settlement or another commit has been made, or a renewal was answered after one that was not.
    func stir() {
        state.withLock { if $0.calls > 0 { $0.isStirred = true } }
    }

    /// Counts a call in; false when it must be refused at once. ``leave(_:)`` must follow.
    func enter(_ bytes: Int) -> Bool {
        state.withLock { state in
            guard state.isRunning, state.calls < limits.heldCalls, state.bytes + bytes <= limits.heldBytes
            else { return false }
            state.calls += 1
            state.bytes += bytes
            return true
        }
    }

    func leave(_ bytes: Int) {
        state.withLock { state in
            state.calls -= 1
            state.bytes -= bytes
        }
    }

    /// Waits until it is worth asking again, and at most until the given moment.
    ///
    /// - Returns: whether there is time left.
    func wait(until: ContinuousClock.Instant) async -> Bool {
        guard world.instant() < until else { return false }
        await withCheckedContinuation { continuation in
            let waits = state.withLock { state in
                if state.isRunning { state.waiting.append((until, continuation)) }
                return state.isRunning
            }
            if waits { bell.ring() } else { continuation.resume() }
        }
        return state.withLock(\.isRunning) && world.instant() < until
    }

    /// Releases waiting calls, until cancelled.
    func run() async {
        state.withLock { $0.isRunning = true }
        while !Task.isCancelled {
            guard state.withLock({ !$0.waiting.isEmpty }) else {
                await bell.wait()
                continue
            }
            do { try await world.sleep(world.instant() + limits.tick) } catch { break }
            release(world.instant())
        }
        let waiting = state.withLock { state in
            state.isRunning = false
            defer { state.waiting = [] }
            return state.waiting
        }
        for waiter in waiting { waiter.continuation.resume() }
    }

    private func release(_ now: ContinuousClock.Instant) {
        let gone = state.withLock { state in
            let all = state.isStirred || now - state.lookedAt >= limits.holdPoll
            if all {
                state.isStirred = false
                state.lookedAt = now
            }
            let gone = state.waiting.filter { all || $0.until <= now }
            state.waiting.removeAll { all || $0.until <= now }
            return gone
        }
        for waiter in gone { waiter.continuation.resume() }
    }
}

/// How long one call may stay: what it may be held for, its reply's wait included.
///
/// By reference: the size of an instant is known only at run time, so a function that waits and holds one by
/// value takes a block of its task's memory for each copy.
package final class Stay: Sendable {
    let until: ContinuousClock.Instant
    /// What it keeps in memory meanwhile.
    let bytes: Int

    init(until: ContinuousClock.Instant, bytes: Int) {
        self.until = until
        self.bytes = bytes
    }
}

extension Intake {
    /// Begins a call's stay.
    ///
    /// - Parameters:
    ///   - bytes: what the call keeps in memory.
    ///   - by: when the listener answers the peer in the call's place.
    package func stay(bytes: Int, by: ContinuousClock.Instant? = nil) -> Stay {
        let longest = core.world.instant() + core.limits.hold
        return Stay(until: by.map { min(longest, $0 - core.limits.holdMargin) } ?? longest, bytes: bytes)
    }

    /// Asks again while the intake is busy, as long as the stay lasts and there is room to wait.
    ///
    /// The caller asks once by itself, which is nearly always enough: asking through this function costs a
    /// push two more task frames.
    ///
    /// - Parameters:
    ///   - first: the answer to the first asking.
    ///   - isBusy: whether asking again may have another answer.
    package func hold<Value, Failure>(
        _ stay: Stay, after first: Failure, while isBusy: (Failure) -> Bool,
        _ ask: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        var failure = first
        guard isBusy(failure), core.limits.hold > .zero, core.hold.enter(stay.bytes) else { throw failure }
        defer { core.hold.leave(stay.bytes) }
        core.observer.held()
        // Ends with the stay.
        while await core.hold.wait(until: stay.until) {
            do throws(Failure) {
                let value = try await ask()
                // If there was room for one call, there may be room for the next.
                core.hold.stir()
                return value
            } catch {
                failure = error
                guard isBusy(error) else { break }
            }
        }
        throw failure
    }
}
