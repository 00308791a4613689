import AtRest
import CoreMetrics
import Delivery
import DeliveryTesting
import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing
import WakuIngress

@testable import RelayProgram

@Suite("Which topics fall to which process", .timeLimit(.minutes(30)))
struct StatusShareTests {
    private static let topics = (0..<1_000).map { $0 &* 0x9E37_79B9 } as [UInt32]
    private let clock = ManualClock()

    /// Two processes on one store, which know of each other.
    private func pair() async throws -> [(membership: Membership, share: StatusShare)] {
        let name = try #require(ConfiguredName("main"))
        let memory = try await SealedMemory(clock.world(seed: 1))
        let memories = [memory, try await memory.open(clock.world(seed: 2), as: 2)]
        var pair: [(membership: Membership, share: StatusShare)] = []
        for (index, memory) in memories.enumerated() {
            let membership = Membership(
                store: memory.store, limits: DeliveryLimits(), world: clock.world(seed: UInt64(index + 1)),
                journal: .silent)
            pair.append((membership, StatusShare(of: name, membership)))
        }
        return pair
    }

    /// Each reads who is there, as often as a newcomer needs to be counted.
    private func settle(_ pair: [(membership: Membership, share: StatusShare)]) async {
        for _ in 0..<30 {
            for one in pair { await one.membership.renew() }
            clock.advance(by: .seconds(1))
        }
        for one in pair { await one.membership.renew() }
    }

    @Test("Each topic falls to one of two that listen, and to both when nothing is known")
    func shared() async throws {
        let pair = try await pair()
        #expect(Self.topics.allSatisfy { pair[0].share.falls($0) && pair[1].share.falls($0) })
        for one in pair { one.share.hears(true) }
        await settle(pair)
        let first = Self.topics.filter { pair[0].share.falls($0) }
        #expect(Set(first).isDisjoint(with: Self.topics.filter { pair[1].share.falls($0) }))
        #expect(Self.topics.allSatisfy { pair[0].share.falls($0) || pair[1].share.falls($0) })
        // 1,000 fair draws; 300 is 12 deviations away.
        #expect((300...700).contains(first.count))
    }

    @Test("What one answered that hears its node no more falls to the other, and comes back with it")
    func deaf() async throws {
        let pair = try await pair()
        for one in pair { one.share.hears(true) }
        await settle(pair)
        let before = Self.topics.filter { pair[1].share.falls($0) }
        pair[0].share.hears(false)
        await settle(pair)
        #expect(Self.topics.allSatisfy { pair[1].share.falls($0) })
        pair[0].share.hears(true)
        await settle(pair)
        #expect(Self.topics.filter { pair[1].share.falls($0) } == before)
    }

    @Test("What came while one was dying is asked of the store once more, once for each that died")
    func died() async throws {
        let pair = try await pair()
        for one in pair { one.share.hears(true) }
        await settle(pair)
        let world = clock.world(seed: 7)
        let topics = StatusTopics(
            of: Secp256k1KeyPair.generate(world).point, StatusRecordNames(configured("main")),
            registry: try await SealedMemory(world).store, limits: StatusHostLimits(), world: world)
        let node = try #require(WakuNode("http://127.0.0.1:1"))
        let outlet = WakuOutlet(
            name: configured("main"), node: node, web: NoWeb(), world: world,
            metrics: NOOPMetricsHandler.instance)
        let ingress = WakuIngress(
            beside: outlet, topics: topics.followed, world: world, journal: .silent, take: { _ in true })
        let link = StatusLink(
            topics, share: pair[0].share, ingress: ingress, limits: StatusHostLimits(), world: world)
        #expect(link.lookAgain(after: []).isEmpty && !ingress.statistics.hasGap)
        // The second one is seen no more.
        for _ in 0..<40 {
            clock.advance(by: .seconds(1))
            await pair[0].membership.renew()
        }
        let ended = link.lookAgain(after: [])
        #expect(ended.count == 1 && ingress.statistics.hasGap)
        #expect(link.lookAgain(after: ended) == ended)
    }

    private struct NoWeb: WebFetch {
        func fetch(_ request: WebRequest) async throws(WebError) -> WebAnswer { throw WebError(.unreachable) }
    }
}
