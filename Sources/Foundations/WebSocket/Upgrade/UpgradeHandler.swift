import NIOCore
import NIOSSL
import NIOTLS
import NIOWebSocket
import WireFormats

/// The client's opening handshake on a channel: waits for TLS where there is some, asks, judges the answer,
/// puts the frames' handlers in its place and leaves.
final class UpgradeHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var exchange: UpgradeExchange
    private let isSecure: Bool
    /// The name that the certificate must carry; `nil` where the host is an address, which NIOSSL checks.
    private let serverName: String?
    private let link: WebSocketLink
    private let done: (WebSocketError?) -> Void
    /// At most the head's bound and one reading.
    private var input = ByteBuffer()
    private var isOver = false
    private var hasAsked = false

    init(
        _ exchange: UpgradeExchange, isSecure: Bool, serverName: String?, link: WebSocketLink,
        done: @escaping (WebSocketError?) -> Void
    ) {
        self.exchange = exchange
        self.isSecure = isSecure
        self.serverName = serverName
        self.link = link
        self.done = done
    }

    func handlerAdded(context: ChannelHandlerContext) { if !isSecure { ask(context) } }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent, !hasAsked {
            guard hasRightName(context) else { return finish(WebSocketError(.tlsFailed)) }
            ask(context)
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isOver { return context.fireChannelRead(data) }
        var piece = unwrapInboundIn(data)
        input.writeBuffer(&piece)
        switch exchange.take(&input) {
        case .wait: return
        case .refused(let code, let status): finish(WebSocketError(code, status: status))
        case .open: open(context)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        finish(WebSocketError(isSecure && !hasAsked ? .tlsFailed : .badUpgrade))
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The library's words are dropped: they may quote the peer.
        finish(WebSocketError(isSecure && !hasAsked ? .tlsFailed : .badUpgrade))
    }

    private func ask(_ context: ChannelHandlerContext) {
        hasAsked = true
        context.writeAndFlush(wrapOutboundOut(exchange.request), promise: nil)
    }

    private func open(_ context: ChannelHandlerContext) {
        let sync = context.pipeline.syncOperations
        do {
            try sync.addHandlers(link.handlers, position: .after(self))
        } catch {
            // The pipeline is being torn down.
            return finish(WebSocketError(.lost))
        }
        finish(nil)
        if input.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(input)) }
        sync.removeHandler(context: context, promise: nil)
    }

    private func finish(_ error: WebSocketError?) {
        guard !isOver else { return }
        isOver = true
        done(error)
    }

    /// Whether the leaf carries the host's name. NIOSSL also takes a certificate for the address connected
    /// to, whatever name was asked for; public authorities issue such certificates, so anyone who bends DNS
    /// could answer for a relay. An address as host was checked by NIOSSL.
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
