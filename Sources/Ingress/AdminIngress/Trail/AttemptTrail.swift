package import Delivery
package import PushModel
import Synchronization

/// The last answers of this process, so that an operator can ask for the way of one push.
///
/// Two rings of fixed size, one for acceptances and one for everything else, so that a flood of successes
/// does not push out the one fault that somebody asks about. Writing takes one short lock and one store into
/// existing memory; nothing is allocated.
package final class AttemptTrail: Sendable {
    /// 32 bytes each, and one of the rest some hundred: together 2 MiB, whatever the load.
    package static let acceptances = 8_192
    package static let faults = 16_384

    private struct Ring<Element> {
        let capacity: Int
        var slots: [Element] = []
        /// The oldest, once all slots are taken.
        var next = 0
        /// Answers that have been overwritten.
        var hasForgotten = false

        init(_ capacity: Int) {
            self.capacity = max(1, capacity)
            slots.reserveCapacity(self.capacity)
        }

        mutating func note(_ element: Element) {
            guard slots.count == capacity else { return slots.append(element) }
            slots[next] = element
            next = next + 1 == capacity ? 0 : next + 1
            hasForgotten = true
        }

        /// The newest first.
        var newestFirst: LazyMapSequence<Range<Int>, Element> {
            // Until the ring is full, `next` is 0, and the newest stands last all the same.
            slots.indices.lazy.map { slots[(next + slots.count - 1 - $0) % slots.count] }
        }

        /// The oldest that is remembered, once older ones are not.
        var oldest: Element? { hasForgotten ? slots[next] : nil }
    }

    /// What acceptances have in common: a handful of each for every lane.
    private struct Manner: Hashable {
        let lane: LaneName
        let reason: Reason
    }

    /// An acceptance, which ends its push. There are a thousand of them for one fault, so it is kept short.
    private struct Acceptance {
        let id: PushID
        let answeredAt: UnixTime
        /// From sending to the answer, milliseconds.
        let waited: UInt32
        let number: UInt16
        let manner: UInt16

        /// `nil`: it has no room here.
        init?(_ attempt: Attempt, manner: Int) {
            let (waited, overflow) = attempt.answeredAt.milliseconds.subtractingReportingOverflow(
                attempt.sentAt.milliseconds)
            guard attempt.next == .ended, !overflow, let waited = UInt32(exactly: waited),
                let number = UInt16(exactly: attempt.number), let manner = UInt16(exactly: manner)
            else { return nil }
            id = attempt.id
            answeredAt = attempt.answeredAt
            self.waited = waited
            self.number = number
            self.manner = manner
        }

        func attempt(_ manner: Manner) -> Attempt {
            Attempt(
                id: id, lane: manner.lane, number: Int(number),
                sentAt: answeredAt - .milliseconds(Int64(waited)), answeredAt: answeredAt, outcome: .accepted,
                reason: manner.reason, next: .ended)
        }
    }

    private struct State {
        /// Lanes times words of acceptance. One that comes when all are taken stands among the faults.
        static let manners = 256

        var acceptances: Ring<Acceptance>
        var faults: Ring<Attempt>
        var manners: [Manner] = []
        var places: [Manner: Int] = [:]
        /// Mostly the next one's too; hashing costs more than comparing with one.
        var latest = 0

        mutating func note(_ attempt: Attempt) {
            guard attempt.outcome == .accepted, let manner = manner(of: attempt),
                let acceptance = Acceptance(attempt, manner: manner)
            else { return faults.note(attempt) }
            acceptances.note(acceptance)
        }

        private mutating func manner(of attempt: Attempt) -> Int? {
            if latest < manners.count, manners[latest].reason == attempt.reason,
                manners[latest].lane == attempt.lane
            {
                return latest
            }
            let manner = Manner(lane: attempt.lane, reason: attempt.reason)
            if let known = places[manner] {
                latest = known
            } else {
                guard manners.count < Self.manners else { return nil }
                latest = manners.count
                places[manner] = latest
                manners.append(manner)
            }
            return latest
        }
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

    package func note(_ attempt: Attempt) { state.withLock { $0.note(attempt) } }

    /// The latest answers that were no acceptances, the newest first. Acceptances that have no room in the
    /// short form stand among them and are passed over.
    package func latestFaults(_ count: Int) -> [Attempt] {
        state.withLock { state in
            Array(state.faults.newestFirst.filter { $0.outcome != .accepted }.prefix(max(0, count)))
        }
    }

    /// Looks through both rings; a person's question now and then, some tens of microseconds.
    package func find(_ id: PushID) -> Found {
        state.withLock { state in
            let accepted = state.acceptances.slots.filter { $0.id == id }
                .map { $0.attempt(state.manners[Int($0.manner)]) }
            let attempts = (state.faults.slots.filter { $0.id == id } + accepted)
                .sorted { $0.answeredAt < $1.answeredAt }
            return Found(
                attempts: attempts, acceptancesSince: state.acceptances.oldest?.answeredAt,
                faultsSince: state.faults.oldest?.answeredAt)
        }
    }
}
