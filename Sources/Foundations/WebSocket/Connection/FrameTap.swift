import NIOCore
import PushModel

/// Stands before the decoder, as the first behind the one that read the bytes.
///
/// What a socket or TLS reads into lives as long as the connection, and relays are listened to for days. So
/// the bytes go on in a buffer that ends with their message, and are wiped where they arrived.
final class FrameTap: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

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
