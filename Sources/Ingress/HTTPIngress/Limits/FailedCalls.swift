import PushModel
import Synchronization

/// Calls that ended with 401, by client, and what that client may still ask.
///
/// A stranger who tries credentials costs a look-up in the store each time. A client above its share is told
/// to wait after the head alone, unless its credential was good lately: an honest origin may share an address
/// with a stranger, or with an origin whose key is wrong.
final class FailedCalls: Sendable {
    private struct State {
        var buckets: RateBuckets<ClientKey>
        /// Digests; the older ones are forgotten when as many newer ones have come.
        var good: Set<UInt64> = []
        var goodBefore: Set<UInt64> = []

        func isGood(_ digest: UInt64) -> Bool { good.contains(digest) || goodBefore.contains(digest) }
    }

    private let state: Mutex<State>
    private let world: World
    /// So that digests mean nothing outside this process.
    private let key: UInt64

    init(perMinute: Int, world: World) {
        self.world = world
        key = world.random()
        state = Mutex(
            State(
                buckets: RateBuckets(
                    perMinute: perMinute, capacity: rateBuckets, start: world.instant())))
    }

    /// Whether a call is looked at. Costs a look into a table as long as the client has a share left.
    ///
    /// - Parameter credential: the field of ``HTTPFace/credentialField``.
    func admits(_ client: ClientKey, _ face: ConfiguredName, _ credential: @autoclosure () -> String?) -> Bool
    {
        state.withLock { state in
            guard state.buckets.count > 0,
                state.buckets.level(of: client, now: world.instant()) == .empty
            else { return true }
            return credential().map { state.isGood(digest($0, of: client, face)) } ?? false
        }
    }

    /// Whether that credential was good lately, shown by that client to that face.
    func isGood(_ client: ClientKey, _ face: ConfiguredName, _ credential: String?) -> Bool {
        guard let credential else { return false }
        let shown = digest(credential, of: client, face)
        return state.withLock { $0.isGood(shown) }
    }

    /// - Parameter status: of the answer, no matter who gave it.
    func note(
        _ status: Int, of client: ClientKey, _ face: ConfiguredName, _ credential: @autoclosure () -> String?
    ) {
        let isGood = (200..<300).contains(status)
        guard isGood || status == 401 else { return }
        // Good credentials are remembered even before anybody has failed: a stranger must not shut out an
        // origin that calls once an hour.
        let shown = credential().map { digest($0, of: client, face) }
        state.withLock { state in
            if status == 401 { _ = state.buckets.take(1, of: client, now: world.instant()) }
            guard let shown else { return }
            guard isGood else {
                // A path that needs no credential may have counted it as good.
                state.good.remove(shown)
                state.goodBefore.remove(shown)
                return
            }
            if state.good.contains(shown) { return }
            if state.good.count >= IngressLimits.goodCredentials {
                state.goodBefore = state.good
                state.good = []
            }
            state.good.insert(shown)
        }
    }

    private func digest(_ credential: String, of client: ClientKey, _ face: ConfiguredName) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(key)
        hasher.combine(client.value)
        // Its own hash is cheap: there are a few faces, of our configuration.
        hasher.combine(face.hashValue)
        hasher.combine(credential)
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }
}
