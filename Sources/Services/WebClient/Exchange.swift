import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import PushModel

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#endif

/// How one exchange failed. Foreign errors end here.
enum ExchangeFault: Error, Equatable {
    /// No connection was made, so nothing was sent.
    case neverConnected
    /// The connection ended before the answer did.
    case noAnswer
    case unreachable, deadlineExceeded, answerTooLarge, malformedURL
    /// A connection stood, and TLS on it did not: a certificate that is not trusted, or is another host's.
    case tlsFailed

    init(_ error: any Error) {
        switch error {
        case let fault as ExchangeFault: self = fault
        case is NIOConnectionError: self = .neverConnected
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError: self = .tlsFailed
        case is NIOTooManyBytesError: self = .answerTooLarge
        case let fault as HTTPClientError where fault == .connectTimeout: self = .neverConnected
        case let fault as HTTPClientError where fault == .tlsHandshakeTimeout: self = .neverConnected
        case let fault as HTTPClientError where fault == .httpProxyHandshakeTimeout: self = .neverConnected
        case let fault as HTTPClientError where fault == .deadlineExceeded: self = .deadlineExceeded
        case let fault as HTTPClientError where fault == .readTimeout: self = .deadlineExceeded
        case let fault as HTTPClientError where fault == .invalidURL: self = .malformedURL
        case let fault as HTTPClientError where fault == .remoteConnectionClosed: self = .noAnswer
        // A refused connection comes as the system's error number.
        case let fault as ChannelError where fault == .connectTimeout(.zero): self = .neverConnected
        case is IOError: self = .neverConnected
        default: self = .unreachable
        }
    }

    var translated: WebError {
        switch self {
        case .neverConnected, .noAnswer, .unreachable: WebError(.unreachable)
        case .tlsFailed: WebError(.tlsFailed)
        case .deadlineExceeded: WebError(.deadlineExceeded)
        case .answerTooLarge: WebError(.answerTooLarge)
        case .malformedURL: WebError(.malformedURL)
        }
    }
}

/// One request by one way, on a client of its own or on one that is kept.
struct Exchange {
    private let request: WebRequest
    private let address: WebAddress
    private let way: Way
    private let options: WebOptions
    private let mayGo: @Sendable () -> Bool

    /// - Parameter mayGo: asked of each connection once it stands; `false`: it is closed, and nothing is
    ///   sent.
    init(
        _ request: WebRequest, _ address: WebAddress, by way: Way, _ options: WebOptions,
        mayGo: @escaping @Sendable () -> Bool
    ) {
        self.request = request
        self.address = address
        self.way = way
        self.options = options
        self.mayGo = mayGo
    }

    /// - Parameter kept: where the client is left if it has brought an answer; `nil`: it ends.
    func attempt(
        on group: any EventLoopGroup, keeping kept: KeptClients? = nil
    ) async throws(ExchangeFault) -> WebAnswer {
        let client = HTTPClient(
            eventLoopGroupProvider: .shared(group), configuration: try settings(keeps: kept != nil))
        let result: Result<WebAnswer, ExchangeFault>
        do {
            result = .success(try await request.send(over: client, to: address))
        } catch {
            result = .failure(ExchangeFault(error))
        }
        if case .success = result, let kept, kept.keep(client, for: address) { return try result.get() }
        // Attempts that are still connecting end with their own deadlines; nobody waits for them.
        client.shutdown { _ in }
        return try result.get()
    }

    /// The checked address replaces the name for the connection; the certificate must still carry the name.
    private func settings(keeps: Bool) throws(ExchangeFault) -> HTTPClient.Configuration {
        var tls = TLSConfiguration.makeClientConfiguration()
        do {
            let extra =
                try options.extraAuthorities.flatMap { try NIOSSLCertificate.fromPEMFile($0) }
                + options.authorityTexts.flatMap { try NIOSSLCertificate.fromPEMBytes($0) }
            // NIOSSL cannot make a context if the system's authorities are missing.
            if options.trust.isThere {
                tls.additionalTrustRoots = [.certificates(extra)]
            } else {
                tls.trustRoots = .certificates(extra)
            }
        } catch {
            throw .unreachable
        }
        // A server that does not say goodbye is not waited for.
        tls.shutdownTimeout = .seconds(1)
        var settings = HTTPClient.Configuration(tlsConfiguration: tls, redirectConfiguration: .disallow)
        settings.httpVersion = .http1Only
        settings.timeout.connect = .milliseconds(options.connectDeadline.wholeMilliseconds)
        settings.connectionPool.retryConnectionEstablishment = false
        settings.proxy = options.proxy.map { .server(host: way.proxy?.text ?? $0.host, port: $0.port) }
        if keeps {
            settings.connectionPool.idleTimeout = .seconds(WebLimits.keptIdleSeconds)
            settings.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = WebLimits.keptConnections
        }
        let host = address.literal == nil ? address.host : nil
        settings.http1_1ConnectionDebugInitializer = { [mayGo] channel in
            Self.judge(channel, host: host, keeps: keeps, mayGo)
        }
        if let target = way.target { settings.dnsOverride = [address.host: target.text] }
        return settings
    }

    /// Between TLS and the request.
    private static func judge(
        _ channel: any Channel, host: String?, keeps: Bool, _ mayGo: @escaping @Sendable () -> Bool
    ) -> EventLoopFuture<Void> {
        let checked =
            host.map { CertificateName.check($0, on: channel) } ?? channel.eventLoop.makeSucceededVoidFuture()
        return
            checked
            .flatMapThrowing { if !mayGo() { throw ExchangeFault.neverConnected } }
            .flatMap { keeps ? AnswerTap.stand(on: channel) : channel.eventLoop.makeSucceededVoidFuture() }
            .flatMapErrorThrowing { error in
                // The client lets the channel stand. It must hear of the failure before the channel's end.
                channel.eventLoop.execute { channel.close(promise: nil) }
                throw error
            }
    }
}

extension WebRequest {
    /// Sends it over a client whose connections are kept. A server may close one at the moment when it is
    /// used again: an unanswered request is sent once more on another connection, if it may be repeated; a
    /// second fault is final.
    func fetch(
        over client: HTTPClient, from address: WebAddress
    ) async -> Result<WebAnswer, ExchangeFault> {
        let first = await attempt(over: client, from: address)
        guard case .failure(.noAnswer) = first, mayRepeat, !Task.isCancelled else { return first }
        return await attempt(over: client, from: address)
    }

    private func attempt(
        over client: HTTPClient, from address: WebAddress
    ) async -> Result<WebAnswer, ExchangeFault> {
        do {
            return .success(try await send(over: client, to: address))
        } catch let error as IOError where [ECONNRESET, EPIPE].contains(error.errnoCode) {
            return .failure(.noAnswer)
        } catch {
            return .failure(ExchangeFault(error))
        }
    }

    func send(over client: HTTPClient, to address: WebAddress) async throws -> WebAnswer {
        try await read(try await client.execute(outgoing(to: address), timeout: span))
    }

    /// The deadline as AsyncHTTPClient counts.
    var span: TimeAmount { .milliseconds(max(1, deadline.wholeMilliseconds)) }

    func outgoing(to address: WebAddress) -> HTTPClientRequest {
        var outgoing = HTTPClientRequest(url: address.url)
        switch method {
        case .get: outgoing.method = .GET
        case .post: outgoing.method = .POST
        case .delete: outgoing.method = .DELETE
        }
        for header in headers { outgoing.headers.add(name: header.name, value: header.value) }
        if let body {
            // A copy for the socket; AsyncHTTPClient lets it go with the request.
            outgoing.body = body.reveal { .bytes(ByteBuffer(bytes: $0)) }
        }
        return outgoing
    }

    func read(_ answer: HTTPClientResponse) async throws -> WebAnswer {
        let body = try await answer.body.collect(upTo: answerLimitBytes)
        return WebAnswer(
            status: Int(answer.status.code), retryAfter: answer.headers.first(name: "retry-after"),
            body: body.withUnsafeReadableBytes { Secret(copying: $0) })
    }
}
