package import NIOCore
import PushModel

/// Stands before the decoder of a connection that lasts, as the first behind the handler that read the bytes.
///
/// The buffer that a socket or TLS reads into lives as long as the connection, which may be days: the latest
/// long message would stay there until another one is as long. So the bytes are moved to a buffer that ends
/// with their message, and are wiped where they arrived.
package final class WipingTap: ChannelInboundHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer

    package init() {}

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = Self.move(unwrapInboundIn(data), context.channel.allocator)
        context.fireChannelRead(wrapInboundOut(bytes))
    }

    /// - Parameter arrived: a buffer that nobody else reads; wiped when this returns.
    /// - Returns: the same bytes in a buffer of their own.
    package static func move(_ arrived: ByteBuffer, _ allocator: ByteBufferAllocator) -> ByteBuffer {
        var bytes = allocator.buffer(capacity: arrived.readableBytes)
        arrived.withUnsafeReadableBytes { source in
            bytes.writeBytes(source)
            wipe(UnsafeMutableRawBufferPointer(mutating: source))
        }
        return bytes
    }
}
