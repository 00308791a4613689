import PushModel
import SessionPush
import SwarmIngress
import Testing
import WireFormats

/// Nodes and relay learn of a block at different times, and storage servers since 2.12 refuse and end watches
/// of accounts that are another swarm's.
@Suite("A node whose list is another than ours")
struct DisagreementTests {
    private static let node = LinkRig.node(1)

    /// A link with one watch, which the node has been shown.
    private func rig() throws -> LinkRig {
        let rig = try LinkRig()
        rig.take(.rows(LinkRig.entries(1...1)))
        try rig.begin([Self.node])
        rig.connect(Self.node)
        try show(rig)
        return rig
    }

    private func show(_ rig: LinkRig) throws { rig.read(try rig.wanted()) }

    private func ended() -> [UInt8] {
        var writer = BencodeWriter()
        writer.beginDictionary()
        writer.key("@")
        writer.string(Array("an account's bytes".utf8))
        writer.key("errcode")
        writer.int(Int64(6))
        LinkRig.writeSwarm(into: &writer)
        writer.endDictionary()
        return writer.bytes
    }

    @Test("Accounts that are not its swarm's are shown again after a minute, then more seldom")
    func wrongSwarm() throws {
        let rig = try rig()
        for pause in [60, 120, 240] {
            try rig.reply(Self.node, 1, refusal: 6)
            rig.pass(.seconds(pause - 1))
            #expect(rig.readings.isEmpty, "before \(pause) s")
            rig.pass(.seconds(1))
            try show(rig)
        }
        #expect(rig.refused.contains(.wrongSwarm) && !rig.notes.contains(.replyMalformed))
        #expect(rig.state.statistics.watches == 1 && rig.ended.isEmpty)
        try rig.reply(Self.node, 1)
        rig.pass(.seconds(44 * 60))
        #expect(rig.readings.isEmpty, "taken, it is shown with the next renewal")
        rig.pass(.seconds(60))
        try show(rig)
        try rig.reply(Self.node, 1, refusal: 6)
        rig.pass(.seconds(59))
        rig.pass(.seconds(1))
        #expect(!rig.readings.isEmpty, "and the next time is a first time")
    }

    @Test("An operator hears of watches that are refused so again, and not of the first time")
    func told() throws {
        let rig = try rig()
        try rig.reply(Self.node, 1, refusal: 6)
        rig.pass(.seconds(59))
        rig.pass(.seconds(1))
        #expect(rig.state.statistics.refused == 0)
        try show(rig)
        try rig.reply(Self.node, 1, refusal: 6)
        rig.pass(.seconds(1))
        #expect(rig.state.statistics.refused == 1)
    }

    @Test("A watch that the node has ended is shown again after a minute; the list is asked for at once")
    func takenBack() throws {
        let rig = try rig()
        try rig.reply(Self.node, 1)
        rig.pass(.seconds(2))
        let asked = rig.sent.filter { $0.words == "rpc.get_service_nodes" }.count
        rig.say(.node(Self.node.key), [Array("notify.monitor_ended".utf8), ended()])
        rig.pass(.seconds(1))
        #expect(rig.sent.filter { $0.words == "rpc.get_service_nodes" }.count == asked + 1)
        rig.pass(.seconds(58))
        #expect(rig.readings.isEmpty)
        rig.pass(.seconds(1))
        #expect(!rig.readings.isEmpty && rig.notes.contains(.watchTakenBack))
    }

    @Test("However many watches a node ends at once, as with a swarm that splits, it stays connected")
    func many() throws {
        let rig = try rig()
        try rig.reply(Self.node, 1)
        for _ in 0..<5_000 { rig.say(.node(Self.node.key), [Array("notify.monitor_ended".utf8), ended()]) }
        #expect(!rig.closed.contains(.node(Self.node.key)))
    }
}
