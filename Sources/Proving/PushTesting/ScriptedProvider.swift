package import PushModel
import Synchronization

/// A lane's provider: answers as the test says and remembers what was sent to it.
package final class ScriptedProvider: DirectProvider {
    package struct Slot: SendSlot {
        fileprivate let provider: ScriptedProvider
        package func release() { provider.giveBack() }
    }

    private struct State {
        var free: Int
        var waiters: [(id: Int, continuation: CheckedContinuation<Bool, Never>)] = []
        var nextWaiter = 0
        package var sent: [OwedPush] = []
        package var leases: [ContinuousClock.Instant] = []
    }

    package let lane: LaneName
    private let state: Mutex<State>
    private let reservations = AwaitedCount()
    package let requests = AwaitedCount()
    private let answer: @Sendable (OwedPush) async -> Answer
    private let windsDown: @Sendable (Duration) -> Void

    /// - Parameter slots: how many requests may be under way at once.
    /// - Parameter windsDown: called when the process stops, with the time that it waits for answers.
    package init(
        _ lane: LaneName, slots: Int = 1, windsDown: @escaping @Sendable (Duration) -> Void = { _ in },
        answer: @escaping @Sendable (OwedPush) async -> Answer
    ) {
        self.lane = lane
        self.answer = answer
        self.windsDown = windsDown
        state = Mutex(State(free: slots))
    }

    /// Returns once a lane has waited for a slot, which shows that it has something to send.
    package func waitForReservation() async { await reservations.wait(for: 1) }

    /// Allows this many more requests to be under way at once.
    package func grant(_ slots: Int) { for _ in 0..<slots { giveBack() } }

    /// The addresses of what was sent, in order.
    package var addresses: [String] {
        sent.map { $0.message.address.reveal { String(decoding: $0, as: UTF8.self) } }
    }

    /// The time until which each could have been sent, in the same order.
    package var leases: [ContinuousClock.Instant] { state.withLock(\.leases) }

    /// What was sent, in order.
    package var sent: [OwedPush] { state.withLock(\.sent) }

    /// Returns once that many requests have been sent.
    package func waitForSent(_ count: Int) async { await requests.wait(for: count) }

    package func run() async throws {}
    package func windDown(within span: Duration) { windsDown(span) }

    package func reserve() async throws(CancellationError) -> Slot {
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        let granted = await withTaskCancellationHandler {
            // Bound: a lane that stops cancels its reservation.
            await withCheckedContinuation { continuation in
                let now = state.withLock { state -> Bool? in
                    if Task.isCancelled { return false }
                    if state.free > 0 {
                        state.free -= 1
                        return true
                    }
                    state.waiters.append((id, continuation))
                    reservations.add()
                    return nil
                }
                if let now { continuation.resume(returning: now) }
            }
        } onCancel: {
            let waiter = state.withLock { state -> CheckedContinuation<Bool, Never>? in
                guard let index = state.waiters.firstIndex(where: { $0.id == id }) else { return nil }
                return state.waiters.remove(at: index).continuation
            }
            waiter?.resume(returning: false)
        }
        guard granted else { throw CancellationError() }
        return Slot(provider: self)
    }

    package func send(_ leased: LeasedPush, on slot: Slot) async -> Answer {
        state.withLock { state in
            state.sent.append(leased.push)
            state.leases.append(leased.sendBefore)
        }
        requests.add()
        let answer = await self.answer(leased.push)
        giveBack()
        return answer
    }

    fileprivate func giveBack() {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            if state.waiters.isEmpty {
                state.free += 1
                return nil
            }
            return state.waiters.removeFirst().continuation
        }
        next?.resume(returning: true)
    }
}
