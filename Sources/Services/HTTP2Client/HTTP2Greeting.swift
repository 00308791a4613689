import Dialling
import EventLoops
import NIOCore
import NIOSSL
import NIOTLS
import PushModel
import WireFormats

/// A socket whose peer has begun to speak HTTP/2.
struct HTTP2Greeted {
    /// Our preface and SETTINGS are written; nothing that came has been taken in.
    let session: HTTP2Session
    /// What has come so far; it begins with the peer's SETTINGS.
    let bytes: ByteBuffer
    /// The place in the pipeline where the connection goes.
    let handler: HTTP2Greeting
}

/// Brings one socket from TCP to the first frame: TLS, the certificate's name, our preface, the head of the
/// peer's SETTINGS. It has no part in any other socket of the same dial, and makes room for the connection.
final class HTTP2Greeting: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The name that the certificate must carry; `nil` where the host is an address.
    private let serverName: String?
    private let attempt: DialAttempt<HTTP2Greeted>
    private var session: HTTP2Session?
    /// At most a frame's head and what one reading holds beside it.
    private var bytes = ByteBuffer()

    init(serverName: String?, attempt: DialAttempt<HTTP2Greeted>) {
        self.serverName = serverName
        self.attempt = attempt
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted(let chosen)? = event as? TLSUserEvent {
            // Apple's hosts speak HTTP/2 without choosing it; all others must choose `h2` (push-services
            // §2.1).
            guard chosen == nil || chosen == "h2" else { return fail(.notHTTP2) }
            guard hasRightName(context) else { return fail(.tlsFailed) }
            begin(context)
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var piece = WipingTap.move(unwrapInboundIn(data), context.channel.allocator)
        bytes.writeBuffer(&piece)
        guard let session, bytes.readableBytes >= Self.headBytes else { return }
        // The server's first frame is SETTINGS, and no acknowledgement (RFC 9113 §3.4).
        guard bytes.getInteger(at: bytes.readerIndex + 3, as: UInt8.self) == 4,
            bytes.getInteger(at: bytes.readerIndex + 4, as: UInt8.self).map({ $0 & 1 }) == 0
        else { return fail(.protocolViolation) }
        attempt.succeed(HTTP2Greeted(session: session, bytes: bytes, handler: self))
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail(session == nil ? .unreachable : .noSettings)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The library's words are dropped: they may quote the peer.
        fail(session == nil ? .tlsFailed : .noSettings)
    }

    /// Length, kind, flags and stream of a frame (RFC 9113 §4.1).
    private static let headBytes = 9

    private func begin(_ context: ChannelHandlerContext) {
        guard let session = HTTP2Session() else { return fail(.noSettings) }
        let produced = session.produce(
            limitBytes: HTTP2Connection.writeLimitBytes, expectedBytes: 64, from: context.channel.allocator
        ) { context.write(wrapOutboundOut($0), promise: nil) }
        guard produced != nil else { return fail(.protocolViolation) }
        self.session = session
        context.flush()
    }

    private func fail(_ code: HTTP2Error.Code) { attempt.fail(HTTP2Error(code)) }

    /// Whether the leaf carries the host's name. NIOSSL also takes a certificate for the address connected
    /// to, whatever name was asked for; public authorities issue such certificates, so anyone who bends DNS
    /// could answer for a push service. An address as host was checked by NIOSSL.
    private func hasRightName(_ context: ChannelHandlerContext) -> Bool {
        guard let serverName else { return true }
        // Without a certificate there is no name.
        guard let leaf = try? context.pipeline.syncOperations.nioSSL_peerCertificate() else { return false }
        return leaf._subjectAlternativeNames().contains {
            $0.nameType == .dnsName
                && HostName.fits(serverName, String(decoding: $0.contents, as: UTF8.self))
        }
    }
}
