import AsyncHTTPClient
import NIOCore
import PushModel
import Synchronization

/// Plain http to servers on this machine, over connections that are kept: for a server that is asked several
/// times a second, such as a network's node.
///
/// One client serves all calls, because there is no address to be judged for each. No proxy stands between.
final class LoopbackFetch: Sendable {
    private let group: any EventLoopGroup
    private let connectDeadline: Duration
    /// One for each address of this machine's name, made with the first call that needs it: most processes
    /// never make one.
    private let clients = Mutex<[Bool: HTTPClient]>([:])
    /// Whether the name's IPv6 address was the one that answered last.
    private let prefersV6 = Atomic<Bool>(false)

    init(group: any EventLoopGroup, connectDeadline: Duration) {
        self.group = group
        self.connectDeadline = connectDeadline
    }

    deinit {
        // Idle connections end with it; nobody waits for them.
        clients.withLock { clients in for client in clients.values { client.shutdown { _ in } } }
    }

    /// - Parameter address: of this machine. Its name is both of its addresses: a server may listen at one of
    ///   them alone.
    func fetch(_ request: WebRequest, _ address: WebAddress) async -> Result<WebAnswer, WebError> {
        let isFirstV6 = prefersV6.load(ordering: .relaxed)
        let first = await request.fetch(over: client(isV6: isFirstV6), from: address)
        guard case .failure(.neverConnected) = first, address.literal == nil, !Task.isCancelled else {
            return first.mapError(\.translated)
        }
        let second = await request.fetch(over: client(isV6: !isFirstV6), from: address)
        if case .success = second { prefersV6.store(!isFirstV6, ordering: .relaxed) }
        return second.mapError(\.translated)
    }

    private func client(isV6: Bool) -> HTTPClient {
        clients.withLock { clients in
            if let client = clients[isV6] { return client }
            var settings = HTTPClient.Configuration(redirectConfiguration: .disallow)
            settings.httpVersion = .http1Only
            settings.timeout.connect = .milliseconds(connectDeadline.wholeMilliseconds)
            settings.connectionPool = .init(
                idleTimeout: .seconds(WebLimits.keptIdleSeconds),
                concurrentHTTP1ConnectionsPerHostSoftLimit: WebLimits.keptConnections)
            settings.connectionPool.retryConnectionEstablishment = false
            settings.http1_1ConnectionDebugInitializer = { AnswerTap.stand(on: $0) }
            // The name is this machine's, whatever a resolver says (RFC 6761 §6.3).
            settings.dnsOverride = ["localhost": isV6 ? "::1" : "127.0.0.1"]
            let made = HTTPClient(eventLoopGroupProvider: .shared(group), configuration: settings)
            clients[isV6] = made
            return made
        }
    }
}
