import NIOCore
import NIOPosix
import NIOSSL
import PushModel
import Synchronization

/// A listening socket of a simulator and what it serves.
final class SimulatorListener: Sendable {
    private let state = Mutex<(any Channel)?>(nil)
    private let group: any EventLoopGroup

    init(group: any EventLoopGroup) { self.group = group }

    /// Binds `host`:`port` (0: any free one) and serves each connection as `prepare` sets it up.
    ///
    /// - Returns: the port.
    /// - Throws: `SimulatorError.portNotFree`.
    func start(
        host: String, port: Int, prepare: @escaping @Sendable (any Channel) throws -> Void
    ) async throws(SimulatorError) -> Int {
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.backlog, value: 512)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try prepare(channel) }
            }
        do {
            let channel = try await bootstrap.bind(host: host, port: port).get()
            state.withLock { $0 = channel }
            return channel.localAddress?.port ?? port
        } catch {
            throw SimulatorError(.portNotFree)
        }
    }

    /// Closes the listening socket; true if there was one. The owner closes the connections.
    func stop() async {
        let channel = state.withLock { state in
            defer { state = nil }
            return state
        }
        // It may already be closed; then there is nothing left to do.
        try? await channel?.close().get()
    }

    var port: Int? { state.withLock { $0?.localAddress?.port } }
}

extension CertificateAuthority {
    /// The server side of TLS for `localhost` and `127.0.0.1`, with these names offered by ALPN.
    ///
    /// - Throws: `.certificateNotMade`.
    func serverContext(protocols: [String]) throws(SimulatorError) -> NIOSSLContext {
        let issued = try issue()
        do {
            let certificate = try NIOSSLCertificate(bytes: Array(issued.certificatePEM.utf8), format: .pem)
            let key = try NIOSSLPrivateKey(bytes: Array(issued.privateKeyPEM.utf8), format: .pem)
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: [.certificate(certificate)], privateKey: .privateKey(key))
            configuration.applicationProtocols = protocols
            configuration.minimumTLSVersion = .tlsv12
            // Closing a socket while the peer still writes would destroy a GOAWAY that is on its way.
            configuration.shutdownTimeout = .seconds(60)
            return try NIOSSLContext(configuration: configuration)
        } catch {
            throw SimulatorError(.certificateNotMade)
        }
    }
}
