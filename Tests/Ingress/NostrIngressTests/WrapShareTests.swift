import AtRest
import Delivery
import MemoryStore
import PushModel
import PushTesting
import Secp256k1Keys
import Testing

@testable import MarmotPush
@testable import NostrIngress

@Suite("Which wraps are held for another process", .timeLimit(.minutes(30)))
struct WrapShareTests {
    @Test("A false copy that comes first hides nothing, and what opens nowhere is not held")
    func forged() async throws {
        let clock = ManualClock()
        let engine = MemoryStore(owner: OwnerID(Digest16(high: 1, low: 1)), clock: { clock.now })
        let store = try await SealedStore(engine: engine, keys: .generate(.live), world: clock.world(seed: 1))
        let membership = Membership(
            store: store, limits: DeliveryLimits(), world: clock.world(seed: 1), journal: .silent)
        let share = WrapShare(
            of: try #require(ConfiguredName("marmot-main")), membership, limits: NostrLimits())
        let wrap = NostrEvent.signed(
            kind: NostrKind.giftWrap, createdAt: 1_767_225_600, content: Secret([0x61]), by: .generate(.live),
            auxiliary: World.live.randomBytes(32))
        let unsigned = copy(wrap, signature: nil)
        let other = copy(wrap, signature: [UInt8](repeating: 1, count: 64))
        // Nobody knows yet whose they are.
        for event in [unsigned, other, wrap, other, wrap] {
            #expect(!share.falls(to: .init(event: event, source: .live, relay: 1)))
        }
        #expect(share.held == 3, "each once, however many relays say it")
        let elsewhere = copy(wrap, signature: wrap.signature, createdAt: wrap.createdAt + 1)
        #expect(share.falls(to: .init(event: elsewhere, source: .live, relay: 1)))
        share.listens(true)
        await membership.renew()
        #expect(share.takeUp().map(\.event.signature) == [nil, other.signature, wrap.signature])
        #expect(share.held == 0)
    }

    /// The same id over another signature, or other fields.
    private func copy(_ event: NostrEvent, signature: [UInt8]?, createdAt: Int64? = nil) -> NostrEvent {
        NostrEvent(
            id: event.id, pubkey: event.pubkey, createdAt: createdAt ?? event.createdAt, kind: event.kind,
            tags: event.tags, content: event.content, signature: signature)
    }
}
