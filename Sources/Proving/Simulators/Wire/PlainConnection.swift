import NIOCore
import NIOHTTP1
import PushModel

/// One HTTP/1.1 connection of a simulator: a request at a time, bounded, answered by a judge.
final class PlainConnection: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let judge: any ConnectionJudge
    private let board: KnobBoard?
    private let world: World
    private let request: SimulatedRequest
    private var keepsAlive = true

    init(
        judge: any ConnectionJudge, board: KnobBoard?, world: World,
        bodyKept: Int = SimulatedRequest.bodyKeptBytes
    ) {
        request = SimulatedRequest(bodyKept: bodyKept)
        self.judge = judge
        self.board = board
        self.world = world
    }

    func handlerAdded(context: ChannelHandlerContext) {
        if let board, !board.add(context.channel) { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        board?.remove(context.channel)
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            request.reset()
            keepsAlive = head.isKeepAlive
            request.add(name: Array(":method".utf8), value: Array(head.method.rawValue.utf8))
            request.add(name: Array(":path".utf8), value: Array(head.uri.utf8))
            for (name, value) in head.headers {
                request.add(name: Array(name.lowercased().utf8), value: Array(value.utf8))
            }
        case .body(let part):
            part.withUnsafeReadableBytes { request.append($0.bindMemory(to: UInt8.self)) }
        case .end:
            answer(context)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // There is no GOAWAY here: the connection ends between two requests or at once.
        if case KnobBoard.End.kill = event { context.close(promise: nil) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func answer(_ context: ChannelHandlerContext) {
        if let later = judge.later(request, on: context.eventLoop) {
            return later.assumeIsolated().whenSuccess { self.send($0, context) }
        }
        let answer = judge.judge(request)
        let delay = max(answer.delay, board?.knobs.answerDelay.draw(world.random()) ?? .zero)
        guard delay > .zero else { return send(answer, context) }
        context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(delay)) { self.send(answer, context) }
    }

    private func send(_ answer: SimulatedAnswer, _ context: ChannelHandlerContext) {
        if answer.hangsUp { return context.close(promise: nil) }
        var headers = HTTPHeaders([("content-length", String(answer.body.count))])
        if let type = answer.contentType { headers.add(name: "content-type", value: type) }
        if let after = answer.retryAfter { headers.add(name: "retry-after", value: after) }
        if !keepsAlive { headers.add(name: "connection", value: "close") }
        let head = HTTPResponseHead(
            version: .http1_1, status: .init(statusCode: answer.status), headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if !answer.body.isEmpty {
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: answer.body)))), promise: nil)
        }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        if !keepsAlive { context.close(promise: nil) }
    }
}
