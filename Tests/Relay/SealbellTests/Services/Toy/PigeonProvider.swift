import NIOCore
import NIOPosix
import PushModel
import PushTesting

@testable import RelayProgram

/// A way to the pigeons: one connection and one line for each push. In a service of its own this file is a
/// target.
struct PigeonProvider: Provider {
    struct Perch: SendSlot {
        func release() {}
    }

    let lane: LaneName
    let coast: BindAddress
    let greeting: String
    /// The credential: birds without it are not let in.
    let ring: String
    let group: any EventLoopGroup
    let world: World

    func run() async throws { await untilCancelled() }
    func reserve() async throws(CancellationError) -> Perch { Perch() }

    func send(_ leased: LeasedPush, on slot: Perch) async -> Answer {
        let sentAt = world.now()
        guard let message = leased.push.message.value as? PigeonMessage else {
            return Answer(.rejected, .unknown, sentAt: sentAt, fate: .local)
        }
        let words = [Secret(ring.utf8), message.loft, Secret(greeting.utf8), message.note].map { secret in
            secret.reveal { String(decoding: $0, as: UTF8.self) }
        }
        do {
            switch try await ask(words.joined(separator: " ")) {
            case "home": return Answer(.accepted, .ok, sentAt: sentAt)
            case "no such loft": return Answer(.unregistered(since: nil), .noSuchLoft, sentAt: sentAt)
            case "wrong ring": return Answer(.misconfigured(.credential), .wrongRing, sentAt: sentAt)
            default: return Answer(.rejected, .unknown, sentAt: sentAt)
            }
        } catch {
            return Answer(.retry(after: nil), .connectionLost, sentAt: sentAt, fate: .unknown)
        }
    }

    /// The coast's one line.
    private func ask(_ line: String) async throws -> String {
        let loop = group.next()
        let answer = loop.makePromise(of: String.self)
        let channel: any Channel
        do {
            channel = try await ClientBootstrap(group: loop).connectTimeout(.minutes(10))
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(
                            PigeonLines(
                                heard: { _, line in answer.succeed(line) },
                                ended: { answer.fail(ChannelError.eof) }))
                    }
                }
                .connect(host: coast.host, port: coast.port).get()
        } catch {
            answer.fail(error)
            throw error
        }
        channel.writeAndFlush(ByteBuffer(string: line + "\n"), promise: nil)
        defer { channel.close(promise: nil) }
        return try await answer.futureResult.get()
    }
}

/// Cuts what arrives into lines, at both ends.
final class PigeonLines: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let heard: (any Channel, String) -> Void
    private let ended: () -> Void
    private var rest = ""

    init(heard: @escaping (any Channel, String) -> Void, ended: @escaping () -> Void = {}) {
        (self.heard, self.ended) = (heard, ended)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        rest += String(buffer: unwrapInboundIn(data))
        while let end = rest.firstIndex(of: "\n") {
            let line = String(rest[..<end])
            rest.removeSubrange(...end)
            heard(context.channel, line)
        }
    }

    func channelInactive(context: ChannelHandlerContext) { ended() }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
