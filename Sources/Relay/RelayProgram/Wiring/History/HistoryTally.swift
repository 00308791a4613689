import AtRest
import PushModel
import Synchronization

/// What pushes to each registration have met since the last look, until ``HistoryKeeper`` writes it down.
///
/// Every push comes by. So there are two tables of fixed size, one for deliveries and one for all else, so
/// that a flood of successes takes no room of the faults; a slot is found by the registration's digest, which
/// is random already, and nothing is allocated but the second table, with the first fault. Pushes that find
/// no slot are told by their number.
final class HistoryTally: Sendable {
    /// Registrations that are delivered to between two looks; a power of two, as the next is. 128 KiB each.
    static let deliveries = 4_096
    static let others = 2_048
    /// Slots that one registration may take, looked at one behind the other.
    private static let probes = 8

    private struct Delivered {
        var registration = Digest16(high: 0, low: 0)
        var last = UnixTime.distantPast
        /// 0: the slot is free.
        var count: UInt32 = 0
    }

    private struct Other {
        var registration = Digest16(high: 0, low: 0)
        var last = UnixTime.distantPast
        var reason = Reason.ok
        var event = RegistrationEvent.delivered
        /// 0: the slot is free.
        var count: UInt32 = 0
    }

    private struct State {
        /// Empty while nothing is counted.
        var delivered: [Delivered] = []
        /// The same, and until something is counted here.
        var others: [Other] = []
        var uncounted = 0

        mutating func deliver(_ registration: Digest16, _ now: UnixTime) {
            guard !delivered.isEmpty else { return }
            let start = Int(truncatingIfNeeded: registration.low)
            for step in 0..<HistoryTally.probes {
                let place = (start &+ step) & (HistoryTally.deliveries - 1)
                if delivered[place].count == 0 {
                    delivered[place].registration = registration
                } else if delivered[place].registration != registration {
                    continue
                }
                // No minute has four thousand million pushes.
                delivered[place].count &+= 1
                delivered[place].last = now
                return
            }
            uncounted += 1
        }

        mutating func note(
            _ registration: Digest16, _ event: RegistrationEvent, _ reason: Reason, _ now: UnixTime
        ) {
            guard !delivered.isEmpty else { return }
            if others.isEmpty { others = Array(repeating: Other(), count: HistoryTally.others) }
            let start = Int(truncatingIfNeeded: registration.low)
            for step in 0..<HistoryTally.probes {
                let place = (start &+ step) & (HistoryTally.others - 1)
                let slot = others[place]
                if slot.count == 0 {
                    others[place] = Other(
                        registration: registration, last: now, reason: reason, event: event, count: 1)
                    return
                }
                guard slot.registration == registration, slot.event == event, slot.reason == reason else {
                    continue
                }
                others[place].count &+= 1
                others[place].last = now
                return
            }
            uncounted += 1
        }
    }

    private let state = Mutex(State())

    /// Each answer. Called under a lane's lock.
    func note(_ registration: Digest16, _ event: RegistrationEvent, _ reason: Reason, at now: UnixTime) {
        // A pattern costs an instruction or two; a comparison is a call into the type's module.
        if case .delivered = event {
            state.withLock { $0.deliver(registration, now) }
        } else {
            state.withLock { $0.note(registration, event, reason, now) }
        }
    }

    /// Begins or ends to count; what was counted is forgotten.
    func turn(on: Bool) {
        state.withLock { state in
            guard on == state.delivered.isEmpty else { return }
            state = State()
            guard on else { return }
            state.delivered = Array(repeating: Delivered(), count: Self.deliveries)
        }
    }

    /// Takes what was counted since the last time, and how many pushes were not.
    func take() -> (counts: [RegistrationCount], uncounted: Int) {
        state.withLock { state in
            var counts: [RegistrationCount] = []
            for place in state.delivered.indices where state.delivered[place].count > 0 {
                let slot = state.delivered[place]
                counts.append(
                    RegistrationCount(
                        registration: slot.registration, event: .delivered, reason: "", count: slot.count,
                        last: slot.last))
                state.delivered[place] = Delivered()
            }
            for place in state.others.indices where state.others[place].count > 0 {
                let slot = state.others[place]
                counts.append(
                    RegistrationCount(
                        registration: slot.registration, event: slot.event, reason: slot.reason.rawValue,
                        count: slot.count, last: slot.last))
                state.others[place] = Other()
            }
            defer { state.uncounted = 0 }
            return (counts, state.uncounted)
        }
    }
}
