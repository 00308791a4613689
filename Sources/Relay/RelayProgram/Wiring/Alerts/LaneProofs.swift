import Delivery
import PushModel
import Synchronization

/// Notices when lanes with a reported alert get good answers again: an alert of a lane ends with the push
/// service's answer, never with a reload or a restart, which only forget the trouble.
final class LaneProofs: Sendable {
    private struct State {
        /// What stands behind each lane of the configuration in force.
        var credentials: [LaneName: ObjectIdentifier] = [:]
        /// Lanes whose answers count now.
        var awaited: Set<LaneName> = []
        var accepted: Set<LaneName> = []
        /// Accepted, or refused by a word that is about the push alone.
        var answered: Set<LaneName> = []

        /// Whether what one lane's credential is given says something of the other's: a key may be good for
        /// one environment alone.
        func areAlike(_ one: LaneName, _ other: LaneName) -> Bool {
            guard let credential = credentials[one] else { return false }
            return credential == credentials[other] && one.environment == other.environment
        }
    }

    private let state = Mutex(State())
    /// Every answer of a push service passes here, and nearly always none is waited for.
    private let isAwaiting = Atomic<Bool>(false)

    /// Follows a configuration.
    func adopt(_ credentials: [LaneName: ObjectIdentifier]) {
        state.withLock { $0.credentials = credentials }
    }

    /// An operator is told of trouble of that lane: what was heard before proves nothing.
    func forget(_ lane: LaneName) {
        state.withLock { state in
            state.accepted.remove(lane)
            state.answered.remove(lane)
        }
        attend([lane])
    }

    /// Answers of these lanes count from now on, and those of lanes that stand on the same credential in the
    /// same environment.
    func attend(_ lanes: Set<LaneName>) {
        guard !lanes.isEmpty else { return }
        state.withLock { state in
            state.awaited.formUnion(lanes)
            for lane in lanes {
                let others = state.credentials.keys.filter { state.areAlike($0, lane) }
                state.awaited.formUnion(others)
            }
        }
        isAwaiting.store(true, ordering: .relaxed)
    }

    /// Nobody was told of any lane, or all is over.
    func rest() {
        isAwaiting.store(false, ordering: .relaxed)
        state.withLock { state in
            state.awaited = []
            state.accepted = []
            state.answered = []
        }
    }

    /// Each answer. Called under a lane's lock.
    func note(_ attempt: Attempt) {
        guard isAwaiting.load(ordering: .relaxed), attempt.outcome != .retry else { return }
        state.withLock { state in
            guard state.awaited.contains(attempt.lane) else { return }
            state.answered.insert(attempt.lane)
            if attempt.outcome == .accepted { state.accepted.insert(attempt.lane) }
        }
    }

    func hasAnswered(_ lane: LaneName) -> Bool { state.withLock { $0.answered.contains(lane) } }

    /// Whether the lane's service has accepted something of it; or, of a lane with nothing to send, of
    /// another one with the same credential.
    func hasAccepted(_ lane: LaneName, isIdle: Bool) -> Bool {
        state.withLock { state in
            if state.accepted.contains(lane) { return true }
            return isIdle && state.accepted.contains { state.areAlike($0, lane) }
        }
    }
}
