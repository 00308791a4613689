import PushModel
import Synchronization

/// A provider that sends nothing until it is let go, counts what leaves, and notes when a probe does.
final class HeldProvider<Inner: Provider>: Provider {
    /// The way of one probe.
    struct Sighting: Sendable {
        var sentAt: ContinuousClock.Instant
        var answeredAt: ContinuousClock.Instant
        /// What left before it, from the beginning.
        var sentBefore: Int
        var isAccepted: Bool
    }

    private struct State {
        var isHeld = true
        var waiters: [UInt64: CheckedContinuation<Bool, Never>] = [:]
        var nextWaiter: UInt64 = 0
        var sent = 0
        var accepted = 0
        var failed = 0
        var sighting: Sighting?
    }

    private let inner: Inner
    private let probeOrigin: Digest16
    private let world: World
    private let state = Mutex(State())

    /// - Parameter probeOrigin: what probes are known by; one probe is under way at a time.
    init(_ inner: Inner, probeOrigin: Digest16, world: World) {
        self.inner = inner
        self.probeOrigin = probeOrigin
        self.world = world
    }

    var lane: LaneName { inner.lane }
    func run() async throws { try await inner.run() }
    func figures() -> [ProviderFigure] { inner.figures() }

    var sent: Int { state.withLock(\.sent) }
    var accepted: Int { state.withLock(\.accepted) }
    var failed: Int { state.withLock(\.failed) }

    func letGo() {
        let waiters = state.withLock { state in
            state.isHeld = false
            defer { state.waiters = [:] }
            return state.waiters
        }
        for waiter in waiters.values { waiter.resume(returning: true) }
    }

    /// What became of the probe, once it has been answered.
    func takeSighting() -> Sighting? {
        state.withLock { state in
            defer { state.sighting = nil }
            return state.sighting
        }
    }

    func reserve() async throws(CancellationError) -> Inner.Slot {
        guard await isLetGo() else { throw CancellationError() }
        return try await inner.reserve()
    }

    private func isLetGo() async -> Bool {
        guard state.withLock(\.isHeld) else { return true }
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now = state.withLock { state -> Bool? in
                    if Task.isCancelled { return false }
                    if !state.isHeld { return true }
                    state.waiters[id] = continuation
                    return nil
                }
                if let now { continuation.resume(returning: now) }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(returning: false)
        }
    }

    func send(_ leased: LeasedPush, on slot: Inner.Slot) async -> Answer {
        let isProbe = leased.push.origin == probeOrigin
        let sentAt = world.instant()
        let before = state.withLock { state in
            defer { state.sent += 1 }
            return state.sent
        }
        let answer = await inner.send(leased, on: slot)
        let answeredAt = world.instant()
        state.withLock { state in
            if answer.outcome == .accepted { state.accepted += 1 } else { state.failed += 1 }
            guard isProbe else { return }
            state.sighting = Sighting(
                sentAt: sentAt, answeredAt: answeredAt, sentBefore: before,
                isAccepted: answer.outcome == .accepted)
        }
        return answer
    }
}
