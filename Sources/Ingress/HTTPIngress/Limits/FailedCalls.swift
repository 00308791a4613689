import PushModel
import Synchronization

/// Calls that ended with 401, by client, and what that client may still ask.
///
/// A stranger who tries credentials costs a look-up in the store each time. Beyond its share a client is told
/// to wait by the head alone, unless the credential that it shows was good lately: behind one address may
/// stand an honest origin beside a stranger, or beside one whose key is wrong.
final class FailedCalls: Sendable {
    private struct State {
        var buckets: RateBuckets<ClientKey>
        var good: Set<UInt64> = []
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
    /// - Parameter credential: the `Authorization` field.
    func admits(_ client: ClientKey, _ credential: @autoclosure () -> String?) -> Bool {
        state.withLock { state in
            guard state.buckets.count > 0,
                state.buckets.level(of: client, now: world.instant()) == .empty
            else { return true }
            return credential().map { state.good.contains(digest($0, of: client)) } ?? false
        }
    }

    /// - Parameter status: of the answer, no matter who gave it.
    func note(_ status: Int, of client: ClientKey, _ credential: @autoclosure () -> String?) {
        state.withLock { state in
            // Where nobody has failed there is nothing to remember either.
            guard status == 401 || state.buckets.count > 0 else { return }
            let now = world.instant()
            if status == 401 {
                _ = state.buckets.take(1, of: client, now: now)
                return
            }
            guard (200..<300).contains(status), state.buckets.level(of: client, now: now) != .full,
                let credential = credential()
            else { return }
            // Begun anew when full: who is still there shows its credential again.
            if state.good.count >= IngressLimits.goodCredentials { state.good.removeAll() }
            state.good.insert(digest(credential, of: client))
        }
    }

    private func digest(_ credential: String, of client: ClientKey) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(key)
        hasher.combine(client)
        hasher.combine(credential)
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }
}
