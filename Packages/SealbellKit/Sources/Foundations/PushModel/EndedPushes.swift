import Synchronization

/// Tells those who hold pushes in memory which of them an engine has ended with their registrations.
///
/// An engine reports them once the commit stands, and before the caller of that commit gets its answer.
package final class EndedPushes: Sendable {
    /// A closure stands behind a lock in a structure alone (tidy tests).
    private struct Hearer { var hear: (@Sendable ([PushID]) -> Void)? }
    private let hearer = Mutex(Hearer())

    package init() {}

    /// Sets the listener, replacing the former one.
    package func hear(_ hearer: @escaping @Sendable ([PushID]) -> Void) {
        self.hearer.withLock { $0.hear = hearer }
    }

    /// - Parameter pushes: of this process, that stood as in memory.
    package func tell(_ pushes: [PushID]) {
        guard !pushes.isEmpty, let hearer = hearer.withLock(\.hear) else { return }
        hearer(pushes)
    }
}
