import PushModel
import SessionPush
import SwarmIngress
import Synchronization
import Testing

@Suite("The rotation of watches")
struct SwarmRotationTests {
    private func rig(_ nodes: Int, rows: ClosedRange<UInt64>, _ limits: SwarmLimits = SwarmLimits()) throws
        -> (rig: LinkRig, nodes: [StorageNode])
    {
        let rig = try LinkRig(limits)
        rig.take(.rows(LinkRig.entries(rows)))
        let nodes = (1...nodes).map { LinkRig.node($0) }
        try rig.begin(nodes)
        return (rig, nodes)
    }

    @Test("Everything is shown after connecting, the next batch behind the reply")
    func everything() throws {
        var limits = SwarmLimits()
        limits.rowsPerBatch = 10
        let (rig, nodes) = try rig(1, rows: 1...25, limits)
        rig.connect(nodes[0])
        for size in [10, 10, 5] {
            let reading = try rig.wanted()
            #expect(reading.revisions.count == size && rig.readings.isEmpty)
            rig.read(reading)
            #expect(rig.readings.isEmpty, "the reply comes first")
            try rig.reply(nodes[0], size)
        }
        #expect(rig.readings.isEmpty)
        #expect(rig.shown.contains(10) && rig.shown.contains(5))
    }

    @Test("Nodes of a swarm share what was read, and a new registration overtakes a renewal")
    func lanes() throws {
        let (rig, nodes) = try rig(3, rows: 1...5)
        for node in nodes { rig.connect(node) }
        #expect(rig.readings.count == 1, "one reading for three nodes")
        try rig.read(rig.wanted())
        #expect(rig.sent.count { $0.words == "monitor.messages" } == 3)
        rig.take(.rows(LinkRig.entries(6...6)))
        let fresh = try rig.wanted()
        #expect(fresh.revisions == [6])
        rig.read(fresh)
        #expect(rig.sent.count { $0.words == "monitor.messages" } == 6, "no reply was waited for")
    }

    @Test("It is shown again after 45 to 55 minutes, and after every new connection")
    func renewal() throws {
        let (rig, nodes) = try rig(1, rows: 1...5)
        rig.connect(nodes[0])
        try rig.read(rig.wanted())
        try rig.reply(nodes[0], 5)
        rig.pass(.seconds(45 * 60 - 1))
        #expect(rig.readings.isEmpty)
        rig.pass(.seconds(10 * 60 + 1))
        try rig.read(rig.wanted())
        try rig.reply(nodes[0], 5)
        rig.take(.ended(.node(nodes[0].key), isRefusal: false))
        rig.pass(.seconds(6))
        rig.connect(nodes[0])
        #expect(rig.readings.count == 1)
    }

    @Test(
        "A renewal's span is drawn between 45 and 55 minutes, and drawn again after a new connection",
        arguments: [0, 1, 2, 3] as [UInt64])
    func drawnSpan(_ quarters: UInt64) throws {
        // So many quarters of the ten minutes beyond 45.
        let drawn = Mutex(quarters << 62)
        let seconds = 45 * 60 + Int(quarters) * 150
        let rig = try LinkRig(random: { drawn.withLock(\.self) })
        rig.take(.rows(LinkRig.entries(1...5)))
        let node = try rig.connected()
        try rig.read(rig.wanted())
        try rig.reply(node, 5)
        rig.pass(.seconds(seconds) - .milliseconds(1))
        #expect(rig.readings.isEmpty, "not before \(seconds) s")
        rig.pass(.milliseconds(2))
        try rig.read(rig.wanted())
        try rig.reply(node, 5)
        // The next connection draws its own: the span of before is not kept.
        drawn.withLock { $0 = 0 }
        rig.take(.ended(.node(node.key), isRefusal: false))
        rig.pass(.seconds(6))
        rig.connect(node)
        try rig.read(rig.wanted())
        try rig.reply(node, 5)
        rig.pass(.seconds(45 * 60) - .milliseconds(1))
        #expect(rig.readings.isEmpty)
        rig.pass(.milliseconds(2))
        #expect(rig.readings.count == 1)
    }

    @Test("What one of three nodes refuses for good is shown again; what two refuse is not")
    func votes() throws {
        let (rig, nodes) = try rig(3, rows: 1...1)
        for node in nodes { rig.connect(node) }
        try rig.read(rig.wanted())
        try rig.reply(nodes[0], 1, refusal: 5)
        #expect(rig.state.statistics.watches == 1)
        try rig.reply(nodes[1], 1, refusal: 4)
        #expect(rig.state.statistics.watches == 0 && rig.notes.contains(.watchEnded))
        #expect(rig.refused.contains(.signature) && rig.refused.contains(.timestamp))
        // The row changes.
        rig.take(.rows(LinkRig.entries(2...2)))
        #expect(rig.readings.last?.revisions == [2])
    }

    @Test("One node of a swarm that refuses for good before the others are connected ends no watch")
    func firstRefuser() throws {
        let (rig, nodes) = try rig(3, rows: 1...1)
        rig.connect(nodes[0])
        try rig.read(rig.wanted())
        try rig.reply(nodes[0], 1, refusal: 5)
        #expect(rig.state.statistics.watches == 1)
        for node in nodes.dropFirst() {
            rig.connect(node)
            #expect(rig.sent.last?.peer == .node(node.key) && rig.sent.last?.words == "monitor.messages")
            try rig.reply(node, 1)
        }
        #expect(rig.state.statistics.watches == 1)
    }

    @Test("What a node refuses that is alone in its swarm leaves the rotation", arguments: [4, 5])
    func onlyRefuser(_ refusal: Int) throws {
        let (rig, nodes) = try rig(1, rows: 1...1)
        rig.connect(nodes[0])
        try rig.read(rig.wanted())
        try rig.reply(nodes[0], 1, refusal: refusal)
        #expect(rig.state.statistics.watches == 0 && rig.notes.contains(.watchEnded))
    }

    @Test("Refusals that may pass end no watch", arguments: [1, 2, 3, 6, 99])
    func passing(_ number: Int) throws {
        let (rig, nodes) = try rig(1, rows: 1...1)
        rig.connect(nodes[0])
        try rig.read(rig.wanted())
        try rig.reply(nodes[0], 1, refusal: number)
        #expect(rig.state.statistics.watches == 1)
        #expect(rig.refused.contains(MonitorRefusal(number: Int64(number))))
    }

    @Test("A node that owes three replies in a row is dialled anew")
    func strikes() throws {
        var limits = SwarmLimits()
        limits.rowsPerBatch = 1
        let (rig, nodes) = try rig(1, rows: 1...5, limits)
        rig.connect(nodes[0])
        for strike in 1...3 {
            try rig.read(rig.wanted())
            #expect(rig.closed.isEmpty, "before strike \(strike)")
            rig.pass(.seconds(15))
        }
        #expect(rig.closed == [.node(nodes[0].key)] && rig.notes.contains(.struckOut))
    }

    @Test("After one late reply everything is shown again within minutes")
    func late() throws {
        let (rig, nodes) = try rig(1, rows: 1...5)
        rig.connect(nodes[0])
        try rig.read(rig.wanted())
        rig.pass(.seconds(15))
        #expect(rig.notes.last == .replyLate && rig.readings.isEmpty)
        rig.pass(.seconds(60))
        #expect(try rig.wanted().revisions == [1, 2, 3, 4, 5])
        #expect(rig.closed.isEmpty)
    }

    @Test("A row that has gone leaves the rotation; a store that does not answer is asked again")
    func rows() throws {
        let (rig, nodes) = try rig(1, rows: 1...3)
        rig.connect(nodes[0])
        let reading = try rig.wanted()
        rig.take(.read(reading.id, nil))
        #expect(rig.notes.last == .storeSilent && rig.readings.isEmpty)
        rig.pass(.seconds(3))
        let again = try rig.wanted()
        #expect(again.revisions == [1, 2, 3])
        rig.take(
            .read(again.id, WatchBatch(shown: [], ended: [1, 2, 3], through: again.through, body: nil)))
        #expect(rig.state.statistics.watches == 0 && rig.readings.isEmpty)
    }

    @Test("A node whose swarm changes is shown the accounts of the new one")
    func otherSwarm() throws {
        let rig = try LinkRig()
        rig.take(.rows([WatchEntry(point: 1 << 62, revision: 1), WatchEntry(point: 3 << 62, revision: 2)]))
        let nodes = [LinkRig.node(1, swarm: 1 << 62), LinkRig.node(2, swarm: 3 << 62)]
        try rig.begin(nodes)
        rig.connect(nodes[0])
        #expect(rig.readings.popLast()?.revisions == [1])
        rig.pass(.seconds(301))
        try rig.tell([LinkRig.node(1, swarm: 3 << 62), LinkRig.node(2, swarm: 1 << 62)], height: 2)
        #expect(rig.readings.popLast()?.revisions == [2])
    }

    @Test("A hundred thousand accounts go to ten nodes in a bounded number of batches")
    func many() throws {
        let limits = SwarmLimits()
        let (rig, nodes) = try rig(10, rows: 1...100_000, limits)
        for node in nodes { rig.connect(node) }
        var rounds = 0
        while let reading = rig.readings.popLast() {
            rounds += 1
            #expect(reading.revisions.count <= limits.rowsPerBatch)
            rig.read(reading)
            for node in nodes { try rig.reply(node, reading.revisions.count) }
            #expect(rig.readings.count <= limits.batchesAtOnce)
        }
        #expect(rounds == 100, "one reading of each row for all ten")
        #expect(rig.shown.reduce(0, +) == 1_000_000)
    }
}

@Suite("The table of watches")
struct WatchTableTests {
    @Test("A million subscriptions take at most 12 MiB, which leaves four to what reads them")
    func million() {
        var table = WatchTable()
        for revision in 1...1_000_000 as ClosedRange<UInt64> {
            table.add(WatchEntry(point: revision &* 0x9E37_79B9_7F4A_7C15, revision: revision))
        }
        #expect(table.count == 1_000_000 && table.bytes <= 12 << 20)
    }

    @Test("What was removed is not found, and the memory of many is taken back")
    func removal() throws {
        var table = WatchTable()
        for revision in 1...10_000 as ClosedRange<UInt64> {
            table.add(WatchEntry(point: 1, revision: revision))
        }
        for revision in 1...10_000 as ClosedRange<UInt64> where revision % 10 != 0 { table.remove(revision) }
        table.remove(10_001)
        table.remove(1)
        let arc = try #require(SwarmMap([5]).arc(of: 5))
        let (found, through) = table.next(after: 0, in: arc, limit: 2_000)
        #expect(found == (1...1_000).map { UInt64($0 * 10) } && through == 10_000)
        #expect(table.count == 1_000 && table.last == 10_000)
        // An earlier revision comes never again.
        table.add(WatchEntry(point: 1, revision: 9_999))
        #expect(table.count == 1_000)
    }

    @Test("Revisions may lie far apart, across pieces of the table")
    func gaps() throws {
        var table = WatchTable()
        let revisions = [1, 2, 1 << 31, 1 << 31 + 1, 1 << 40, 1 << 62] as [UInt64]
        for revision in revisions { table.add(WatchEntry(point: 1, revision: revision)) }
        table.add(WatchEntry(point: 1, revision: 1 << 63))
        let arc = try #require(SwarmMap([5]).arc(of: 5))
        for (index, revision) in revisions.enumerated() {
            let (found, through) = table.next(after: revision - 1, in: arc, limit: 1)
            #expect(found == [revision] && through == revision)
            #expect(table.next(after: revision, in: arc, limit: 9).revisions == revisions.suffix(5 - index))
        }
        table.remove(1 << 40)
        table.remove(1 << 40)
        #expect(table.next(after: 0, in: arc, limit: 9).revisions == revisions.filter { $0 != 1 << 40 })
        #expect(table.count == 5 && table.last == 1 << 62)
    }

    @Test("Removing all leaves nothing, and later entries are still added")
    func removingAll() throws {
        var table = WatchTable()
        let all = 1...9_000 as ClosedRange<UInt64>
        for revision in all { table.add(WatchEntry(point: 1, revision: revision)) }
        for revision in all { table.remove(revision) }
        #expect(table.count == 0 && table.last == 9_000)
        table.add(WatchEntry(point: 1, revision: 9_000))
        table.add(WatchEntry(point: 1, revision: 9_001))
        let arc = try #require(SwarmMap([5]).arc(of: 5))
        #expect(table.next(after: 0, in: arc, limit: 9).revisions == [9_001])
    }

    @Test("An empty table has nothing to show")
    func empty() throws {
        var table = WatchTable()
        table.remove(1)
        let arc = try #require(SwarmMap([5]).arc(of: 5))
        #expect(table.next(after: 7, in: arc, limit: 10).revisions.isEmpty && table.last == 0)
    }
}
