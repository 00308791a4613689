import PushModel
import PushTesting
import Synchronization

/// A push service in one value: answers as the test says and remembers what it was sent.
final class ScriptedProvider: DirectProvider {
    struct Slot: SendSlot {
        let provider: ScriptedProvider
        func release() { provider.giveBack() }
    }

    private struct State {
        var free: Int
        var waiters: [(id: Int, continuation: CheckedContinuation<Bool, Never>)] = []
        var nextWaiter = 0
        var sent: [OwedPush] = []
        var leases: [ContinuousClock.Instant] = []
    }

    let lane: LaneName
    private let state: Mutex<State>
    private let reservations = Watch()
    let requests = Watch()
    private let answer: @Sendable (OwedPush) async -> Answer

    /// `slots`: requests that may be under way at once.
    init(_ lane: LaneName, slots: Int = 1, answer: @escaping @Sendable (OwedPush) async -> Answer) {
        self.lane = lane
        self.answer = answer
        state = Mutex(State(free: slots))
    }

    /// Returns once a lane has waited for a slot: it has something to send.
    func waitForReservation() async { await reservations.wait(for: 1) }

    /// Lets that many more requests be under way at once.
    func grant(_ slots: Int) { for _ in 0..<slots { giveBack() } }

    /// The addresses of what was sent, in order.
    var addresses: [String] { sent.map(\.address) }

    /// Until when each might have been sent, in the same order.
    var leases: [ContinuousClock.Instant] { state.withLock(\.leases) }

    /// What was sent, in order.
    var sent: [OwedPush] { state.withLock(\.sent) }

    /// Returns once that many requests have been sent.
    func waitForSent(_ count: Int) async { await requests.wait(for: count) }

    func run() async throws {}

    func reserve() async throws(CancellationError) -> Slot {
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

    func send(_ leased: LeasedPush, on slot: Slot) async -> Answer {
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

/// A provider that hands pushes to another relay: all that a scripted one does, but it is not direct.
struct ForwardingProvider: Provider {
    let inner: ScriptedProvider

    var lane: LaneName { inner.lane }
    func run() async throws { try await inner.run() }
    func reserve() async throws(CancellationError) -> ScriptedProvider.Slot { try await inner.reserve() }
    func send(_ leased: LeasedPush, on slot: ScriptedProvider.Slot) async -> Answer {
        await inner.send(leased, on: slot)
    }
}
