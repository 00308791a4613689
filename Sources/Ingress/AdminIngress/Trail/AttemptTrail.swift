package import Delivery
package import PushModel
import Synchronization

/// The last answers of this process, so that an operator can ask for the way of one push.
///
/// Two rings of fixed size, one for acceptances and one for everything else, so that a flood of successes
/// does not push out the one fault that somebody asks about. Writing takes one short lock and one store into
/// existing memory; nothing is allocated.
package final class AttemptTrail: Sendable {
    /// About a hundred bytes each: together below 3 MiB, whatever the load.
    package static let acceptances = 8_192
    package static let faults = 16_384

    private struct Ring {
        let capacity: Int
        var slots: [Attempt] = []
        /// The oldest, once all slots are taken.
        var next = 0
        /// Answers that have been overwritten.
        var hasForgotten = false

        init(_ capacity: Int) {
            self.capacity = max(1, capacity)
            slots.reserveCapacity(self.capacity)
        }

        mutating func note(_ attempt: Attempt) {
            guard slots.count == capacity else { return slots.append(attempt) }
            slots[next] = attempt
            next = next + 1 == capacity ? 0 : next + 1
            hasForgotten = true
        }

        /// The oldest answer that is remembered, once older ones are not.
        var since: UnixTime? { hasForgotten ? slots[next].answeredAt : nil }
    }

    private struct State {
        var acceptances: Ring
        var faults: Ring
    }

    /// What is remembered of one push, and how far back the memory reaches.
    package struct Found: Sendable, Hashable {
        /// In the order of their answers.
        package var attempts: [Attempt]
        /// Acceptances before this time are forgotten; `nil`: none of this process's are.
        package var acceptancesSince: UnixTime?
        /// All other answers before this time are forgotten; `nil`: none of this process's are.
        package var faultsSince: UnixTime?
    }

    private let state: Mutex<State>

    package init(acceptances: Int = AttemptTrail.acceptances, faults: Int = AttemptTrail.faults) {
        state = Mutex(State(acceptances: Ring(acceptances), faults: Ring(faults)))
    }

    package func note(_ attempt: Attempt) {
        state.withLock { state in
            if attempt.outcome == .accepted {
                state.acceptances.note(attempt)
            } else {
                state.faults.note(attempt)
            }
        }
    }

    /// Looks through both rings; a person's question now and then, some tens of microseconds.
    package func find(_ id: PushID) -> Found {
        state.withLock { state in
            let attempts =
                (state.faults.slots.filter { $0.id == id }
                + state.acceptances.slots.filter { $0.id == id })
                .sorted { $0.answeredAt < $1.answeredAt }
            return Found(
                attempts: attempts, acceptancesSince: state.acceptances.since,
                faultsSince: state.faults.since)
        }
    }
}
