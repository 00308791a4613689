import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS
import PushModel

/// Whether push services and instances' peers can be reached: name, route, TLS and trust. Nothing is asked of
/// them.
struct ReachChecks {
    /// Enough for a lookup, two round trips round the earth and a retransmission.
    private static let deadline = TimeAmount.seconds(5)
    /// More places than anybody has apps; the rest would tell nothing new.
    private static let limit = 64

    let configuration: RelayConfiguration

    init(_ configuration: RelayConfiguration) { self.configuration = configuration }

    func check() async -> [Finding] {
        let services =
            configuration.proxy.map { [PeerAddress(host: $0.host, port: $0.port, isPlain: true)] }
            ?? self.services()
        return await withTaskGroup(of: (Int, Finding).self) { group in
            for (index, place) in (services + peers()).prefix(Self.limit).enumerated() {
                group.addTask { (index, await knock(place)) }
            }
            var found: [(Int, Finding)] = []
            for await finding in group { found.append(finding) }
            return found.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }

    /// Each place once, in the order of the apps.
    func services() -> [PeerAddress] { once(configuration.apps.flatMap(\.services).flatMap { $0.places }) }

    /// What instances connect to, each once.
    func peers() -> [PeerAddress] { once(configuration.instances.flatMap(\.settings.peers)) }

    private func once(_ places: [PeerAddress]) -> [PeerAddress] {
        places.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    func knock(_ place: PeerAddress) async -> Finding {
        let isPlain = place.isPlain
        let subject = place.socket ?? "\(place.host):\(place.port)"
        let group = MultiThreadedEventLoopGroup.singleton
        do {
            let client = try isPlain ? nil : context(place)
            let loop = group.next()
            let opened = loop.makePromise(of: Void.self)
            let bootstrap = ClientBootstrap(group: loop)
                .connectTimeout(Self.deadline)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        if let client {
                            let isName = IPAddress(place.host) == nil
                            let tls = try NIOSSLClientHandler(
                                context: client, serverHostname: isName ? place.host : nil)
                            try channel.pipeline.syncOperations.addHandlers([tls, HandshakeWaiter(opened)])
                        } else {
                            opened.succeed()
                        }
                    }
                }
            let channel: any Channel
            do {
                channel =
                    if let socket = place.socket {
                        try await bootstrap.connect(unixDomainSocketPath: socket).get()
                    } else {
                        try await bootstrap.connect(host: place.host, port: place.port).get()
                    }
            } catch {
                // The wait for the handshake must not last for ever.
                opened.fail(error)
                return .fault(.reach, subject, sentence(error, place))
            }
            let timer = loop.scheduleTask(in: Self.deadline) {
                opened.fail(ChannelError.connectTimeout(Self.deadline))
            }
            defer {
                timer.cancel()
                channel.close(promise: nil)
            }
            try await opened.futureResult.get()
            return .good(
                .reach, subject,
                isPlain ? "It answers." : "It answers, and its certificate is trusted.")
        } catch {
            return .fault(.reach, subject, sentence(error, place))
        }
    }

    private func context(_ place: PeerAddress) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.applicationProtocols = ["h2", "http/1.1"]
        if let caFile = place.caFile { configuration.trustRoots = .file(caFile) }
        return try NIOSSLContext(configuration: configuration)
    }

    /// What to do; the foreign error itself is dropped.
    private func sentence(_ error: any Error, _ place: PeerAddress) -> String {
        if place.socket != nil {
            return "Nothing answers at this socket: look whether the program runs, and who may open it."
        }
        let (port, isPlain) = (place.port, place.isPlain)
        switch error {
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError:
            return
                "It answers, and TLS fails: look at the clock, at ca, and at what opens TLS on the way."
        case is NIOConnectionError, is ChannelError:
            return isPlain
                ? "It does not answer: look at the address and the route to it."
                : "It does not answer: look at DNS and at the firewall; outgoing port \(port) must be open."
        default:
            return "It cannot be reached: look at DNS, the route and the firewall."
        }
    }
}

/// Waits for the end of the TLS handshake.
private final class HandshakeWaiter: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let opened: EventLoopPromise<Void>

    init(_ opened: EventLoopPromise<Void>) { self.opened = opened }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent { opened.succeed() }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        opened.fail(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        opened.fail(ChannelError.eof)
        context.fireChannelInactive()
    }
}
