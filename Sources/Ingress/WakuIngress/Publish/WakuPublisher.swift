import Delivery
package import PushModel
package import StatusPush
import Synchronization

/// Publishes through one node, a few messages at a time; the others wait for their turn, in order.
package final class WakuPublisher: Sendable {
    private struct State {
        var underWay = 0
        /// Of messages that wait.
        var bytes = 0
        var waiting = Fifo<CheckedContinuation<Void, Never>>()
        var published = 0
    }

    private let calls: WakuCalls
    private let limits: WakuLimits
    private let world: World
    private let state = Mutex(State())

    package init(calls: WakuCalls, limits: WakuLimits = WakuLimits(), world: World) {
        self.calls = calls
        self.limits = limits
        self.world = world
    }

    /// Messages under way, or waiting.
    package var count: Int { state.withLock { $0.underWay + $0.waiting.count } }
    /// Messages that the node took.
    package var published: Int { state.withLock(\.published) }

    /// Returns when the node has taken the message.
    ///
    /// - Throws: `.overloaded` at once, when too many wait; `.refused`; `.nodeAway` when it was not taken
    ///   within ``WakuLimits/publishWithin``, or the task was cancelled.
    package func publish(_ message: WakuMessage) async throws(WakuError) {
        let end = world.instant() + limits.publishWithin
        guard await enter(message.payload.count) else { throw WakuError(.overloaded) }
        defer { leave() }
        var attempts = 0
        var refusals = 0
        // Ends, because each round waits and there is a deadline.
        while world.instant() < end, !Task.isCancelled {
            let fault: NodeFault
            do throws(NodeFault) {
                try await calls.publish(message)
                state.withLock { $0.published += 1 }
                return
            } catch {
                fault = error
            }
            attempts += 1
            var rest = limits.publishBackoff.delay(
                afterAttempt: attempts, asked: fault.retryAfter, random: world.random())
            if case .status(400, _) = fault {
                // A node that does not listen on the topic also gives this answer; it is about to be told to.
                refusals += 1
                guard refusals < limits.refusalsBelieved else { throw WakuError(.refused) }
                rest = limits.refusalRest
            } else if !fault.isPassing {
                throw WakuError(.refused)
            }
            // The sleep ends early only by cancellation, which ends the loop.
            try? await world.sleep(min(end, world.instant() + max(rest, limits.leastRest)))
        }
        throw WakuError(.nodeAway)
    }

    /// Waits for a place.
    ///
    /// - Returns: false: too many wait.
    private func enter(_ bytes: Int) async -> Bool {
        let isIn = state.withLock { state -> Bool? in
            if state.underWay < limits.publishersAtOnce {
                state.underWay += 1
                return true
            }
            guard state.waiting.count < limits.publishersWaiting,
                bytes <= limits.publishingBytes - state.bytes
            else { return false }
            state.bytes += bytes
            return nil
        }
        if let isIn { return isIn }
        defer { state.withLock { $0.bytes -= bytes } }
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let goesOn = state.withLock { state -> Bool in
                guard state.underWay >= limits.publishersAtOnce else {
                    state.underWay += 1
                    return true
                }
                state.waiting.append(continuation)
                return false
            }
            if goesOn { continuation.resume() }
        }
        return true
    }

    /// Leaves its place to the one that has waited longest.
    private func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            if let next = state.waiting.popFirst() { return next }
            state.underWay -= 1
            return nil
        }
        next?.resume()
    }
}
