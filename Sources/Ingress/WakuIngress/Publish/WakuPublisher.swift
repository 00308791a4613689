import Delivery
package import PushModel
package import StatusPush
import Synchronization

/// Publishes through one node, a few messages at a time; the others wait for their turn, in order.
package final class WakuPublisher: Sendable {
    private struct State {
        /// Messages under way, or waiting.
        var count = 0
        /// Of messages that wait.
        var bytes = 0
        var published = 0
    }

    private let calls: WakuCalls
    private let limits: WakuLimits
    private let world: World
    private let state = Mutex(State())
    private let turns: StatusPush.Turns

    package init(calls: WakuCalls, limits: WakuLimits = WakuLimits(), world: World) {
        self.calls = calls
        self.limits = limits
        self.world = world
        turns = StatusPush.Turns(limits.publishersAtOnce)
    }

    /// Messages under way, or waiting.
    package var count: Int { state.withLock(\.count) }
    /// Messages that the node took.
    package var published: Int { state.withLock(\.published) }

    /// Returns when the node has taken the message.
    ///
    /// - Throws: `.overloaded` at once, when too many wait; `.refused`; `.nodeAway` when it was not taken
    ///   within ``WakuLimits/publishWithin``, or the task was cancelled.
    package func publish(_ message: WakuMessage) async throws(WakuError) {
        let end = world.instant() + limits.publishWithin
        let bytes = message.payload.count
        guard let waits = enter(bytes) else { throw WakuError(.overloaded) }
        defer { state.withLock { $0.count -= 1 } }
        try await turns.taking { () async throws(WakuError) in
            if waits { state.withLock { $0.bytes -= bytes } }
            try await publish(message, until: end)
        }
    }

    private func publish(
        _ message: WakuMessage, until end: ContinuousClock.Instant
    ) async throws(WakuError) {
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

    /// - Returns: whether the message waits for its turn; `nil`: too many wait.
    private func enter(_ bytes: Int) -> Bool? {
        state.withLock { state -> Bool? in
            let waiting = state.count - limits.publishersAtOnce
            if waiting >= 0 {
                guard waiting < limits.publishersWaiting, bytes <= limits.publishingBytes - state.bytes else {
                    return nil
                }
                state.bytes += bytes
            }
            state.count += 1
            return waiting >= 0
        }
    }
}
