import NIOCore
import NIOPosix
import NIOSSL
import PushTesting
import Synchronization

/// A frame of RFC 9113 as it stands on the wire.
struct RawHTTP2Frame: Sendable, Hashable {
    enum Kind {
        static let data: UInt8 = 0, headers: UInt8 = 1, reset: UInt8 = 3, settings: UInt8 = 4
        static let ping: UInt8 = 6, goaway: UInt8 = 7, windowUpdate: UInt8 = 8
    }
    var kind: UInt8
    var flags: UInt8 = 0
    var stream: Int32 = 0
    var payload: [UInt8] = []

    static func word(_ value: UInt32) -> [UInt8] {
        [UInt8(value >> 24), UInt8(value >> 16 & 255), UInt8(value >> 8 & 255), UInt8(value & 255)]
    }
}

/// A scripted HTTP/2 server that speaks in raw frames: what it does and when is the test's own word.
///
/// It acknowledges SETTINGS and answers PINGs unless told not to, never updates a window by itself, and keeps
/// what it saw.
final class RawPeer: Sendable {
    struct Script: Sendable {
        /// What a connection begins with; empty SETTINGS when left out.
        var opened: @Sendable (RawConnection) -> Void = { $0.settings([:]) }
        /// A request came whole: its stream, its body, and its place among the connection's requests, from 1.
        var requested: @Sendable (RawConnection, _ stream: Int32, _ body: [UInt8], _ number: Int) -> Void = {
            connection, stream, _, _ in connection.answer(stream)
        }
        /// The fields of a request came.
        var began: @Sendable (RawConnection, _ stream: Int32) -> Void = { _, _ in }
        /// Whether a connection answers PINGs, by its number, from 1.
        var answersPings: @Sendable (Int) -> Bool = { _ in true }
        /// A PING came, the so-many-th of this peer.
        var pinged: @Sendable (RawConnection, Int) -> Void = { _, _ in }
        /// Our SETTINGS were acknowledged.
        var acknowledged: @Sendable (RawConnection) -> Void = { _ in }
    }

    struct Seen: Sendable {
        var connections = 0
        /// Bodies of whole requests, in order of arrival.
        var bodies: [String] = []
        var headerBlocks: [[UInt8]] = []
        /// Of all bodies, whole or not.
        var dataBytes = 0
        var resets: [RawHTTP2Frame] = []
        var pings = 0
        /// Most streams open at once, and the most over the limit that then held.
        var mostStreams = 0
        var requestBeforeSettings = false
    }

    private let script: Script
    private let seenSoFar = Noted(Seen())
    private let listener: any Channel
    private let box: Box

    var port: Int { listener.localAddress?.port ?? 0 }
    var seen: Seen { seenSoFar.value }
    /// How many whole requests carried that body.
    func count(of body: String) -> Int { seen.bodies.filter { $0 == body }.count }

    /// - Parameters:
    ///   - host: an address of this machine, at which it listens alone.
    ///   - port: 0: any that is free.
    init(
        _ script: Script = Script(), certificate: Result<TestCertificate, any Error> = TestCertificate.shared,
        host: String = "127.0.0.1", port: Int = 0, on group: MultiThreadedEventLoopGroup = .singleton
    ) async throws {
        let certificate = try certificate.get()
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMBytes(certificate.pem).map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(file: certificate.keyFile, format: .pem)))
        configuration.applicationProtocols = ["h2"]
        let context = try NIOSSLContext(configuration: configuration)
        self.script = script
        let box = Box()
        self.box = box
        // The socket is made by the loop's thread, whose network may be another.
        listener = try await group.next().flatSubmit {
            ServerBootstrap(group: group)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        guard let peer = box.peer.withLock({ $0 }) else {
                            throw ChannelError.ioOnClosedChannel
                        }
                        let number = peer.note { seen -> Int in
                            seen.connections += 1
                            return seen.connections
                        }
                        try channel.pipeline.syncOperations.addHandlers(
                            NIOSSLServerHandler(context: context),
                            RawConnection(peer: peer, script: peer.script, number: number))
                    }
                }
                .bind(host: host, port: port)
        }.get()
        box.peer.withLock { $0 = self }
    }

    private final class Box: Sendable { let peer = Mutex<RawPeer?>(nil) }

    func note<Result: Sendable>(_ change: (inout Seen) -> Result) -> Result { seenSoFar.change(change) }

    /// Returns once what was seen fits; false when the test has run out of time first.
    func until(_ holds: (Seen) -> Bool) async -> Bool { await seenSoFar.until(holds) }

    /// Ends the listener; until then the peer keeps itself.
    func close() async throws {
        box.peer.withLock { $0 = nil }
        try await listener.close()
    }
}

/// One connection of a raw peer. Its verbs write at once.
final class RawConnection: ChannelInboundHandler, @unchecked Sendable {
    // Safety: scripts call it on its own event loop, and `later` hops there.
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let number: Int
    private let peer: RawPeer
    private let script: RawPeer.Script
    private var context: ChannelHandlerContext?
    private var bytes: [UInt8] = []
    private var prefaceSeen = false
    private var bodies: [Int32: [UInt8]] = [:]
    private var requests = 0
    private var settingsSent = false
    private var owesAcknowledgement = false

    init(peer: RawPeer, script: RawPeer.Script, number: Int) {
        self.peer = peer
        self.script = script
        self.number = number
    }

    // MARK: Verbs

    func send(_ frame: RawHTTP2Frame) {
        guard let context else { return }
        let count = UInt32(frame.payload.count)
        var buffer = context.channel.allocator.buffer(capacity: 9 + frame.payload.count)
        buffer.writeBytes(RawHTTP2Frame.word(count).dropFirst())
        buffer.writeBytes([frame.kind, frame.flags])
        buffer.writeBytes(RawHTTP2Frame.word(UInt32(bitPattern: frame.stream)))
        buffer.writeBytes(frame.payload)
        context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }

    /// Identifier to value; 3 is MAX_CONCURRENT_STREAMS.
    func settings(_ values: [UInt16: UInt32]) {
        settingsSent = true
        let payload = values.flatMap {
            [UInt8($0.key >> 8), UInt8($0.key & 255)] + RawHTTP2Frame.word($0.value)
        }
        send(RawHTTP2Frame(kind: RawHTTP2Frame.Kind.settings, payload: payload))
        if owesAcknowledgement { acknowledge() }
    }

    private func acknowledge() {
        owesAcknowledgement = false
        send(RawHTTP2Frame(kind: RawHTTP2Frame.Kind.settings, flags: 1))
    }

    /// `:status: 200` from the static table, with or without END_STREAM.
    func answer(_ stream: Int32, ends: Bool = true) {
        bodies[stream] = nil
        send(
            RawHTTP2Frame(
                kind: RawHTTP2Frame.Kind.headers, flags: ends ? 5 : 4, stream: stream, payload: [0x88]))
    }

    func reset(_ stream: Int32, _ code: UInt32) {
        bodies[stream] = nil
        send(RawHTTP2Frame(kind: RawHTTP2Frame.Kind.reset, stream: stream, payload: RawHTTP2Frame.word(code)))
    }

    func goaway(last: Int32, _ code: UInt32 = 0) {
        send(
            RawHTTP2Frame(
                kind: RawHTTP2Frame.Kind.goaway,
                payload: RawHTTP2Frame.word(UInt32(last)) + RawHTTP2Frame.word(code)))
    }

    func close() { context?.close(promise: nil) }

    func later(_ span: TimeAmount, _ act: @escaping @Sendable (RawConnection) -> Void) {
        context?.eventLoop.scheduleTask(in: span) { act(self) }
    }

    // MARK: What comes

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        bytes.append(contentsOf: unwrapInboundIn(data).readableBytesView)
        if !prefaceSeen, bytes.count >= 24 {
            bytes.removeFirst(24)
            prefaceSeen = true
            script.opened(self)
        }
        while prefaceSeen, let frame = nextFrame() { receive(frame) }
    }

    private func nextFrame() -> RawHTTP2Frame? {
        guard bytes.count >= 9 else { return nil }
        let count = Int(bytes[0]) << 16 | Int(bytes[1]) << 8 | Int(bytes[2])
        guard bytes.count >= 9 + count else { return nil }
        let stream = bytes[5..<9].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
        let frame = RawHTTP2Frame(
            kind: bytes[3], flags: bytes[4], stream: Int32(stream), payload: Array(bytes[9..<9 + count]))
        bytes.removeFirst(9 + count)
        return frame
    }

    private func receive(_ frame: RawHTTP2Frame) {
        switch frame.kind {
        case RawHTTP2Frame.Kind.settings where frame.flags & 1 == 1:
            script.acknowledged(self)
        case RawHTTP2Frame.Kind.settings:
            // A server's first frame is SETTINGS, not the acknowledgement of the client's (RFC 9113 §3.4).
            if settingsSent { acknowledge() } else { owesAcknowledgement = true }
        case RawHTTP2Frame.Kind.ping where frame.flags & 1 == 0:
            let count = peer.note { seen -> Int in
                seen.pings += 1
                return seen.pings
            }
            script.pinged(self, count)
            if script.answersPings(number) {
                send(RawHTTP2Frame(kind: RawHTTP2Frame.Kind.ping, flags: 1, payload: frame.payload))
            }
        case RawHTTP2Frame.Kind.headers:
            bodies[frame.stream] = []
            let (open, early) = (bodies.count, !settingsSent)
            peer.note { seen in
                seen.headerBlocks.append(frame.payload)
                seen.mostStreams = max(seen.mostStreams, open)
                if early { seen.requestBeforeSettings = true }
            }
            script.began(self, frame.stream)
        case RawHTTP2Frame.Kind.data:
            guard bodies[frame.stream] != nil else { return }
            bodies[frame.stream, default: []] += frame.payload
            peer.note { $0.dataBytes += frame.payload.count }
            guard frame.flags & 1 == 1 else { return }
            let body = bodies[frame.stream] ?? []
            requests += 1
            peer.note { $0.bodies.append(String(decoding: body, as: UTF8.self)) }
            script.requested(self, frame.stream, body, requests)
        case RawHTTP2Frame.Kind.reset:
            bodies[frame.stream] = nil
            peer.note { $0.resets.append(frame) }
        default:
            break
        }
    }
}
