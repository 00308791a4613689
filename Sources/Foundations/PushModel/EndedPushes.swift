import Synchronization

/// Pushes that went with their registrations, on their way from an engine to whoever holds them in memory.
///
/// An engine tells of them once the commit stands, and before whoever asked for it hears of that.
package final class EndedPushes: Sendable {
    /// A closure stands behind a lock in a structure alone (tidy tests).
    private struct Hearer { var hear: (@Sendable ([PushID]) -> Void)? }
    private let hearer = Mutex(Hearer())

    package init() {}

    /// From now on that is told, in the place of who was before.
    package func hear(_ hearer: @escaping @Sendable ([PushID]) -> Void) {
        self.hearer.withLock { $0.hear = hearer }
    }

    /// - Parameter pushes: of this process, that stood as in memory.
    package func tell(_ pushes: [PushID]) {
        guard !pushes.isEmpty, let hearer = hearer.withLock(\.hear) else { return }
        hearer(pushes)
    }
}
