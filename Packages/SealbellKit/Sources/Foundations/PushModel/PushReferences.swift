import Synchronization

/// Under which ids a call's pushes go out, for a caller that asked to be told (docs/decisions/0130). An id is
/// the `apns-id` of a push, and what `sealbell why` takes.
package final class PushReferences: Sendable {
    private let ids = Mutex<[PushID?]>([])

    package init() {}

    /// - Parameter ids: of the verdict's pushes, in order; `nil` for one that nobody owes.
    package func note(_ ids: [PushID?]) { self.ids.withLock { $0 = ids } }

    /// Empty until the pushes are owed.
    package var all: [PushID?] { ids.withLock(\.self) }
}
