import PushModel
import SessionPush
import SwarmIngress
import Synchronization
import Testing

@Suite("The state of the link")
struct SwarmLinkStateTests {
    @Test("It greets the daemon, checks that it answers, and then asks for notices and nodes")
    func daemon() throws {
        let rig = try LinkRig()
        #expect(rig.opened == [.daemon])
        rig.take(.ready(.daemon))
        #expect(rig.sent.map(\.words) == ["HI"])
        rig.say(.daemon, "HELLO")
        #expect(rig.sent.map(\.words) == ["HI", "ping.ping"])
        try rig.answer("ping.ping", with: [])
        #expect(rig.sent.map(\.words) == ["HI", "ping.ping", "sub.block", "rpc.get_service_nodes"])
    }

    @Test("A block makes it ask for nodes again, once at a time; notices are renewed before they end")
    func blocks() throws {
        let rig = try LinkRig()
        try rig.begin([])
        rig.pass(.seconds(2))
        let before = rig.sent.count
        for _ in 0..<50 { rig.say(.daemon, "notify.block", "2", "hash") }
        #expect(rig.sent.dropFirst(before).map(\.words) == ["rpc.get_service_nodes"])
        try rig.answer("sub.block", with: [Array("OK".utf8)])
        try rig.tell([], height: 2)
        rig.pass(.seconds(29 * 60))
        #expect(rig.sent.contains { $0.words == "sub.block" && $0.tag != rig.sent[2].tag })
    }

    @Test("A daemon that owes an answer is dialled anew, ever more seldom, and within half a minute always")
    func daemonLadder() throws {
        let rig = try LinkRig()
        for pause in [1, 2, 5, 10, 30, 30] {
            rig.pass(.seconds(10))
            #expect(rig.closed.last == .daemon)
            rig.rests(.seconds(pause), then: .daemon)
        }
    }

    @Test("A daemon that comes up after the relay is linked at its next turn, and begins the ladder anew")
    func lateDaemon() throws {
        let rig = try LinkRig()
        for pause in [1, 2, 5, 10] {
            rig.take(.ended(.daemon, isRefusal: false))
            rig.rests(.seconds(pause), then: .daemon)
        }
        try rig.begin([LinkRig.node(1)])
        #expect(rig.state.statistics.isDaemonConnected && rig.state.statistics.nodes == 1)
        rig.pass(.seconds(61))
        rig.take(.ended(.daemon, isRefusal: false))
        rig.opened = []
        rig.pass(.seconds(1))
        #expect(rig.opened.contains(.daemon), "a connection that lasted is followed by another at once")
        rig.take(.ended(.daemon, isRefusal: false))
        rig.rests(.seconds(1), then: .daemon)
    }

    @Test("Rungs are drawn a quarter longer at most, so that relays of one daemon do not come in one moment")
    func jitter() throws {
        let rig = try LinkRig(random: { UInt64.max << 11 })
        rig.take(.ended(.daemon, isRefusal: false))
        rig.opened = []
        rig.pass(.milliseconds(1_249))
        #expect(rig.opened.isEmpty)
        rig.pass(.milliseconds(1))
        #expect(rig.opened == [.daemon])
    }

    @Test("A storage node that cannot be reached is dialled anew, ever more seldom")
    func ladder() throws {
        let rig = try LinkRig()
        let node = LinkRig.node(1)
        try rig.begin([node])
        for pause in [10, 30, 60, 120, 120] {
            rig.take(.ended(.node(node.key), isRefusal: false))
            rig.rests(.seconds(pause), then: .node(node.key))
        }
        #expect(rig.state.statistics.nodes == 1 && rig.state.statistics.connected == 0)
    }

    @Test("Nodes are dialled so many at once, and those that waited longest first")
    func storm() throws {
        var limits = SwarmLimits()
        limits.dialsAtOnce = 5
        let rig = try LinkRig(limits)
        let nodes = (1...300).map { LinkRig.node($0) }
        try rig.begin(nodes)
        #expect(rig.opened.count == 1 + 5)
        #expect(rig.state.statistics.dialling == 5)
        var open = rig.opened.dropFirst().compactMap { $0 }
        var seen = Set(open)
        while seen.count < 300 {
            rig.opened = []
            for peer in open { rig.take(.ended(peer, isRefusal: false)) }
            rig.pass(.milliseconds(200))
            #expect((1...5).contains(rig.opened.count))
            open = rig.opened
            seen.formUnion(open)
            if rig.opened.isEmpty { break }
        }
        #expect(seen.count == 300, "nobody is tried twice before all have been tried")
    }

    @Test("A connection that lasted is followed by another at once; one that did not, by a pause")
    func steady() throws {
        let rig = try LinkRig()
        let node = try rig.connected()
        rig.opened = []
        rig.take(.ended(.node(node.key), isRefusal: false))
        rig.pass(.seconds(9))
        #expect(rig.opened.isEmpty)
        rig.pass(.seconds(1))
        rig.connect(node)
        rig.pass(.seconds(61))
        rig.opened = []
        rig.take(.ended(.node(node.key), isRefusal: false))
        rig.pass(.seconds(1))
        #expect(rig.opened == [.node(node.key)])
    }

    @Test("Nodes that fall to another process are left to it, and taken over when it has gone")
    func shares() throws {
        let ours = Mutex<Set<NodeKey>>([LinkRig.node(1).key])
        let rig = try LinkRig(ours: { _ in ours.withLock(\.self) })
        let (first, second) = (LinkRig.node(1), LinkRig.node(2))
        try rig.begin([first, second])
        #expect(rig.opened == [.daemon, .node(first.key)])
        rig.connect(first)
        ours.withLock { $0 = [second.key] }
        rig.pass(.seconds(2))
        #expect(rig.opened.last == .node(second.key))
        rig.connect(second)
        #expect(rig.state.statistics.ours == 1)
        rig.pass(SwarmLimits().handover)
        #expect(rig.closed == [.node(first.key)])
        #expect(rig.state.statistics.ours == 1)
    }

    @Test("A connected node that falls to another process is heard and shown until that one can have it")
    func heardOn() throws {
        let ours = Mutex<Set<NodeKey>>([LinkRig.node(1).key])
        let rig = try LinkRig(ours: { _ in ours.withLock(\.self) })
        let node = LinkRig.node(1)
        let handover = SwarmLimits().handover
        try rig.begin([node])
        rig.connect(node)
        ours.withLock { $0 = [] }
        rig.pass(.seconds(1))
        #expect(rig.state.statistics.ours == 0 && rig.state.statistics.connected == 1)
        rig.say(.node(node.key), "notify.message", "de")
        rig.take(.rows(LinkRig.entries(1...1)))
        #expect(rig.pushes == [node.key] && rig.readings.count == 1)
        // It comes back meanwhile, and goes once more: that is counted from then on.
        rig.pass(handover - .seconds(1))
        ours.withLock { $0 = [node.key] }
        rig.pass(.seconds(1))
        #expect(rig.closed.isEmpty && rig.state.statistics.ours == 1)
        ours.withLock { $0 = [] }
        rig.pass(.seconds(1))
        rig.pass(handover - .milliseconds(1))
        #expect(rig.closed.isEmpty)
        rig.pass(.seconds(1))
        #expect(rig.closed == [.node(node.key)] && rig.state.statistics.connected == 0)
    }

    @Test("One that is not connected, or loses its connection, is left at once to whom it falls")
    func notHeardOn() throws {
        let ours = Mutex<Set<NodeKey>>((1...3).reduce(into: []) { $0.insert(LinkRig.node($1).key) })
        let rig = try LinkRig(ours: { _ in ours.withLock(\.self) })
        let nodes = (1...3).map { LinkRig.node($0) }
        try rig.begin(nodes)
        rig.connect(nodes[0])
        rig.take(.ended(.node(nodes[1].key), isRefusal: true))
        ours.withLock { $0 = [] }
        rig.closed = []
        rig.opened = []
        rig.pass(.seconds(1))
        #expect(rig.closed == [.node(nodes[2].key)], "the one that was being dialled")
        rig.take(.ended(.node(nodes[0].key), isRefusal: false))
        #expect(rig.closed.last == .node(nodes[0].key))
        rig.pass(.seconds(60))
        rig.pass(.seconds(60))
        #expect(rig.opened.allSatisfy { $0 == .daemon } && rig.state.statistics.ours == 0)
    }

    @Test("While it is not known what falls to whom, nothing changes")
    func unknownShares() throws {
        let isKnown = Mutex(true)
        let rig = try LinkRig(ours: { isKnown.withLock(\.self) ? Set($0.values.joined()) : nil })
        _ = try rig.connected()
        isKnown.withLock { $0 = false }
        rig.pass(.seconds(5))
        #expect(rig.closed.isEmpty && rig.state.statistics.connected == 1)
    }

    @Test("Half of the nodes are believed to be gone when a second list says so after a while")
    func halfList() throws {
        let rig = try LinkRig()
        let nodes = (1...6).map { LinkRig.node($0) }
        try rig.begin(nodes)
        rig.pass(.seconds(301))
        try rig.tell(Array(nodes.prefix(2)), height: 2)
        #expect(rig.notes.last == .nodesDoubted && rig.state.statistics.nodes == 6)
        rig.pass(.seconds(31))
        try rig.tell(Array(nodes.prefix(2)), height: 2)
        #expect(rig.state.statistics.nodes == 2)
        rig.pass(.seconds(301))
        try rig.tell([], height: 3)
        #expect(rig.state.statistics.nodes == 2, "no network has no nodes")
    }

    @Test("A node that moves is left and dialled at its new place")
    func moved() throws {
        let rig = try LinkRig()
        let node = try rig.connected()
        rig.pass(.seconds(301))
        rig.opened = []
        try rig.tell([LinkRig.node(1, port: 22_001)], height: 2)
        #expect(rig.closed == [.node(node.key)] && rig.opened == [.node(node.key)])
    }

    @Test("Messages are taken from nodes that we have dialled, before they greet too, and from no other")
    func messages() throws {
        let rig = try LinkRig()
        let (first, second) = (LinkRig.node(1), LinkRig.node(2))
        try rig.begin([first])
        rig.say(.node(first.key), "notify.message", "de")
        rig.say(.node(second.key), "notify.message", "de")
        rig.say(.daemon, "notify.message", "de")
        #expect(rig.pushes == [first.key])
        rig.say(.node(first.key), "notify.message")
        rig.say(.node(first.key), "notify.message", "de", "de")
        #expect(rig.pushes.count == 1 && rig.notes.count { $0 == .strange } == 3)
    }

    @Test("A node that says too much that nobody asked for is left")
    func strays() throws {
        var limits = SwarmLimits()
        limits.strays = 3
        let rig = try LinkRig(limits)
        let node = try rig.connected()
        for _ in 0..<3 { rig.say(.node(node.key), "REPLY", "no such tag", "de") }
        #expect(rig.closed.isEmpty)
        rig.say(.node(node.key), "HELLO")
        #expect(rig.closed == [.node(node.key)])
    }

    @Test("Who hears nobody: one that knows no nodes, or reaches none; not one whose daemon is silent")
    func hearsNobody() throws {
        let rig = try LinkRig()
        #expect(rig.state.statistics.hearsNobody)
        let node = LinkRig.node(1)
        try rig.begin([node])
        #expect(rig.state.statistics.hearsNobody)
        rig.connect(node)
        #expect(!rig.state.statistics.hearsNobody)
        rig.take(.ended(.daemon, isRefusal: false))
        #expect(!rig.state.statistics.hearsNobody && !rig.state.statistics.isDaemonConnected)
        rig.take(.ended(.node(node.key), isRefusal: false))
        #expect(rig.state.statistics.hearsNobody)
        let other = try LinkRig(ours: { _ in [] })
        try other.begin([node])
        #expect(!other.state.statistics.hearsNobody, "others have all nodes")
    }

    @Test("A farewell is followed")
    func farewell() throws {
        let rig = try LinkRig()
        let node = try rig.connected()
        rig.say(.node(node.key), "BYE")
        #expect(rig.closed == [.node(node.key)] && rig.notes.last == .farewell)
    }
}
