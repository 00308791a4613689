import PushModel
import Synchronization

/// The lanes that one credential (an APNs team key, a service account) stands behind. A fault of the
/// credential halts them all at once, and one acceptance lets them all go.
package final class Credential: Sendable {
    private struct State {
        var members: [@Sendable (Bool) -> Void] = []
        var isHalted = false
    }

    private let state = Mutex(State())
    package init() {}

    var isHalted: Bool { state.withLock(\.isHalted) }

    /// `told` hears true at a halt and false at a resumption.
    func join(_ told: @escaping @Sendable (Bool) -> Void) { state.withLock { $0.members.append(told) } }

    func set(halted: Bool) {
        let members = state.withLock { state -> [@Sendable (Bool) -> Void] in
            guard state.isHalted != halted else { return [] }
            state.isHalted = halted
            return state.members
        }
        for told in members { told(halted) }
    }
}
