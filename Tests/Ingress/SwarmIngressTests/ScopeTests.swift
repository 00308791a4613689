import PushModel
import SessionPush
import SwarmIngress
import Testing

@Suite("For whom a storage node may speak")
struct ScopeTests {
    /// In the part of the ring that the split takes away from the first node's swarm.
    private static let taken: UInt64 = 3 << 60
    private static let first = LinkRig.node(1, swarm: 0)
    private static let second = LinkRig.node(2, swarm: 1 << 63)
    private static let fresh = LinkRig.node(3, swarm: 1 << 62)

    /// A link that is connected to the first node, and has told of a message of each moment.
    private func rig() throws -> LinkRig {
        let rig = try LinkRig()
        try rig.begin([Self.first, Self.second])
        rig.connect(Self.first)
        return rig
    }

    private func tell(_ rig: LinkRig) -> SwarmScope? {
        rig.say(.node(Self.first.key), "notify.message", "a body")
        return rig.scopes.last
    }

    private func block(_ rig: LinkRig, _ nodes: [StorageNode], height: Int) throws {
        rig.pass(.seconds(2))
        rig.say(.daemon, "notify.block", "\(height)", "hash")
        try rig.tell(nodes, height: height)
    }

    @Test("After a swarm has split, a node that is a block behind is heard for ten minutes, and no longer")
    func split() throws {
        let rig = try rig()
        #expect(tell(rig)?.contains(Self.taken) == true)
        try block(rig, [Self.first, Self.second, Self.fresh], height: 2)
        let behind = try #require(tell(rig))
        #expect(behind.arc?.contains(Self.taken) == false, "it is the fresh swarm's now")
        #expect(behind.contains(Self.taken))
        #expect(behind.contains(1), "and its own part is its own")
        #expect(!behind.contains(1 << 63), "another's never was")
        rig.now += SwarmLimits().formerScope
        #expect(tell(rig)?.contains(Self.taken) == false)
        #expect(behind.contains(Self.taken), "what waits was told by the swarms of its time")
    }

    @Test("Of a node whose part changes with each block a few parts are kept")
    func bound() throws {
        let rig = try rig()
        for height in 2..<40 {
            let other = LinkRig.node(3, swarm: 1 << (height % 2 == 0 ? 62 : 61))
            try block(rig, [Self.first, Self.second, other], height: height)
        }
        #expect(try #require(tell(rig)).former.count == SwarmLimits().formerScopes)
    }

    @Test("A node that has left its swarm for another is heard for both")
    func moved() throws {
        let rig = try rig()
        let point = Self.second.swarm
        try block(rig, [LinkRig.node(1, swarm: 1 << 63), Self.second, LinkRig.node(4, swarm: 0)], height: 2)
        let scope = try #require(tell(rig))
        #expect(scope.contains(0) && scope.contains(point))
    }
}
