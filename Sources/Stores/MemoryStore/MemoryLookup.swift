package import PushModel
import Synchronization

extension MemoryStore: OwedLookup {
    /// The row of an owed push, without its sealed column. For an operator's question: it looks through all.
    package func owed(_ id: PushID) -> StoredPush? {
        shared.state.withLock { state in
            var push = state.rows.values.first { $0.push.id == id }?.push
            push?.sealed = []
            return push
        }
    }

    /// The push that has been owed longest.
    package func oldest() -> PushID? {
        shared.state.withLock { state in state.rows.min { $0.key < $1.key }?.value.push.id }
    }
}
