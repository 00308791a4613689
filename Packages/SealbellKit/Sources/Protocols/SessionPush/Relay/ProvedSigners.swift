import Primitives
import PushModel
import Synchronization

/// Signers whose signature was lately verified, as digests under a key of this process.
///
/// A claim of such a signer is charged to the signer and not to the address that it came from. A claim whose
/// signature fails ends that: somebody who names other people's keys gets one verification for each key, and
/// no more.
package final class ProvedSigners: Sendable {
    private struct State {
        var young: Set<Digest16> = []
        var old: Set<Digest16> = []
        var since: ContinuousClock.Instant?
    }

    private let state = Mutex(State())
    private let key: Secret

    package init() { key = Secret(World.live.randomBytes(32)) }

    /// - Returns: the signer's name as a payer; `nil`: the signer is not known.
    func known(_ claim: SessionClaim, now: ContinuousClock.Instant) -> Digest16? {
        let name = name(claim)
        return state.withLock { state in
            Self.turn(&state, now)
            return state.young.contains(name) || state.old.contains(name) ? name : nil
        }
    }

    func enter(_ claim: SessionClaim, now: ContinuousClock.Instant) {
        let name = name(claim)
        state.withLock { state in
            if state.young.count >= SessionLimits.provedSigners { state.since = nil }
            Self.turn(&state, now)
            state.young.insert(name)
        }
    }

    func leave(_ claim: SessionClaim) {
        let name = name(claim)
        state.withLock { state in
            state.young.remove(name)
            state.old.remove(name)
        }
    }

    private static func turn(_ state: inout State, _ now: ContinuousClock.Instant) {
        if let since = state.since, now - since < SessionLimits.provedLife { return }
        (state.old, state.young, state.since) = (state.young, [], now)
    }

    private func name(_ claim: SessionClaim) -> Digest16 {
        KeyedHash.digest16(key: key) { hash in
            hash.update(claim.account.bytes)
            hash.update(ClaimProof.claimedKey(claim))
        }
    }
}
