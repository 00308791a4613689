import MessageSockets
import PushModel
import SessionPush
import SwarmIngress
import Synchronization
import Testing
import WireFormats

/// A link's state, played with by hand: no socket, no thread, no clock.
final class LinkRig {
    var state: SwarmLinkState
    var now = ContinuousClock.now
    /// What it asked for and nobody has dealt with yet.
    var opened: [Peer] = []
    var closed: [Peer] = []
    var sent: [(peer: Peer, words: String, tag: [UInt8])] = []
    var readings: [WatchReading] = []
    var pushes: [NodeKey] = []
    /// For whom the teller of each of them spoke.
    var scopes: [SwarmScope] = []
    /// Rows whose end was asked for.
    var ended: [UInt64] = []
    /// The number of watches of each reply that were accepted, and why others were refused.
    var shown: [Int] = []
    var refused: [MonitorRefusal] = []
    var notes: [SwarmNote] = []

    /// - Parameter random: the upper bits of random numbers; 0: every span is the shortest.
    init(
        _ limits: SwarmLimits = SwarmLimits(), random: @escaping @Sendable () -> UInt64 = { 0 },
        ours: @escaping SwarmLinkState.Ours = { Set($0.values.joined()) }
    ) throws {
        // Tags must differ, and spans come from the upper bits, which stay 0.
        let counter = Mutex<UInt64>(0)
        state = SwarmLinkState(
            daemon: try #require(DaemonAddress("tcp://127.0.0.1:22025")), limits: limits,
            random: {
                counter.withLock { count in
                    count += 1
                    return random() | count
                }
            }, ours: ours)
        take(.start)
    }

    func take(_ event: SwarmLinkState.Event) {
        for action in state.take(event, at: now) {
            switch action {
            case .open(let peer, _, _): opened.append(peer)
            case .close(let peer): closed.append(peer)
            case .send(let peer, let frames):
                sent.append((peer, Self.text(frames.first), Self.bytes(frames.dropFirst().first)))
            case .read(let reading): readings.append(reading)
            case .notice(let node, let scope, _):
                pushes.append(node)
                scopes.append(scope)
            case .end(let revisions): ended += revisions
            case .shown(let count): shown.append(count)
            case .refused(let refusal): refused.append(refusal)
            case .note(let note): notes.append(note)
            }
        }
    }

    /// Time passes.
    func pass(_ span: Duration) {
        now += span
        take(.tick)
    }

    /// A peer is dialled when so much time has passed, and not before.
    func rests(_ span: Duration, then peer: Peer) {
        opened = []
        pass(span - .milliseconds(1))
        #expect(!opened.contains(peer), "before \(span)")
        pass(.milliseconds(1))
        #expect(opened.contains(peer), "after \(span)")
    }

    private static func text(_ frame: MessageFrame?) -> String {
        switch frame {
        case .text(let text): "\(text)"
        case .bytes, .shared, nil: ""
        }
    }

    private static func bytes(_ frame: MessageFrame?) -> [UInt8] {
        if case .bytes(let bytes) = frame { bytes } else { [] }
    }

    // MARK: Conversations

    func say(_ peer: Peer, _ frames: [[UInt8]]) { take(.said(peer, OxenMessage(frames.map { Secret($0) }))) }
    func say(_ peer: Peer, _ words: String...) { say(peer, words.map { Array($0.utf8) }) }

    /// The daemon greets, and tells of these nodes.
    func begin(_ nodes: [StorageNode]) throws {
        take(.ready(.daemon))
        say(.daemon, "HELLO")
        try answer("ping.ping", with: [])
        try answer("sub.block", with: [Array("OK".utf8)])
        try tell(nodes)
    }

    /// The daemon answers what it was asked last.
    func tell(_ nodes: [StorageNode], height: Int = 1) throws {
        try answer("rpc.get_service_nodes", with: [Array("200".utf8), Self.list(nodes, height: height)])
    }

    func answer(_ command: String, with parts: [[UInt8]]) throws {
        let asked = try #require(sent.last { $0.peer == .daemon && $0.words == command })
        say(.daemon, [Array("REPLY".utf8), asked.tag] + parts)
    }

    /// A node's keys are exchanged, and it greets.
    func connect(_ node: StorageNode) {
        take(.ready(.node(node.key)))
        say(.node(node.key), "HELLO")
    }

    /// The daemon tells of one node, which is connected.
    func connected() throws -> StorageNode {
        let node = Self.node(1)
        try begin([node])
        connect(node)
        return node
    }

    /// What is to be read next.
    func wanted() throws -> WatchReading {
        let reading = readings.popLast()
        return try #require(reading)
    }

    /// What was to be read has been read: every row of it is shown.
    func read(_ reading: WatchReading) {
        let body = SharedBytes(Secret(Array("le".utf8)))
        take(
            .read(
                reading.id,
                WatchBatch(shown: reading.revisions, ended: [], through: reading.through, body: body)))
    }

    /// A node answers its last request, every watch in one way.
    func reply(_ node: StorageNode, _ count: Int, refusal: Int? = nil) throws {
        let asked = try #require(sent.last { $0.peer == .node(node.key) && $0.words == "monitor.messages" })
        var writer = BencodeWriter()
        writer.beginList()
        for _ in 0..<count {
            writer.beginDictionary()
            writer.key(refusal == nil ? "success" : "errcode")
            writer.int(Int64(refusal ?? 1))
            if refusal == 6 { Self.writeSwarm(into: &writer) }
            writer.endDictionary()
        }
        writer.endList()
        say(.node(node.key), [Array("REPLY".utf8), asked.tag, writer.bytes])
    }

    /// What storage servers say beside `errcode` 6 since 2.12: a text, and the swarm that has the account.
    static func writeSwarm(into writer: inout BencodeWriter) {
        writer.key("error")
        writer.string(Array("another's".utf8))
        writer.key("snodes")
        writer.beginList()
        writer.beginDictionary()
        writer.key("ip")
        writer.string(Array("127.0.0.1".utf8))
        writer.key("port_omq")
        writer.int(Int64(22_020))
        writer.endDictionary()
        writer.endList()
        writer.key("swarm")
        writer.string(Array("f000000000000000".utf8))
    }

    static func node(_ number: Int, swarm: UInt64 = 5, port: UInt16 = 22_000) -> StorageNode {
        let bytes = (0..<32).map { UInt8(truncatingIfNeeded: number >> (8 * ($0 % 4))) }
        guard let key = NodeKey(bytes) else { preconditionFailure("32 bytes") }
        return StorageNode(key: key, address: IPAddress(v4: 0x7F00_0001), port: port, swarm: swarm)
    }

    static func list(_ nodes: [StorageNode], height: Int) -> [UInt8] {
        let states = nodes.map { node in
            #"{"pubkey_x25519":"\#(Hex.encode(node.key.bytes))","public_ip":"\#(node.address.text)","#
                + #""storage_lmq_port":\#(node.port),"swarm_id":\#(node.swarm)}"#
        }
        let text =
            #"{"block_hash":"\#(height)","height":\#(height),"service_node_states":["#
            + states.joined(separator: ",") + "]}"
        return Array(text.utf8)
    }

    static func entries(_ revisions: ClosedRange<UInt64>) -> [WatchEntry] {
        revisions.map { WatchEntry(point: $0, revision: $0) }
    }
}
