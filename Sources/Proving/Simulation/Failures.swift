import PushModel
import Synchronization

/// What senders have heard of as failed, where the relay withdraws such pushes: nothing of these may be left.
final class Failures: Sendable {
    private struct State {
        var mayBeWithdrawn: Set<Int> = []
        /// Names under which each has had an answer.
        var answered: [Int: Set<PushID>] = [:]
        /// Names that a sender has heard of as failed.
        var dead: Set<PushID> = []
        /// Of these the relay cannot know whether its own withdrawal was made, and tells of a failure.
        var doubted: Set<PushID> = []
    }

    private let state = Mutex(State())

    func offered(_ number: Int) { state.withLock { _ = $0.mayBeWithdrawn.insert(number) } }
    func mayBeWithdrawn(_ number: Int) -> Bool { state.withLock { $0.mayBeWithdrawn.contains(number) } }

    /// A push service, or the way to it, has said something of it.
    func returned(_ number: Int, _ id: PushID) {
        state.withLock { state in
            guard state.mayBeWithdrawn.contains(number) else { return }
            state.answered[number, default: []].insert(id)
        }
    }

    /// The sender hears that it failed.
    func heard(_ number: Int) {
        state.withLock { state in state.dead.formUnion(state.answered[number] ?? []) }
    }

    /// The answer to a withdrawal was lost.
    func doubt(_ id: PushID) { state.withLock { _ = $0.doubted.insert(id) } }

    /// Whether it is sent although its sender will send it again.
    func isDead(_ id: PushID) -> Bool {
        state.withLock { $0.dead.contains(id) && !$0.doubted.contains(id) }
    }
}
