import DialTesting
import Dialling
import NIOCore
import NIOPosix
import NIOSSL
import PushModel
import PushTesting
import Testing
import WebClient

/// A server of `localhost` behind TLS that answers every request, and counts them.
private final class CountingServer: Sendable {
    let requests = Noted(0)
    let folder: TemporaryFolder
    private let channel: any Channel

    var port: Int { channel.localAddress?.port ?? 0 }
    var authority: String { folder.file("chain.pem") }

    /// - Parameter other: whose certificate and count it shares.
    init(
        host: String = "127.0.0.1", port: Int = 0, like other: CountingServer? = nil,
        isPlain: Bool = false, on group: MultiThreadedEventLoopGroup = .singleton
    ) async throws {
        let folder = try other?.folder ?? TemporaryFolder()
        if other == nil { _ = try folder.writeCertificate() }
        self.folder = folder
        let chain = try NIOSSLCertificate.fromPEMFile(folder.file("chain.pem"))
        let tls = try NIOSSLContext(
            configuration: .makeServerConfiguration(
                certificateChain: chain.map { .certificate($0) },
                privateKey: .privateKey(NIOSSLPrivateKey(file: folder.file("key.pem"), format: .pem))))
        let requests = other?.requests ?? requests
        // The socket is made by the loop's thread, whose network may be another.
        channel = try await group.next().flatSubmit {
            ServerBootstrap(group: group)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let pipeline = channel.pipeline.syncOperations
                        if !isPlain { try pipeline.addHandler(NIOSSLServerHandler(context: tls)) }
                        try pipeline.addHandler(Answering(requests))
                    }
                }
                .bind(host: host, port: port)
        }.get()
    }

    func close() async throws { try await channel.close().get() }

    private final class Answering: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let requests: Noted<Int>
        private var text = ""
        init(_ requests: Noted<Int>) { self.requests = requests }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            text += String(buffer: unwrapInboundIn(data))
            guard let end = text.firstRange(of: "\r\n\r\n") else { return }
            // A post of these tests has four bytes.
            guard text.hasPrefix("G") || text[end.upperBound...].utf8.count >= 4 else { return }
            text = ""
            requests.change { $0 += 1 }
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
        }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}

/// Who fetches: each has another way through the client.
enum Fetcher: String, CaseIterable, CustomTestStringConvertible {
    /// A token endpoint, a webhook.
    case operators
    /// A Waku node, a gorush: connections are kept.
    case often
    /// A challenge or a proof at a host of a stranger's choice.
    case strangers
    var testDescription: String { rawValue }

    func request(_ url: String) -> WebRequest {
        var request = WebRequest(
            .post, url: url, body: Secret(Array("body".utf8)), answerLimitBytes: 1000,
            deadline: .seconds(240), publicAddressesOnly: self == .strangers)
        request.keepsConnection = self == .often
        return request
    }
}

@Suite("Fetches from a host of two addresses", .timeLimit(.minutes(30)))
struct FetchDiallingTests {
    static let orders = DeadAddress.Kind.allCases.flatMap { kind in [(kind, true), (kind, false)] }

    private func fetch(
        _ addresses: [IPAddress], _ server: CountingServer, proxy: WebOptions.Proxy? = nil,
        attemptDelay: Duration = .milliseconds(20), on group: MultiThreadedEventLoopGroup = .singleton
    ) -> HTTPSFetch {
        var options = WebOptions(
            extraAuthorities: [server.authority], proxy: proxy,
            allowed: ["127.0.0.0/8", "::1", "100::/64"].compactMap { AddressBlock($0) })
        options.attemptDelay = attemptDelay
        options.resolver = NamedAddresses(addresses)
        return HTTPSFetch(options, group: group, world: .live)
    }

    private func expectAnswers(
        _ kind: DeadAddress.Kind, _ isDeadFirst: Bool, isProxied: Bool = false,
        on group: MultiThreadedEventLoopGroup = .singleton
    ) async throws {
        let server = try await CountingServer(on: group)
        let proxy = isProxied ? try await ConnectProxy(on: group) : nil
        let port = proxy?.port ?? server.port
        let dead = try await group.next().submit { try DeadAddress(kind, port: port) }.get()
        let addresses = isDeadFirst ? [dead.address, .here] : [.here, dead.address]
        for (index, fetcher) in Fetcher.allCases.enumerated() {
            // Each finds the good one by itself: what one has learned would show it to the next.
            let web = fetch(
                addresses, server, proxy: proxy.map { WebOptions.Proxy(host: "proxy.test", port: $0.port) },
                on: group)
            let answer = try await web.fetch(fetcher.request("https://localhost:\(server.port)/"))
            #expect(answer.status == 200 && server.requests.value == index + 1, "\(fetcher)")
        }
        try await proxy?.close()
        try await server.close()
    }

    @Test("Every fetcher reaches it by the good one, whichever comes first", arguments: orders)
    func direct(_ kind: DeadAddress.Kind, _ isDeadFirst: Bool) async throws {
        try await expectAnswers(kind, isDeadFirst)
    }

    @Test("Every fetcher does so where the proxy's name is such a one", arguments: orders)
    func proxied(_ kind: DeadAddress.Kind, _ isDeadFirst: Bool) async throws {
        try await expectAnswers(kind, isDeadFirst, isProxied: true)
    }

    @Test(
        "Every fetcher does so in a network without IPv6",
        .enabled(if: BareNetwork.refusal == nil, "needs a namespace"), arguments: orders, [false, true])
    func withoutIPv6(_ order: (DeadAddress.Kind, Bool), _ isProxied: Bool) async throws {
        try await BareNetwork.with { group in
            try await expectAnswers(order.0, order.1, isProxied: isProxied, on: group)
        }
    }

    @Test("However many ways stand, a request goes out once", arguments: Fetcher.allCases)
    func once(_ fetcher: Fetcher) async throws {
        let server = try await CountingServer()
        let others = [0x7F00_0009, 0x7F00_000A].map { IPAddress(v4: $0) }
        var twins: [CountingServer] = []
        for other in others {
            twins.append(try await CountingServer(host: other.text, port: server.port, like: server))
        }
        let web = fetch(others + [.here], server, attemptDelay: .zero)
        for count in 1...20 {
            #expect(try await web.fetch(fetcher.request("https://localhost:\(server.port)/")).status == 200)
            #expect(server.requests.value == count)
        }
        for twin in twins { try await twin.close() }
        try await server.close()
    }

    @Test("An address that does not shake hands as it should makes room for the next")
    func distrusted() async throws {
        let server = try await CountingServer()
        // A certificate of nobody's, and one that speaks without TLS.
        let stranger = try await CountingServer(host: "127.0.0.9", port: server.port)
        let plain = try await CountingServer(
            host: "127.0.0.10", port: server.port, like: server, isPlain: true)
        let others = [0x7F00_0009, 0x7F00_000A].map { IPAddress(v4: $0) }
        let web = fetch(others + [.here], server)
        for fetcher in Fetcher.allCases {
            #expect(try await web.fetch(fetcher.request("https://localhost:\(server.port)/")).status == 200)
        }
        #expect(stranger.requests.value == 0 && server.requests.value == 3)
        // By itself each is unreachable, and nothing was sent.
        for other in others {
            let alone = fetch([other], server)
            do throws(WebError) {
                _ = try await alone.fetch(Fetcher.operators.request("https://localhost:\(server.port)/"))
                Issue.record("it was reached")
            } catch { #expect([.unreachable, .tlsFailed].contains(error.code)) }
        }
        for one in [stranger, plain, server] { try await one.close() }
    }

    private static var hasSixth: Bool { HeldPort(0, isSixth: true) != nil }

    @Test("A server that listens at one address of localhost alone is reached without TLS too")
    func loopback() async throws {
        for host in ["127.0.0.1", "::1"] {
            // A machine without IPv6 has the first alone.
            guard var server = try? await CountingServer(host: host, isPlain: true) else { continue }
            // Of the other address nobody else may have the port: it would be asked as well.
            var other = HeldPort(server.port, isSixth: host == "127.0.0.1")
            for _ in 0..<20 where other == nil && Self.hasSixth {
                try await server.close()
                server = try await CountingServer(host: host, isPlain: true)
                other = HeldPort(server.port, isSixth: host == "127.0.0.1")
            }
            defer { withExtendedLifetime(other) {} }
            let web = HTTPSFetch(group: MultiThreadedEventLoopGroup.singleton, world: .live)
            for _ in 0..<3 {
                let answer = try await web.fetch(
                    Fetcher.operators.request("http://localhost:\(server.port)/"))
                #expect(answer.status == 200)
            }
            #expect(server.requests.value == 3)
            try await server.close()
        }
    }

    @Test("A call to a server nearby reaches the good address, with TLS and without", arguments: orders)
    func localCall(_ kind: DeadAddress.Kind, _ isDeadFirst: Bool) async throws {
        for isPlain in [true, false] {
            let server = try await CountingServer(isPlain: isPlain)
            let dead = try DeadAddress(kind, port: server.port)
            // Without TLS, whoever takes a connection has taken it.
            if isPlain, kind == .silent, isDeadFirst { continue }
            let addresses = isDeadFirst ? [dead.address, .here] : [.here, dead.address]
            let call = try #require(
                LocalCall(
                    url: "\(isPlain ? "http" : "https")://localhost:\(server.port)",
                    authority: Array(try server.folder.read("chain.pem").utf8), deadline: .minutes(60),
                    dialling: .swift(addresses)))
            let answer = try await bounded("an answer") { try await call.ask("GET", "/") }
            #expect(answer.text == "ok")
            try await server.close()
        }
    }
}
