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
    /// Made with the first call: most processes never make one.
    private let client = Mutex<HTTPClient?>(nil)

    init(group: any EventLoopGroup, connectDeadline: Duration) {
        self.group = group
        self.connectDeadline = connectDeadline
    }

    deinit {
        // Idle connections end with it; nobody waits for them.
        client.withLock { $0?.shutdown { _ in } }
    }

    /// - Parameter address: of this machine.
    func fetch(_ request: WebRequest, _ address: WebAddress) async -> Result<WebAnswer, WebError> {
        await request.fetch(over: shared, from: address).mapError(\.translated)
    }

    private var shared: HTTPClient {
        client.withLock { client in
            if let client { return client }
            var settings = HTTPClient.Configuration(redirectConfiguration: .disallow)
            settings.httpVersion = .http1Only
            settings.timeout.connect = .milliseconds(connectDeadline.wholeMilliseconds)
            settings.connectionPool = .init(
                idleTimeout: .seconds(WebLimits.keptIdleSeconds),
                concurrentHTTP1ConnectionsPerHostSoftLimit: WebLimits.keptConnections)
            settings.connectionPool.retryConnectionEstablishment = false
            settings.http1_1ConnectionDebugInitializer = { AnswerTap.stand(on: $0) }
            // The name is this machine's, whatever a resolver says (RFC 6761 §6.3).
            settings.dnsOverride = ["localhost": "127.0.0.1"]
            let made = HTTPClient(eventLoopGroupProvider: .shared(group), configuration: settings)
            client = made
            return made
        }
    }
}
