import Delivery
import MarmotPublishing
import MarmotPush
import PushModel
import Secp256k1Keys
import Synchronization
import WebSocket

/// Whether what a stranger publishes at an inbox relay comes back to us through it: a relay may keep its
/// connections and answer every request, but deliver nothing.
///
/// A test is a trigger like any other to all who see it: a fresh author, a wrap, one token that opens for
/// nobody. It is published over a separate connection, and dropped when it arrives.
final class SelfTest: Sendable {
    private struct Awaited {
        let id: [UInt8]
        /// The share of the relay that it was published at.
        let relay: Int
        let came: Bell
    }

    /// At most one for each relay.
    private let awaited = Mutex<[Awaited]>([])
    private let limits: NostrLimits
    private let world: World

    init(limits: NostrLimits, world: World) {
        self.limits = limits
        self.world = world
    }

    /// Whether an event is one of ours. A relay may have got it from another relay.
    func takes(_ event: NostrEvent, from relay: Int) -> Bool {
        awaited.withLock { awaited in
            guard let found = awaited.first(where: { $0.id == event.id }) else { return false }
            if found.relay == relay { found.came.ring() }
            return true
        }
    }

    /// Tests one relay.
    ///
    /// - Parameter share: the relay's share of the queue, which tells it from others.
    func run(
        _ relay: NostrRelay, share: Int, for key: XOnlyKey, by publisher: NostrPublisher
    ) async -> RelayNote {
        guard let event = event(for: key) else { return .selfTestLost }
        let came = Bell()
        awaited.withLock { $0.append(Awaited(id: event.id, relay: share, came: came)) }
        defer { awaited.withLock { $0.removeAll { $0.id == event.id } } }
        let outcome = await publisher.publish(event, to: [relay], within: limits.selfTestSpan)
        switch outcome.first {
        case .accepted?: break
        case .refused(let reason)?: return .selfTestRefused(reason)
        case .unfit?: return .selfTestRefused(nil)
        case .failed(let code)?: return .selfTestFailed(code)
        case .unanswered?, nil: return .selfTestFailed(nil)
        }
        let end = world.instant() + limits.selfTestSpan
        return await world.untilEnd(end, { await came.wait() }) == nil ? .selfTestLost : .selfTestPassed
    }

    private func event(for key: XOnlyKey) -> NostrEvent? {
        let author = Secp256k1KeyPair.generate(world)
        let format = TokenFormat.pushV1
        let junk = Secret(world.randomBytes(format.tokenBytes ?? 0))
        // One token of the right size: it fits.
        guard let content = try? TriggerContent(format, [junk]).serialized() else { return nil }
        let rumor = NostrEvent.rumor(
            kind: NostrKind.trigger, createdAt: world.now().seconds, tags: format.triggerTags,
            content: content, author: author.publicKey)
        // It fits, and the author is its own.
        return try? GiftWrap.wrap(sealing: rumor, by: author, to: key, world: world)
    }
}
