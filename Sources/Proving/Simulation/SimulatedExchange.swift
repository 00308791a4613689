import PushModel
import Synchronization

/// One request on its way: it is answered in time, or given up and listened to for a while.
final class SimulatedExchange: Sendable {
    typealias Fate = SimulatedPushService.Fate
    private typealias Waiter = UnsafeContinuation<Fate?, Never>

    private struct State {
        var waiter: Waiter?
        /// What came while nobody waited for it.
        var came: Fate?
        var isGivenUp = false
        var isOver = false

        mutating func takeWaiter() -> Waiter? {
            defer { waiter = nil }
            return waiter
        }
    }

    /// Among its lane's.
    let number: Int
    /// When it was handed over.
    let begun: ContinuousClock.Instant
    /// The connection that it left on, by number.
    let connection: Int
    private let state = Mutex(State())

    init(_ number: Int, begun: ContinuousClock.Instant, connection: Int) {
        self.number = number
        self.begun = begun
        self.connection = connection
    }

    /// Waits until it is answered or given up; a second call waits for the late answer.
    ///
    /// - Parameter begin: called once somebody waits.
    /// - Returns: `nil`: nothing has come.
    func answer(_ begin: () -> Void = {}) async -> Fate? {
        await withUnsafeContinuation { (waiter: Waiter) in
            let known = state.withLock { state -> Fate?? in
                if let came = state.came { return .some(came) }
                if state.isOver { return .some(nil) }
                state.waiter = waiter
                return nil
            }
            if let known { waiter.resume(returning: known) }
            begin()
        }
    }

    /// - Returns: whether it comes late, and is of use all the same.
    func came(_ fate: Fate) -> Bool {
        let (waiter, isLate) = state.withLock { state -> (Waiter?, Bool) in
            guard !state.isOver, state.came == nil else { return (nil, false) }
            state.came = fate
            return (state.takeWaiter(), state.isGivenUp)
        }
        waiter?.resume(returning: fate)
        return isLate
    }

    /// The deadline has come.
    func giveUp() {
        let waiter = state.withLock { state -> Waiter? in
            guard !state.isGivenUp, state.came == nil else { return nil }
            state.isGivenUp = true
            return state.takeWaiter()
        }
        waiter?.resume(returning: nil)
    }

    /// Nobody listens any more.
    func close() {
        let waiter = state.withLock { state -> Waiter? in
            state.isOver = true
            return state.takeWaiter()
        }
        waiter?.resume(returning: nil)
    }
}
