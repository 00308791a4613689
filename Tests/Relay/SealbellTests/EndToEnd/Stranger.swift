import NIOCore
import NIOPosix
import PushTesting

/// Somebody at a listener who holds to no rule: sends what bytes it likes, and keeps what comes back.
final class Stranger: Sendable {
    private struct Heard: Sendable {
        var text = ""
        var hasEnded = false
    }

    private final class Ear: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        private let heard: Noted<Heard>
        init(_ heard: Noted<Heard>) { self.heard = heard }
        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let text = String(buffer: unwrapInboundIn(data))
            heard.change { $0.text += text }
        }
        func channelInactive(context: ChannelHandlerContext) { heard.change { $0.hasEnded = true } }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    private let channel: any Channel
    private let heard: Noted<Heard>

    private init(_ channel: any Channel, _ heard: Noted<Heard>) {
        self.channel = channel
        self.heard = heard
    }

    static func connect(to port: Int) async throws -> Stranger {
        let heard = Noted(Heard())
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(
            .minutes(10)
        )
        .channelInitializer { channel in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(Ear(heard))
            }
        }
        .connect(host: "127.0.0.1", port: port).get()
        return Stranger(channel, heard)
    }

    /// Hands the bytes over and does not wait: who does not read them would keep a test waiting.
    func send(_ text: String) { channel.writeAndFlush(ByteBuffer(string: text), promise: nil) }

    /// The status of the first answer; `nil` when the connection ended without one.
    func status(
        looks: Int = Patience.looks, file: String = #fileID, line: Int = #line
    ) async -> Int? {
        await heard.until(for: "an answer, or the end", looks: looks, file: file, line: line) {
            $0.hasEnded || $0.text.contains("\r\n\r\n")
        }
        let words = heard.value.text.split(separator: " ", maxSplits: 2)
        return words.count > 1 ? Int(words[1]) : nil
    }

    /// Whether an answer or the end has come.
    var hasHeard: Bool { heard.value.hasEnded || !heard.value.text.isEmpty }

    /// All that has come so far.
    var text: String { heard.value.text }

    func close() { channel.close(promise: nil) }
}
