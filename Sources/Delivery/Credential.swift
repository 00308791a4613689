import PushModel
import Synchronization

/// The lanes that one credential (a team key, a service account) stands behind. A fault of the
/// credential halts them all at once, and one acceptance lets them all go.
package final class Credential: Sendable {
    /// Held weakly: lanes come and go with reloads, while a credential stays as long as its key file does.
    private struct Member: Sendable { weak let lane: (any LaneRunning)? }

    private struct State {
        var members: [Member] = []
        var fault: Reason?
    }

    private let state = Mutex(State())
    package init() {}

    /// From now on the lane hears of halts and resumptions; of a halt that stands, at once.
    func join(_ lane: any LaneRunning) {
        let fault = state.withLock { state in
            state.members.removeAll { $0.lane == nil }
            state.members.append(Member(lane: lane))
            return state.fault
        }
        if let fault { lane.setCredential(fault: fault) }
    }

    /// Halts every lane for that fault, or lets them go; told once for each change.
    func set(fault: Reason?) {
        let members = state.withLock { state -> [Member] in
            guard (state.fault == nil) != (fault == nil) else { return [] }
            state.fault = fault
            return state.members
        }
        for member in members { member.lane?.setCredential(fault: fault) }
    }
}
