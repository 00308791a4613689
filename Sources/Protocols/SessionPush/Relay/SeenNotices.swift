import Primitives
import PushModel
import Synchronization

/// Messages that were told of lately: every member of a swarm reports the same one.
///
/// Two generations, so that an entry lives one to two lifetimes (§10.4), whatever comes. They go by the wall
/// clock, which is read for each message anyway: set forward, it ends a lifetime early, and what is forgotten
/// too early the store's marks still know; set back, it ends it at once, so that none lasts for ever.
package final class SeenNotices: Sendable {
    private struct State {
        var young: Set<Digest16> = []
        var old: Set<Digest16> = []
        /// Milliseconds of the wall clock.
        var since: Int64?
    }

    /// ``SessionLimits/seenLife`` in milliseconds.
    private static let life = SessionLimits.seenLife.wholeMilliseconds

    private let state = Mutex(State())
    private let key: Secret

    package init() { key = Secret(World.live.randomBytes(32)) }

    /// False when the message was entered before.
    func enter(_ push: StoragePush, now: UnixTime) -> Bool {
        let digest = digest(push)
        return state.withLock { state in
            let now = now.milliseconds
            let age = now - (state.since ?? now)
            if state.since == nil { state.since = now }
            if state.young.count >= SessionLimits.seenMessages || age < 0 || age >= Self.life {
                swap(&state.young, &state.old)
                // Keeps its memory: another generation will be as large.
                state.young.removeAll(keepingCapacity: true)
                state.since = now
            }
            guard !state.old.contains(digest) else { return false }
            return state.young.insert(digest).inserted
        }
    }

    /// Forgets a message that could not be handed on, so that another report of it may be.
    func leave(_ push: StoragePush) {
        let digest = digest(push)
        state.withLock { state in
            state.young.remove(digest)
            state.old.remove(digest)
        }
    }

    private func digest(_ push: StoragePush) -> Digest16 {
        KeyedHash.digest16(key: key) { hash in
            hash.update(push.account.bytes)
            withUnsafeBytes(of: push.namespace.bigEndian) { hash.update($0) }
            push.hash.reveal { hash.update($0) }
        }
    }
}
