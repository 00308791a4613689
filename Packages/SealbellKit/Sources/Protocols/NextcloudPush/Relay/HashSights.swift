import PushModel
import Synchronization

/// When the server first spoke of another token than the registered one (decision 0100).
///
/// In memory: after a restart, and at another relay on the store, the ten minutes start again, which deletes
/// nothing too soon. Only hashes that the pinned key has signed are noted, so that each place costs a
/// registration.
final class HashSights: Sendable {
    private struct Sight {
        /// `nil`: a text that is no hash.
        let hash: TokenHash?
        let at: ContinuousClock.Instant
    }

    private let sights = Mutex(Recent<DeviceIdentifier, Sight>(capacity: NextcloudLimits.hashSights))

    /// Whether that hash is too new to mean anything; its first sight is noted.
    func isNew(
        _ hash: TokenHash?, of identifier: DeviceIdentifier, at now: ContinuousClock.Instant
    ) -> Bool {
        sights.withLock { sights in
            if let known = sights.value(identifier), known.hash == hash {
                return now - known.at < NextcloudLimits.tokenChange
            }
            sights.set(Sight(hash: hash, at: now), for: identifier)
            return true
        }
    }

    /// The device registers: later sights count as first ones.
    func forget(_ identifier: DeviceIdentifier) { sights.withLock { $0.forget(identifier) } }
}
