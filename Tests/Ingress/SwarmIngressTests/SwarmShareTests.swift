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
    /// Ten swarms of five.
    private let swarms = Dictionary(grouping: (0..<50).map { LinkRig.node($0).key }) {
        UInt64($0.bytes[0] % 10)
    }

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
        #expect(share.ours(of: swarms)?.count == 50)
        share.look(statistics(connected: 0), at: clock.instant)
        #expect(await !share.leave())
        #expect(share.ours(of: swarms)?.count == 50)
    }

    @Test("What falls to whom is not known before the store was asked, nor after leaving")
    func unknown() async throws {
        let membership = try await membership()
        let share = SwarmShare(of: try #require(name), membership, deafAfter: .seconds(120))
        share.look(SwarmStatistics(), at: clock.instant)
        await membership.renew()
        #expect(share.ours(of: swarms) == nil, "a process that knows no nodes takes none")
        share.look(statistics(connected: 0), at: clock.instant)
        #expect(share.ours(of: swarms) == nil)
        await membership.renew()
        #expect(share.ours(of: swarms)?.count == 50, "it is the only member")
        #expect(await !share.leave(), "nobody else is there")
        #expect(share.ours(of: swarms) == nil)
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
        #expect(other.ours(of: swarms) == [], "it has only just come")
        #expect(await share.leave(), "though the other came after the last reading")
        for _ in 0..<3 {
            share.look(statistics(connected: 3), at: clock.instant)
            await first.renew()
            #expect(share.ours(of: swarms) == nil)
        }
        await second.renew()
        #expect(other.ours(of: swarms)?.count == 50)
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
        #expect(share.ours(of: swarms) != nil)
        share.look(statistics(connected: 1), at: start + .seconds(119.5))
        share.look(statistics(connected: 0), at: start + .seconds(130))
        share.look(statistics(connected: 0), at: start + .seconds(249))
        #expect(share.ours(of: swarms) != nil, "a connection between begins the span anew")
        share.look(statistics(connected: 0), at: start + .seconds(250))
        #expect(share.ours(of: swarms) == nil)
        share.look(statistics(connected: 1), at: start + .seconds(251))
        await membership.renew()
        #expect(share.ours(of: swarms) != nil)
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
        #expect(share.ours(of: swarms) != nil)
    }

    /// Two processes that have their shares.
    private func pair() async throws -> [SwarmShare] {
        let memory = try await SealedMemory(clock.world(seed: 1))
        var pairs: [(membership: Membership, share: SwarmShare)] = []
        for number in 1...2 as ClosedRange<UInt64> {
            let membership = try await membership(memory.open(clock.world(seed: number), as: number))
            let share = SwarmShare(of: try #require(name), membership, deafAfter: .seconds(120))
            share.look(statistics(connected: 3), at: clock.instant)
            pairs.append((membership, share))
        }
        for _ in 0..<4 {
            for pair in pairs { await pair.membership.renew() }
            clock.advance(by: Roster.settling / 2)
        }
        return pairs.map(\.share)
    }

    @Test("Each node falls to one of two processes, and of each swarm two or three of five to either")
    func parted() async throws {
        let shares = try await pair()
        let ours = try shares.map { try #require($0.ours(of: swarms)) }
        #expect(ours[0].isDisjoint(with: ours[1]) && ours[0].count + ours[1].count == 50)
        for members in swarms.values { #expect((2...3).contains(ours[0].intersection(members).count)) }
    }

    @Test("While two processes know different lists, each node of both is heard, and then by one of them")
    func differingLists() async throws {
        let shares = try await pair()
        let rigs = try shares.map { share in try LinkRig(ours: { share.ours(of: $0) }) }
        var random = SeededRandom(seed: 5)
        var nodes = (1...24).map { LinkRig.node($0, swarm: $0 % 4 == 0 ? 1 << 62 : 3 << 62) }
        for rig in rigs { try rig.begin(nodes) }
        connect(rigs)
        for height in 2...40 {
            let old = nodes
            // One goes, one comes, and one is in the other swarm from now on.
            nodes.shuffle(using: &random)
            nodes.removeLast()
            nodes.append(LinkRig.node(100 + height, swarm: 1 << 62))
            let key = nodes[0].key
            nodes[0] = StorageNode(
                key: key, address: nodes[0].address, port: nodes[0].port,
                swarm: nodes[0].swarm == 1 << 62 ? 3 << 62 : 1 << 62)
            let both = Set(nodes.map(\.key)).intersection(old.map(\.key))
            for number in [height % 2, (height + 1) % 2] {
                rigs[number].pass(.seconds(301))
                try rigs[number].answer("sub.block", with: [Array("OK".utf8)])
                try rigs[number].tell(nodes, height: height)
                connect(rigs)
                #expect(heard(rigs).isSuperset(of: both))
            }
            for rig in rigs { rig.pass(SwarmLimits().handover) }
            let connected = rigs.map(connected)
            #expect(connected[0].isDisjoint(with: connected[1]))
            #expect(connected[0].union(connected[1]) == Set(nodes.map(\.key)))
            #expect(abs(connected[0].count - connected[1].count) <= 2)
        }
    }

    private func connected(_ rig: LinkRig) -> Set<NodeKey> {
        Set(rig.state.nodes.filter { $0.value.dial.isConnected }.keys)
    }

    private func heard(_ rigs: [LinkRig]) -> Set<NodeKey> { rigs.map(connected).reduce([]) { $0.union($1) } }

    /// Whoever is dialled answers.
    private func connect(_ rigs: [LinkRig]) {
        for rig in rigs {
            for node in rig.state.nodes.values.map(\.node) { rig.connect(node) }
        }
    }
}
