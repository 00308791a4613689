import PushModel
import Synchronization

/// A push service that is out and comes back, and counts what reaches it. No socket: what is on trial is what
/// stands behind it.
final class OutageService: Provider {
    struct Slot: SendSlot {
        let service: OutageService
        func release() { service.giveBack() }
    }

    struct Figures: Sendable {
        var attempts = 0
        var delivered = 0
        var doubled = 0
        var underWay = 0
        var mostUnderWay = 0
    }

    private struct State {
        var isOut = true
        var free: Int
        var figures = Figures()
        /// How often each push was accepted, by its number.
        var seen: [UInt8]
        var waiters: [UInt64: CheckedContinuation<Bool, Never>] = [:]
        /// Waiters in the order of their coming; one that was cancelled is passed over.
        var order: [UInt64] = []
        var nextWaiter: UInt64 = 0
    }

    let lane: LaneName
    private let fault: OutagePlan.Fault
    private let world: World
    private let state: Mutex<State>

    init(lane: LaneName, plan: OutagePlan, world: World) {
        self.lane = lane
        self.world = world
        fault = plan.fault
        state = Mutex(State(free: plan.streams, seen: Array(repeating: 0, count: plan.pushes)))
    }

    var figures: Figures { state.withLock(\.figures) }

    /// The address of a push: its number.
    static func address(_ number: Int) -> Secret { Secret("push-\(number)".utf8) }

    private static func number(_ address: Secret) -> Int {
        address.reveal { bytes in bytes.dropFirst(5).reduce(0) { $0 * 10 + Int($1 & 15) } }
    }

    func comeBack() {
        let woken = state.withLock { state in
            state.isOut = false
            return Self.wake(&state)
        }
        for waiter in woken { waiter.resume(returning: true) }
    }

    func run() async throws {}

    func reserve() async throws(CancellationError) -> Slot {
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        let granted = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now = state.withLock { state -> Bool? in
                    if Task.isCancelled { return false }
                    if mayGrant(state) {
                        state.free -= 1
                        return true
                    }
                    state.waiters[id] = continuation
                    state.order.append(id)
                    return nil
                }
                if let now { continuation.resume(returning: now) }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(returning: false)
        }
        guard granted else { throw CancellationError() }
        return Slot(service: self)
    }

    private func mayGrant(_ state: borrowing State) -> Bool {
        state.free > 0 && (!state.isOut || fault == .refusing)
    }

    func send(_ leased: LeasedPush, on slot: Slot) async -> Answer {
        let number = Self.number(leased.push.message.address)
        let isOut = state.withLock { state in
            state.figures.attempts += 1
            state.figures.underWay += 1
            state.figures.mostUnderWay = max(state.figures.mostUnderWay, state.figures.underWay)
            guard !state.isOut else { return true }
            if state.seen[number] > 0 { state.figures.doubled += 1 } else { state.figures.delivered += 1 }
            state.seen[number] = min(state.seen[number], 254) + 1
            return false
        }
        // Others have their turn between request and answer, as over a socket.
        await Task.yield()
        giveBack(ended: true)
        return isOut
            ? Answer(.retry(after: nil), .serviceUnavailable, sentAt: world.now())
            : Answer(.accepted, .ok, sentAt: world.now())
    }

    private func giveBack(ended: Bool = false) {
        let woken = state.withLock { state in
            if ended { state.figures.underWay -= 1 }
            state.free += 1
            return Self.wake(&state)
        }
        for waiter in woken { waiter.resume(returning: true) }
    }

    private static func wake(_ state: inout State) -> [CheckedContinuation<Bool, Never>] {
        var woken: [CheckedContinuation<Bool, Never>] = []
        while state.free > 0, let id = state.order.first {
            state.order.removeFirst()
            guard let waiter = state.waiters.removeValue(forKey: id) else { continue }
            state.free -= 1
            woken.append(waiter)
        }
        return woken
    }
}
