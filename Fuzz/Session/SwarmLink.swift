import MessageSockets
import PushModel
import SessionPush
import SwarmIngress
import Synchronization
import WireFormats

/// The link to the swarm, in any order of what can come: nodes and daemon say what they like, the store is
/// late, and time passes.
let swarmTargets: [String: Body] = [
    "session-link": { bytes in
        let play = LinkPlay(bytes)
        while !play.isOver { play.step() }
    }
]

private final class LinkPlay {
    private var state: SwarmLinkState
    private var now = ContinuousClock.now
    private let bytes: UnsafeRawBufferPointer
    private var at = 0
    /// Peers that have a socket.
    private var open: Set<Peer> = []
    /// What was asked of each, and not answered.
    private var asked: [(peer: Peer, command: String, tag: [UInt8], count: Int)] = []
    private var readings: [WatchReading] = []
    private var revision: UInt64 = 0
    private var height = 0
    private let share: Share

    /// Which nodes fall to us; `nil`: not known.
    private final class Share: Sendable {
        let mask = Mutex<UInt8?>(0xFF)
    }

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
        let (share, counter) = (Share(), Counter())
        self.share = share
        guard let daemon = DaemonAddress("tcp://127.0.0.1:22025") else { preconditionFailure("an address") }
        state = SwarmLinkState(
            daemon: daemon, limits: playLimits, random: { counter.next() },
            ours: { swarms in
                share.mask.withLock { $0 }.map { mask in
                    Set(swarms.values.joined().filter { mask & 1 << ($0.bytes[0] & 7) != 0 })
                }
            })
        take(.start)
    }

    private final class Counter: Sendable {
        private let count = Mutex<UInt64>(0)

        /// Tags must differ, and spans come from the upper bits.
        func next() -> UInt64 {
            count.withLock { count in
                count += 1
                return count &* 0x9E37_79B9_7F4A_7C15
            }
        }
    }

    var isOver: Bool { at >= bytes.count }

    private func byte() -> UInt8 {
        guard !isOver else { return 0 }
        defer { at += 1 }
        return bytes[at]
    }

    /// As many bytes as the next one says.
    private func text() -> [UInt8] {
        let count = min(Int(byte()), bytes.count - at)
        defer { at += count }
        return Array(bytes[at..<at + count])
    }

    func step() {
        let kind = byte()
        let peer = kind & 0x80 == 0 ? Peer.node(key(byte() & 7)) : .daemon
        switch kind & 15 {
        case 0: pass(spans[Int(byte()) % spans.count])
        case 1: take(.ready(peer))
        case 2: take(.ended(peer, isRefusal: byte() & 1 == 0))
        case 3: say(peer, [Array("HELLO".utf8)])
        case 4: say(peer, text().split(separator: 0x0A).map { Array($0) })
        case 5, 6: answer(peer, byte())
        case 7: grow(Int(byte() & 7) + 1)
        case 8, 9: read(byte())
        case 10: say(peer, [Array("notify.message".utf8), text()])
        case 11: say(peer, [Array("notify.block".utf8)])
        case 12: share.mask.withLock { mask in mask = kind & 0x10 == 0 ? nil : 0x5A }
        case 13: share.mask.withLock { mask in mask = 0xFF }
        case 14: refuse(peer)
        default: say(peer, [Array("BYE".utf8)])
        }
        check()
    }

    private func check() {
        let statistics = state.statistics
        precondition(statistics.connected <= statistics.nodes && statistics.ours <= statistics.nodes)
        precondition(statistics.dialling <= playLimits.dialsAtOnce)
        precondition(open.count <= statistics.nodes + 1, "no socket of a node that has gone")
        precondition(statistics.watches >= 0)
        precondition(readings.count <= playLimits.batchesAtOnce)
    }

    // MARK: what comes

    private func take(_ event: SwarmLinkState.Event) {
        for action in state.take(event, at: now) {
            switch action {
            case .open(let peer, _, _): precondition(open.insert(peer).inserted, "one socket for each")
            case .close(let peer):
                precondition(open.remove(peer) != nil, "what is closed was open")
                asked.removeAll { $0.peer == peer }
            case .send(let peer, let frames):
                precondition(open.contains(peer), "nothing is said to nobody")
                sent(peer, frames)
            case .read(let reading):
                precondition((1...playLimits.rowsPerBatch).contains(reading.revisions.count))
                precondition(
                    zip(reading.revisions, reading.revisions.dropFirst()).allSatisfy { $0 < $1 })
                precondition(reading.revisions.last.map { $0 <= reading.through } ?? false)
                readings.append(reading)
            case .notice(let key, let scope, _):
                precondition(open.contains(.node(key)))
                precondition(scope.former.count <= playLimits.formerScopes)
            case .end(let revisions):
                precondition(!revisions.isEmpty && revisions.count <= playLimits.rowsPerBatch)
            case .note, .shown, .refused: break
            }
        }
    }

    private func sent(_ peer: Peer, _ frames: [MessageFrame]) {
        guard case .text(let command)? = frames.first, frames.count > 1, case .bytes(let tag) = frames[1]
        else { return }
        precondition(tag.count == SwarmFormLimits.tagBytes)
        asked.append((peer, "\(command)", tag, 3))
        if peer != .daemon, asked.count > 200 { asked.removeFirst() }
    }

    private func pass(_ span: Duration) {
        now += span
        take(.tick)
    }

    private func say(_ peer: Peer, _ frames: [[UInt8]]) {
        take(.said(peer, OxenMessage(frames.map { Secret($0) })))
    }

    /// What the peer was asked last, as the low bits say.
    private func answer(_ peer: Peer, _ choice: UInt8) {
        guard let place = asked.lastIndex(where: { $0.peer == peer }) else { return }
        let one = asked.remove(at: place)
        let parts: [[UInt8]]
        switch (choice & 3, one.command) {
        case (0, _): parts = [text()]
        case (1, _): parts = []
        case (_, "rpc.get_service_nodes"): parts = [Array("200".utf8), nodes(byte(), swarms: byte())]
        case (_, "monitor.messages"): parts = [verdicts(byte())]
        default: parts = [Array("OK".utf8)]
        }
        say(peer, [Array("REPLY".utf8), one.tag] + parts)
    }

    private func refuse(_ peer: Peer) {
        guard let place = asked.lastIndex(where: { $0.peer == peer }) else { return }
        let one = asked.remove(at: place)
        say(peer, [Array("FORBIDDEN".utf8), Array("REPLY".utf8), one.tag])
    }

    private func verdicts(_ bits: UInt8) -> [UInt8] {
        var writer = BencodeWriter()
        writer.beginList()
        for at in 0..<Int(bits & 3) {
            writer.beginDictionary()
            if bits >> (4 + UInt8(at)) & 1 == 0 { writer.key("success") } else { writer.key("errcode") }
            writer.int(Int64(bits & 8 == 0 ? 5 : 1))
            writer.endDictionary()
        }
        writer.endList()
        return writer.bytes
    }

    /// The nodes of a mask, in one of four swarms each.
    private func nodes(_ mask: UInt8, swarms: UInt8) -> [UInt8] {
        height += 1
        let states = (0..<8).filter { mask & 1 << $0 != 0 }.map { (number: UInt8) in
            let swarm = swarmIDs[Int((number &+ swarms) & 3)]
            return #"{"pubkey_x25519":"\#(Hex.encode(key(number).bytes))","public_ip":"127.0.0.1","#
                + #""storage_lmq_port":\#(22_000 + Int(swarms >> 7)),"swarm_id":\#(swarm)}"#
        }
        let text =
            #"{"block_hash":"\#(height & 3)","height":\#(height),"service_node_states":["#
            + states.joined(separator: ",") + "]}"
        return Array(text.utf8)
    }

    private func grow(_ count: Int) {
        var entries: [WatchEntry] = []
        for _ in 0..<count {
            revision += 1
            entries.append(WatchEntry(point: revision &* 0x9E37_79B9_7F4A_7C15, revision: revision))
        }
        take(.rows(entries))
    }

    /// As the source would read it: some rows have ended, and a request may be full before the last.
    private func read(_ bits: UInt8) {
        guard !readings.isEmpty else { return }
        let reading = readings.remove(at: Int(bits) % readings.count)
        guard bits & 0x80 == 0 else { return take(.read(reading.id, nil)) }
        let here = bits & 0x40 == 0 ? reading.revisions : Array(reading.revisions.prefix(1))
        let shown = here.enumerated().filter { bits >> $0.offset & 1 == 0 }.map(\.element)
        let ended = here.filter { !shown.contains($0) }
        // What was read so far ends with a row that is shown.
        let isFull = here.count < reading.revisions.count && !shown.isEmpty
        let batch = WatchBatch(
            shown: shown, ended: isFull || here.count == reading.revisions.count ? ended : reading.revisions,
            through: isFull ? here[0] : reading.through,
            body: shown.isEmpty ? nil : SharedBytes(Secret("le".utf8)))
        take(.read(reading.id, batch))
    }
}

private let playLimits: SwarmLimits = {
    // They name the system's resolver, whose threads no leak checker sees the owner of.
    leaksAreFine()
    defer { leaksAreFaults() }
    var limits = SwarmLimits()
    (limits.dialsAtOnce, limits.rowsPerBatch, limits.batchesAtOnce) = (3, 3, 2)
    (limits.strays, limits.votes) = (4, 2)
    return limits
}()

private let spans: [Duration] = [
    .zero, .milliseconds(200), .seconds(1), .seconds(2), .seconds(10), .seconds(16), .seconds(61),
    .seconds(601), .seconds(3_600)
]

private let swarmIDs: [UInt64] = [0, 1 << 62, 1 << 63, .max - 1]

private func key(_ number: UInt8) -> NodeKey {
    guard let key = NodeKey([UInt8](repeating: number, count: 32)) else { preconditionFailure("32 bytes") }
    return key
}
