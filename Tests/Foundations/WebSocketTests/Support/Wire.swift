import EventLoops
import NIOCore
import NIOPosix
import PushTesting
import Synchronization

@testable import WebSocket

/// One end of a socket as a test holds it: bytes out, bytes in, nothing between.
final class Wire: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private struct State {
        var channel: (any Channel)?
        var bytes: [UInt8] = []
        var hasEnded = false
    }

    private let state = Mutex(State())
    private let changed = Signal()

    func handlerAdded(context: ChannelHandlerContext) {
        state.withLock { $0.channel = context.channel }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        change { $0.bytes.append(contentsOf: buffer.readableBytesView) }
    }

    func channelInactive(context: ChannelHandlerContext) { change { $0.hasEnded = true } }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func change(_ body: (inout State) -> Void) {
        state.withLock { body(&$0) }
        changed.changed()
    }

    /// Exactly so many bytes, or `nil` when the stream ends before.
    func take(_ count: Int, file: String = #fileID, line: Int = #line) async -> [UInt8]? {
        await changed.until(for: "\(count) bytes, or the stream's end", file: file, line: line) {
            state.withLock { $0.hasEnded || $0.bytes.count >= count }
        }
        return state.withLock { state in
            guard state.bytes.count >= count else { return nil }
            defer { state.bytes.removeFirst(count) }
            return Array(state.bytes.prefix(count))
        }
    }

    /// Whatever waits now.
    func rest() -> [UInt8] {
        state.withLock { state in
            defer { state.bytes = [] }
            return state.bytes
        }
    }

    /// Up to and with the empty line.
    func head() async -> String? {
        var head: [UInt8] = []
        while let byte = await take(1) {
            head += byte
            if head.suffix(4).elementsEqual("\r\n\r\n".utf8) { return String(decoding: head, as: UTF8.self) }
        }
        return nil
    }

    /// Whether the other side has ended the stream, which it is waited for.
    func ends() async -> Bool { await take(.max) == nil }

    func send(_ bytes: [UInt8]) {
        let channel = state.withLock { $0.channel }
        channel?.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
    }

    func send(_ text: String) { send(Array(text.utf8)) }

    func close() {
        let channel = state.withLock { $0.channel }
        channel?.close(promise: nil)
    }

    /// Stops taking bytes from the socket, or goes on.
    func reads(_ isOn: Bool) async throws {
        let channel = state.withLock { $0.channel }
        try await channel?.setOption(.autoRead, value: isOn).get()
    }

    /// Connects to a port of this machine.
    static func connect(port: Int) async throws -> Wire {
        let wire = Wire()
        _ = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(
            .minutes(10)
        )
        .channelInitializer { $0.pipeline.addHandler(wire) }
        .connect(host: "127.0.0.1", port: port).get()
        return wire
    }
}

/// A port on 127.0.0.1 whose connections a test speaks on by itself.
final class WirePort: Sendable {
    private let listener: any Channel
    private let wires: AsyncStream<Wire>
    let port: Int

    init() async throws {
        let (wires, inlet) = AsyncStream.makeStream(of: Wire.self, bufferingPolicy: .bufferingOldest(16))
        self.wires = wires
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                let wire = Wire()
                return channel.pipeline.addHandler(wire).map { _ = inlet.yield(wire) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = listener.localAddress?.port ?? 0
    }

    func accept(file: String = #fileID, line: Int = #line) async throws -> Wire {
        try await wires.next("a connection", file: file, line: line)
    }

    func close() async throws { try await listener.close() }
}
