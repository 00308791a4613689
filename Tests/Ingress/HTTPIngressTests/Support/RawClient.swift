import NIOCore
import NIOPosix
import PushTesting
import Synchronization

/// One answer as this file's own little parser reads it: no code of the server under test is used.
struct RawAnswer: Sendable {
    var status: Int
    /// Names in lower case.
    var headers: [(name: String, value: String)]
    var body: [UInt8]
    var text: String { String(decoding: body, as: UTF8.self) }
    func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
}

enum RawFault: Error { case ended, malformed }

/// A TCP client that sends whatever bytes a test wants and reads answers with `Content-Length`.
final class RawClient: Sendable {
    private struct Inbox {
        var bytes: [UInt8] = []
        var hasEnded = false
    }

    private final class Collector: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        private let inbox: @Sendable ([UInt8]?) -> Void
        init(_ inbox: @escaping @Sendable ([UInt8]?) -> Void) { self.inbox = inbox }
        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            inbox(Array(unwrapInboundIn(data).readableBytesView))
        }
        func channelInactive(context: ChannelHandlerContext) { inbox(nil) }
        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if case ChannelEvent.inputClosed = event { inbox(nil) }
        }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    let channel: any Channel
    private let inbox: SharedInbox

    private final class SharedInbox: Sendable {
        let state = Mutex(Inbox())
        let changed = Signal()
        func take(_ bytes: [UInt8]?) {
            state.withLock { state in
                if let bytes { state.bytes += bytes } else { state.hasEnded = true }
            }
            changed.changed()
        }
    }

    private init(channel: any Channel, inbox: SharedInbox) {
        self.channel = channel
        self.inbox = inbox
    }

    /// - Parameters:
    ///   - place: the client's own address, of 127.0.0.0/8; each is another client.
    ///   - first: a handler that stands before the collector, such as a TLS client.
    static func connect(
        _ port: Int, from place: String? = nil, first: (@Sendable () throws -> any ChannelHandler)? = nil
    ) async throws -> RawClient {
        let inbox = SharedInbox()
        var bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(
            .minutes(10))
        if let place { bootstrap = bootstrap.bind(to: try SocketAddress(ipAddress: place, port: 0)) }
        let channel =
            try await bootstrap
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let first { try channel.pipeline.syncOperations.addHandler(first()) }
                    try channel.pipeline.syncOperations.addHandler(Collector { inbox.take($0) })
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        return RawClient(channel: channel, inbox: inbox)
    }

    func send(_ text: String) async throws { try await send(Array(text.utf8)) }
    func send(_ bytes: [UInt8]) async throws {
        try await channel.writeAndFlush(ByteBuffer(bytes: bytes)).get()
    }

    /// Whether an answer, a part of one, or the end has come.
    var hasHeard: Bool { inbox.state.withLock { $0.hasEnded || !$0.bytes.isEmpty } }

    func endSending() async throws { try await channel.close(mode: .output).get() }
    func close() { channel.close(mode: .all, promise: nil) }

    /// The next answer; `isHead` where the request was a HEAD.
    func answer(isHead: Bool = false, file: String = #fileID, line: Int = #line) async throws -> RawAnswer {
        var found: RawAnswer?
        try await inbox.changed.until(for: "an answer, or the stream's end", file: file, line: line) {
            try inbox.state.withLock { inbox in
                found = try Self.cut(&inbox.bytes, isHead: isHead)
                return found != nil || inbox.hasEnded
            }
        }
        guard let found else { throw RawFault.ended }
        return found
    }

    /// Waits for the server's end of the stream; the bytes behind the last answer taken.
    func end(file: String = #fileID, line: Int = #line) async -> [UInt8] {
        await inbox.changed.until(for: "the stream's end", file: file, line: line) {
            inbox.state.withLock(\.hasEnded)
        }
        return inbox.state.withLock { $0.bytes }
    }

    /// Waits until at least that many bytes wait, or the stream ends.
    func bytes(_ count: Int, file: String = #fileID, line: Int = #line) async -> [UInt8] {
        await inbox.changed.until(for: "\(count) bytes, or the stream's end", file: file, line: line) {
            inbox.state.withLock { $0.hasEnded || $0.bytes.count >= count }
        }
        return inbox.state.withLock { state in
            defer { state.bytes.removeFirst(min(count, state.bytes.count)) }
            return Array(state.bytes.prefix(count))
        }
    }

    /// Cuts one answer off the front; `nil` while it is not whole.
    private static func cut(_ bytes: inout [UInt8], isHead: Bool) throws -> RawAnswer? {
        let mark: [UInt8] = [13, 10, 13, 10]
        guard bytes.count >= 4,
            let end = (0...(bytes.count - 4)).first(where: { Array(bytes[$0..<$0 + 4]) == mark })
        else { return nil }
        let lines = String(decoding: bytes[..<end], as: UTF8.self).components("\r\n")
        let words = lines[0].split(separator: " ", maxSplits: 2)
        guard words.count >= 2, words[0] == "HTTP/1.1", let status = Int(words[1]) else {
            throw RawFault.malformed
        }
        var headers: [(name: String, value: String)] = []
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { throw RawFault.malformed }
            headers.append(
                (line[..<colon].lowercased(), String(line[line.index(after: colon)...].drop { $0 == " " })))
        }
        var length = headers.first { $0.name == "content-length" }.flatMap { Int($0.value) } ?? 0
        if isHead { length = 0 }
        guard bytes.count >= end + 4 + length else { return nil }
        let body = Array(bytes[(end + 4)..<(end + 4 + length)])
        bytes.removeFirst(end + 4 + length)
        return RawAnswer(status: status, headers: headers, body: body)
    }
}

extension String {
    fileprivate func components(_ separator: String) -> [String] {
        var parts: [String] = []
        var rest = self[...]
        while let range = rest.firstRange(of: separator) {
            parts.append(String(rest[..<range.lowerBound]))
            rest = rest[range.upperBound...]
        }
        return parts + [String(rest)]
    }
}
