import NIOCore
import NIOSSL
import PushModel

/// Stands before the decoder of a connection that is kept, as the first behind the one that read the bytes.
///
/// What a socket or TLS reads into lives as long as the connection, and a node's connection for days: its
/// latest long answer would stand there until another one is as long. So the bytes go on in a buffer that
/// ends with their answer, and are wiped where they arrived.
final class AnswerTap: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// Puts one on a connection before its first request.
    static func stand(on channel: any Channel) -> EventLoopFuture<Void> {
        channel.eventLoop.submit {
            let pipeline = channel.pipeline.syncOperations
            // Behind TLS, whose plain text has a buffer too; what stands before it is sealed.
            guard let tls = try? pipeline.handler(type: NIOSSLClientHandler.self) else {
                return try pipeline.addHandler(AnswerTap(), position: .first)
            }
            try pipeline.addHandler(AnswerTap(), position: .after(tls))
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let arrived = unwrapInboundIn(data)
        var bytes = context.channel.allocator.buffer(capacity: arrived.readableBytes)
        arrived.withUnsafeReadableBytes { source in
            bytes.writeBytes(source)
            // Nobody else reads these bytes.
            wipe(UnsafeMutableRawBufferPointer(mutating: source))
        }
        context.fireChannelRead(wrapInboundOut(bytes))
    }
}
