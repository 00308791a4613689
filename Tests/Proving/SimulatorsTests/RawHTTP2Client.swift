import CNghttp2
import NIOCore
import NIOPosix
import NIOSSL
import PushTesting

@testable import Simulators

/// What a client saw, in order.
enum Seen: Sendable, Equatable {
    case settings([UInt16: UInt32])
    case settingsAcknowledged
    case ping(answer: Bool)
    case windowUpdate(stream: Int32, bytes: UInt32)
    case goAway(last: Int32, code: UInt32, debug: String)
    case reset(stream: Int32, code: UInt32)
    case answer(Answered)
    /// The stream is over without an answer, as the library sees it.
    case lost(stream: Int32, code: UInt32)
    case closed

    struct Answered: Sendable, Equatable {
        var stream: Int32
        var status: Int
        var fields: [String: String]
        var body: String
    }
}

/// A client on libnghttp2 that shows every frame it gets and can be made to ignore the stream limit.
final class RawHTTP2Client: ChannelDuplexHandler, @unchecked Sendable {
    // Safety: all state is touched on the channel's event loop only; tests come in through `channel`.
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let seen: AsyncStream<Seen>
    private let sink: AsyncStream<Seen>.Continuation
    private var session: OpaquePointer?
    private var context: ChannelHandlerContext?
    private var pending: [UInt8] = []
    private var answers: [Int32: Seen.Answered] = [:]
    private var bodies: [Int32: (bytes: [UInt8], sent: Int)] = [:]
    private let ignoresLimit: Bool
    private let speaks: Bool
    private(set) var channel: (any Channel)!

    private init(ignoresLimit: Bool, speaks: Bool) {
        self.speaks = speaks
        self.ignoresLimit = ignoresLimit
        (seen, sink) = AsyncStream.makeStream(of: Seen.self, bufferingPolicy: .bufferingNewest(100_000))
    }

    deinit { nghttp2_session_del(session) }

    /// Connects and exchanges SETTINGS.
    static func connect(
        port: Int, trusting authority: CertificateAuthority, group: any EventLoopGroup,
        protocols: [String] = ["h2"], ignoresLimit: Bool = false, speaks: Bool = true
    ) async throws -> RawHTTP2Client {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .certificates(
            try NIOSSLCertificate.fromPEMBytes(Array(authority.certificatePEM.utf8)))
        tls.applicationProtocols = protocols
        let context = try NIOSSLContext(configuration: tls)
        let client = RawHTTP2Client(ignoresLimit: ignoresLimit, speaks: speaks)
        client.channel = try await ClientBootstrap(group: group).connectTimeout(.minutes(10))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let handler = try NIOSSLClientHandler(context: context, serverHostname: "localhost")
                    try channel.pipeline.syncOperations.addHandlers(handler, client)
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        return client
    }

    /// Sends a request; its number on this connection counts from 0.
    func send(_ fields: [(String, String)], body: [UInt8]) async throws {
        try await channel.eventLoop.submit { [self] in submit(fields, body) }.get()
    }

    /// Sends several at once, in one write.
    func send(_ requests: [([(String, String)], [UInt8])]) async throws {
        try await channel.eventLoop.submit { [self] in
            for (fields, body) in requests { queue(fields, body) }
            flush()
        }.get()
    }

    func ping() async throws {
        try await channel.eventLoop.submit { [self] in
            nghttp2_submit_ping(session, 0, [1, 2, 3, 4, 5, 6, 7, 8])
            flush()
        }.get()
    }

    func close() async { try? await channel.close().get() }

    // MARK: the session

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        var callbacks: OpaquePointer?
        nghttp2_session_callbacks_new(&callbacks)
        defer { nghttp2_session_callbacks_del(callbacks) }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) { _, frame, name, n, value, v, _, user in
            let name = String(decoding: UnsafeBufferPointer(start: name, count: n), as: UTF8.self)
            let value = String(decoding: UnsafeBufferPointer(start: value, count: v), as: UTF8.self)
            client(user).header(frame!.pointee.hd.stream_id, name, value)
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _, _, stream, data, count, user in
            let text = String(decoding: UnsafeBufferPointer(start: data, count: count), as: UTF8.self)
            client(user).answers[stream]?.body += text
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, code, user in
            client(user).ended(stream, code)
            return 0
        }
        var option: OpaquePointer?
        nghttp2_option_new(&option)
        defer { nghttp2_option_del(option) }
        nghttp2_option_set_peer_max_concurrent_streams(option, 1000)
        nghttp2_session_client_new2(&session, callbacks, Unmanaged.passUnretained(self).toOpaque(), option)
        nghttp2_submit_settings(session, 0, nil, 0)
        if speaks { flush() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        sink.yield(.closed)
        sink.finish()
        self.context = nil
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        pending += Array(unwrapInboundIn(data).readableBytesView)
        while pending.count >= 9 {
            let length = Int(pending[0]) << 16 | Int(pending[1]) << 8 | Int(pending[2])
            guard pending.count >= 9 + length else { break }
            var frame = Array(pending.prefix(9 + length))
            pending.removeFirst(9 + length)
            note(&frame)
            nghttp2_session_mem_recv(session, frame, frame.count)
        }
        flush()
    }

    private func note(_ frame: inout [UInt8]) {
        func word(_ at: Int) -> UInt32 { frame[at..<at + 4].reduce(0) { $0 << 8 | UInt32($1) } }
        let stream = Int32(bitPattern: word(5))
        switch frame[3] {
        case 3: sink.yield(.reset(stream: stream, code: word(9)))
        case 4 where frame[4] & 1 == 1: sink.yield(.settingsAcknowledged)
        case 4:
            var values: [UInt16: UInt32] = [:]
            for at in stride(from: 9, to: frame.count, by: 6) {
                let id = UInt16(frame[at]) << 8 | UInt16(frame[at + 1])
                values[id] = word(at + 2)
                if id == 3, ignoresLimit { frame.replaceSubrange(at + 2..<at + 6, with: [0, 0, 4, 0]) }
            }
            sink.yield(.settings(values))
        case 6: sink.yield(.ping(answer: frame[4] & 1 == 1))
        case 7:
            sink.yield(
                .goAway(
                    last: Int32(bitPattern: word(9)), code: word(13),
                    debug: String(decoding: frame[17...], as: UTF8.self)))
        case 8: sink.yield(.windowUpdate(stream: stream, bytes: word(9)))
        default: break
        }
    }

    private func header(_ stream: Int32, _ name: String, _ value: String) {
        if name == ":status" {
            answers[stream] = .init(stream: stream, status: Int(value) ?? 0, fields: [:], body: "")
        } else {
            answers[stream]?.fields[name] = value
        }
    }

    private func ended(_ stream: Int32, _ code: UInt32) {
        bodies[stream] = nil
        if let answer = answers.removeValue(forKey: stream) {
            sink.yield(.answer(answer))
        } else {
            sink.yield(.lost(stream: stream, code: code))
        }
    }

    private func submit(_ fields: [(String, String)], _ body: [UInt8]) {
        queue(fields, body)
        flush()
    }

    private func queue(_ fields: [(String, String)], _ body: [UInt8]) {
        var arena = fields.flatMap { Array($0.0.utf8) + Array($0.1.utf8) }
        let id = arena.withUnsafeMutableBufferPointer { arena in
            var at = arena.baseAddress!
            let list = fields.map { name, value in
                let (start, n, v) = (at, name.utf8.count, value.utf8.count)
                at += n + v
                return nghttp2_nv(name: start, value: start + n, namelen: n, valuelen: v, flags: 0)
            }
            var provider = nghttp2_data_provider(source: nghttp2_data_source(), read_callback: readBody)
            return body.isEmpty
                ? nghttp2_submit_request(session, nil, list, list.count, nil, nil)
                : nghttp2_submit_request(session, nil, list, list.count, &provider, nil)
        }
        bodies[id] = (body, 0)
    }

    fileprivate func read(_ stream: Int32, into room: UnsafeMutableRawBufferPointer) -> (
        count: Int, isLast: Bool
    ) {
        guard var body = bodies[stream] else { return (0, true) }
        let count = min(room.count, body.bytes.count - body.sent)
        body.bytes.withUnsafeBytes {
            room.copyMemory(from: .init(rebasing: $0[body.sent..<body.sent + count]))
        }
        body.sent += count
        bodies[stream] = body
        return (count, body.sent == body.bytes.count)
    }

    private func flush() {
        guard let context, speaks else { return }
        while true {
            var data: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &data)
            guard count > 0 else { break }
            context.write(
                wrapOutboundOut(ByteBuffer(bytes: UnsafeBufferPointer(start: data, count: count))),
                promise: nil)
        }
        context.flush()
    }
}

private func client(_ user: UnsafeMutableRawPointer?) -> RawHTTP2Client {
    Unmanaged<RawHTTP2Client>.fromOpaque(user!).takeUnretainedValue()
}

private let readBody: nghttp2_data_source_read_callback = { _, stream, buffer, room, flags, _, user in
    let part = client(user).read(stream, into: UnsafeMutableRawBufferPointer(start: buffer, count: room))
    if part.isLast { flags!.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
    return part.count
}

/// Reads what a client saw, in order, and keeps it.
struct Sightings {
    private let seen: AsyncStream<Seen>
    private(set) var all: [Seen] = []

    init(_ client: RawHTTP2Client) { seen = client.seen }

    /// Passes over what does not fit.
    @discardableResult
    mutating func next(
        file: String = #fileID, line: Int = #line, where fits: (Seen) -> Bool
    ) async throws -> Seen {
        while true {
            let one = try await one("what fits", file, line)
            if fits(one) { return one }
        }
    }

    mutating func answer(file: String = #fileID, line: Int = #line) async throws -> Seen.Answered {
        while true {
            if case .answer(let answer) = try await one("an answer", file, line) { return answer }
        }
    }

    /// `count` ends of requests, whichever way, by stream.
    mutating func outcomes(
        _ count: Int, file: String = #fileID, line: Int = #line
    ) async throws -> [Int32: Seen] {
        var ends: [Int32: Seen] = [:]
        while ends.count < count {
            let one = try await one("end \(ends.count + 1) of \(count)", file, line)
            switch one {
            case .answer(let answer): ends[answer.stream] = one
            case .lost(let stream, _): ends[stream] = one
            default: break
            }
        }
        return ends
    }

    private mutating func one(_ what: String, _ file: String, _ line: Int) async throws -> Seen {
        let one = try await seen.next("\(what) behind \(all.suffix(5))", file: file, line: line)
        all.append(one)
        return one
    }
}
