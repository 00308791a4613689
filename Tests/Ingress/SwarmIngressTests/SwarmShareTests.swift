import Delivery
import DeliveryTesting
import PushModel
import PushTesting
import SessionPush
import Testing

@testable import SwarmIngress

@Suite("Which storage nodes fall to which process", .timeLimit(.minutes(30)))
struct SwarmShareTests {
    private let name = ConfiguredName("session-main")
    private let clock = ManualClock()

    private func membership() async throws -> Membership {
        let world = clock.world(seed: 1)
        return Membership(
            store: try await SealedMemory(world).store, limits: DeliveryLimits(), world: world,
            journal: .silent)
    }

    private func statistics(ours: Int = 3, connected: Int) -> SwarmStatistics {
        var statistics = SwarmStatistics()
        (statistics.hasNodes, statistics.nodes) = (true, 3)
        (statistics.ours, statistics.connected) = (ours, connected)
        return statistics
    }

    @Test("A process that is alone by configuration has every node")
    func alone() throws {
        let share = SwarmShare(of: try #require(name), nil, deafAfter: .seconds(120))
        let falls = try #require(share.falls)
        #expect((1...50).allSatisfy { falls(LinkRig.node($0).key) })
        share.look(statistics(connected: 0), at: clock.instant)
        share.leave()
        #expect(share.falls != nil)
    }

    @Test("What falls to whom is not known before the store was asked, nor after leaving")
    func unknown() async throws {
        let membership = try await membership()
        let share = SwarmShare(of: try #require(name), membership, deafAfter: .seconds(120))
        share.look(SwarmStatistics(), at: clock.instant)
        await membership.renew()
        #expect(share.falls == nil, "a process that knows no nodes takes none")
        share.look(statistics(connected: 0), at: clock.instant)
        #expect(share.falls == nil)
        await membership.renew()
        let falls = try #require(share.falls)
        #expect((1...50).allSatisfy { falls(LinkRig.node($0).key) }, "it is the only member")
        share.leave()
        #expect(share.falls == nil)
    }

    @Test("One that has long reached no node leaves its share, and comes back once it reaches one")
    func deaf() async throws {
        let membership = try await membership()
        let share = SwarmShare(of: try #require(name), membership, deafAfter: .seconds(120))
        let start = clock.instant
        share.look(statistics(connected: 0), at: start)
        await membership.renew()
        share.look(statistics(connected: 0), at: start + .seconds(119))
        #expect(share.falls != nil)
        share.look(statistics(connected: 1), at: start + .seconds(119.5))
        share.look(statistics(connected: 0), at: start + .seconds(130))
        share.look(statistics(connected: 0), at: start + .seconds(249))
        #expect(share.falls != nil, "a connection between begins the span anew")
        share.look(statistics(connected: 0), at: start + .seconds(250))
        #expect(share.falls == nil)
        share.look(statistics(connected: 1), at: start + .seconds(251))
        await membership.renew()
        #expect(share.falls != nil)
    }

    @Test("One to which no node falls is not deaf, and stays a member")
    func noShare() async throws {
        let membership = try await membership()
        let share = SwarmShare(of: try #require(name), membership, deafAfter: .seconds(120))
        let start = clock.instant
        for seconds in [0, 200, 400] {
            share.look(statistics(ours: 0, connected: 0), at: start + .seconds(seconds))
            await membership.renew()
        }
        #expect(share.falls != nil)
    }
}
