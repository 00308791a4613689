import EventLoops
import NIOCore
import NIOSSL

/// Wipes what a kept connection reads into, once it has gone on (``WipingTap``).
enum AnswerTap {
    /// Puts one on a connection before its first request.
    static func stand(on channel: any Channel) -> EventLoopFuture<Void> {
        channel.eventLoop.submit {
            let pipeline = channel.pipeline.syncOperations
            // Behind TLS, whose plain text has a buffer too; what stands before it is sealed.
            guard let tls = try? pipeline.handler(type: NIOSSLClientHandler.self) else {
                return try pipeline.addHandler(WipingTap(), position: .first)
            }
            try pipeline.addHandler(WipingTap(), position: .after(tls))
        }
    }
}
