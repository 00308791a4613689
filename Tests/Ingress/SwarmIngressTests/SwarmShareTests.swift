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

    private func membership(_ memory: SealedMemory? = nil) async throws -> Membership {
        let world = clock.world(seed: 1)
        let store = if let memory { memory.store } else { try await SealedMemory(world).store }
        return Membership(store: store, limits: DeliveryLimits(), world: world, journal: .silent)
    }

    private func statistics(ours: Int = 3, connected: Int) -> SwarmStatistics {
        var statistics = SwarmStatistics()
        (statistics.hasNodes, statistics.nodes) = (true, 3)
        (statistics.ours, statistics.connected) = (ours, connected)
        return statistics
    }

    @Test("A process that is alone by configuration has every node")
    func alone() async throws {
        let share = SwarmShare(of: try #require(name), nil, deafAfter: .seconds(120))
        let falls = try #require(share.falls)
        #expect((1...50).allSatisfy { falls(LinkRig.node($0).key) })
        share.look(statistics(connected: 0), at: clock.instant)
        #expect(await !share.leave())
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
        #expect(await !share.leave(), "nobody else is there")
        #expect(share.falls == nil)
    }

    @Test("Who leaves for good does not join again with a later look, and hears whether anybody follows")
    func forGood() async throws {
        let memory = try await SealedMemory(clock.world(seed: 1))
        let first = try await membership(memory)
        let second = try await membership(memory.open(clock.world(seed: 2), as: 2))
        let share = SwarmShare(of: try #require(name), first, deafAfter: .seconds(120))
        let other = SwarmShare(of: try #require(name), second, deafAfter: .seconds(120))
        share.look(statistics(connected: 3), at: clock.instant)
        await first.renew()
        clock.advance(by: .seconds(1))
        other.look(statistics(connected: 0), at: clock.instant)
        await second.renew()
        #expect((1...50).allSatisfy { other.falls?(LinkRig.node($0).key) == false }, "it has only just come")
        #expect(await share.leave(), "though the other came after the last reading")
        for _ in 0..<3 {
            share.look(statistics(connected: 3), at: clock.instant)
            await first.renew()
            #expect(share.falls == nil)
        }
        await second.renew()
        #expect((1...50).allSatisfy { other.falls?(LinkRig.node($0).key) == true })
        #expect(await !other.leave(), "nobody is left")
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
