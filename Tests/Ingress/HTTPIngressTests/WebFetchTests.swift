import Dialling
import HTTPIngress
import NIOCore
import NIOPosix
import PushModel
import PushTesting
import Synchronization
import Testing
import WebClient

/// A resolver whose answers a test decides, and which remembers what it was asked.
final class ScriptedResolver: HostResolver {
    let asked = Noted<[String]>([])
    private let answer: @Sendable (Int) async -> [String]
    private let tasks = Mutex<[ObjectIdentifier: Task<Void, Never>]>([:])

    init(_ answer: @escaping @Sendable (Int) async -> [String]) { self.answer = answer }
    convenience init(_ addresses: String...) { self.init { _ in addresses } }

    func begin(_ lookUp: LookUp) {
        let count = asked.change { hosts in
            hosts.append(lookUp.host)
            return hosts.count
        }
        let task = Task { [answer] in lookUp.answer(await answer(count).compactMap { IPAddress($0) }) }
        tasks.withLock { $0[ObjectIdentifier(lookUp)] = task }
    }

    func leave(_ lookUp: LookUp) {
        tasks.withLock { $0.removeValue(forKey: ObjectIdentifier(lookUp)) }?.cancel()
    }
}

/// Runs a TLS listener at 127.0.0.1 with a certificate of its own for `localhost`.
func withWebServer(
    _ body: @Sendable @escaping (HTTPInbound) async -> HTTPOutbound,
    _ test: (_ port: Int, _ authority: String) async throws -> Void
) async throws {
    let folder = try TemporaryFolder()
    _ = try folder.writeCertificate()
    let files = TLSFiles(certificateChain: folder.file("chain.pem"), privateKey: folder.file("key.pem"))
    let face = ProbeFace("web", [HTTPRoute(.prefix("/"), bodyLimitBytes: 1000)], body)
    try await withListener([face], tls: files) { _, port in try await test(port, folder.file("chain.pem")) }
    folder.remove()
}

private func request(
    _ url: String, _ body: String? = nil, limit: Int = 1000, deadline: Duration = .seconds(240),
    isPublic: Bool = true
) -> WebRequest {
    WebRequest(
        body == nil ? .get : .post, url: url, headers: [("x-test", "yes")],
        body: body.map { Secret(Array($0.utf8)) },
        answerLimitBytes: limit, deadline: deadline, publicAddressesOnly: isPublic)
}

private func code(_ fetch: HTTPSFetch, _ request: WebRequest) async -> WebError.Code? {
    do throws(WebError) {
        _ = try await fetch.fetch(request)
        return nil
    } catch { return error.code }
}

@Suite("Rare HTTPS requests", .timeLimit(.minutes(30)))
struct WebFetchTests {
    private static let loopback = AddressBlock("127.0.0.0/8").map { [$0] } ?? []

    private func fetch(
        _ resolver: any HostResolver, authorities: [String] = [], allowed: [AddressBlock] = [],
        proxy: WebOptions.Proxy? = nil
    ) -> HTTPSFetch {
        HTTPSFetch(
            WebOptions(extraAuthorities: authorities, proxy: proxy, allowed: allowed), resolver: resolver,
            group: MultiThreadedEventLoopGroup.singleton, world: .live)
    }

    @Test("A post reaches the host, and status, Retry-After and body come back")
    func post() async throws {
        try await withWebServer({ inbound in
            HTTPOutbound(
                503, .text,
                Array(inbound.body.readableBytesView) + Array((inbound.header("x-test") ?? "").utf8),
                headers: [(name: "retry-after", value: "7")])
        }) { port, authority in
            let resolver = ScriptedResolver("127.0.0.1")
            let client = fetch(resolver, authorities: [authority], allowed: Self.loopback)
            let answer = try await client.fetch(request("https://LOCALHOST:\(port)/x?y=z", "hello "))
            #expect(answer.status == 503)
            #expect(answer.retryAfter == "7")
            #expect(answer.body == Secret(Array("hello yes".utf8)))
            #expect(
                resolver.asked.value == ["localhost"], "one look-up, of the name as written in lower case")
        }
    }

    @Test("The connection goes to the address that was judged, not to what the name means a moment later")
    func rebinding() async throws {
        try await withWebServer({ _ in .text(200, "right") }) { port, authority in
            // `localhost` would lead to the server; the judged address is another one, where nobody listens.
            let elsewhere = fetch(
                ScriptedResolver("127.0.0.77"), authorities: [authority], allowed: Self.loopback)
            // The listener is bound to 127.0.0.1 alone, so an answer would mean a second look-up.
            #expect(await code(elsewhere, request("https://LocalHost:\(port)/")) == .unreachable)
            #expect(await code(elsewhere, request("https://localhost:\(port)/")) == .unreachable)
        }
    }

    @Test("A redirect is an answer, never followed")
    func redirect() async throws {
        let calls = Noted(0)
        try await withWebServer({ _ in
            calls.set(calls.value + 1)
            return HTTPOutbound(302, headers: [(name: "location", value: "/again")])
        }) { port, authority in
            let client = fetch(
                ScriptedResolver("127.0.0.1"), authorities: [authority], allowed: Self.loopback)
            let answer = try await client.fetch(request("https://localhost:\(port)/"))
            #expect(answer.status == 302)
        }
        #expect(calls.value == 1)
    }

    @Test("An answer beyond the bound, an answer too late, and a name with no address each have their code")
    func bounds() async throws {
        let gate = Gate()
        try await withWebServer({ inbound in
            if inbound.path == "/slow" { await gate.wait() }
            return HTTPOutbound(200, .octets, Array(repeating: 1, count: 1001))
        }) { port, authority in
            let client = fetch(
                ScriptedResolver("127.0.0.1"), authorities: [authority], allowed: Self.loopback)
            #expect(await code(client, request("https://localhost:\(port)/", limit: 1000)) == .answerTooLarge)
            #expect(await code(client, request("https://localhost:\(port)/", limit: 1001)) == nil)
            let slow = request("https://localhost:\(port)/slow", deadline: .milliseconds(300))
            #expect(await code(client, slow) == .deadlineExceeded)
            gate.open()
            #expect(
                await code(fetch(ScriptedResolver()), request("https://nowhere.example/")) == .unreachable)
        }
    }

    @Test("A resolver that does not answer is bounded by the deadline too")
    func slowResolver() async {
        let client = fetch(
            ScriptedResolver { _ in
                // As the system's resolver does.
                await untilCancelled()
                return ["8.8.8.8"]
            })
        #expect(
            await code(client, request("https://slow.example/", deadline: .milliseconds(100)))
                == .deadlineExceeded)
    }

    @Test("A certificate of another authority or for another name is no answer")
    func certificates() async throws {
        try await withWebServer({ _ in .text(200, "ok") }) { port, authority in
            let stranger = fetch(ScriptedResolver("127.0.0.1"), allowed: Self.loopback)
            #expect(await code(stranger, request("https://localhost:\(port)/")) == .tlsFailed)
            let client = fetch(
                ScriptedResolver("127.0.0.1"), authorities: [authority], allowed: Self.loopback)
            #expect(await code(client, request("https://other.example:\(port)/")) == .tlsFailed)
        }
    }

    @Test("A dead first address does not hide a living second one")
    func secondAddress() async throws {
        try await withWebServer({ _ in .text(200, "ok") }) { port, authority in
            let client = fetch(
                ScriptedResolver("127.0.0.77", "127.0.0.1"), authorities: [authority], allowed: Self.loopback)
            let answer = try await client.fetch(request("https://localhost:\(port)/"))
            #expect(answer.status == 200)
        }
    }

    @Test(
        "A peer's URL reaches no address that is not public",
        arguments: [
            "127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "172.20.0.1", "100.64.1.1", "0.0.0.0",
            "224.0.0.1",
            "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "fe80::1", "fd00::1", "ff02::1",
            "64:ff9b::a00:1", "2002:a00:1::"
        ])
    func forbidden(_ address: String) async {
        let client = fetch(ScriptedResolver(address))
        #expect(await code(client, request("https://inside.example/")) == .forbiddenAddress)
        #expect(
            await code(client, request("https://inside.example/", deadline: .milliseconds(200)))
                == .forbiddenAddress)
        let literal = address.contains(":") ? "[\(address)]" : address
        #expect(await code(client, request("https://\(literal)/")) == .forbiddenAddress)
        let mixed = fetch(ScriptedResolver("8.8.8.8", address))
        #expect(await code(mixed, request("https://mixed.example/")) == .forbiddenAddress)
    }

    @Test(
        "Ports of other well-known services are out of reach for a peer's URL",
        arguments: [22, 25, 80, 389, 1023])
    func ports(_ port: Int) async {
        #expect(
            await code(fetch(ScriptedResolver("8.8.8.8")), request("https://a.example:\(port)/"))
                == .forbiddenAddress)
    }

    @Test(
        "A URL that two parsers might read differently is malformed",
        arguments: [
            "", "http://a.example/", "HTTPS//a.example", "https:/a.example/", "https://", "https:///x",
            "https://user@a.example/",
            "https://user:word@a.example/", "https://a.example@b.example/", "https://a.example\\@b.example/",
            "https://a.example#@b.example/", "https://a.example:0/", "https://a.example:65536/",
            "https://a.example:+443/",
            "https://a.example:/", "https://a..example/", "https://.example/", "https://a.example./",
            "https://-a.example/",
            "https://a_b.example/", "https://127.1/", "https://2130706433/", "https://0x7f000001/",
            "https://0177.0.0.1/",
            "https://1.2.3.4.5/", "https://[::1/", "https://[1.2.3.4]/", "https://[fe80::1%25eth0]/",
            "https://::1/",
            "https://a.example/ x", "https://a.example/\u{0}", "https://a.example/\r\nX: y",
            "https://exämple.org/",
            "https://a%2eexample/", "ftp://a.example/", "file:///etc/passwd",
            "https://a.example/" + String(repeating: "a", count: 5000)
        ])
    func malformed(_ url: String) async {
        let resolver = ScriptedResolver("8.8.8.8")
        #expect(await code(fetch(resolver), request(url)) == .malformedURL)
        #expect(resolver.asked.value == [], "nothing is looked up for it")
    }

    @Test("An operator's own URL may lead inside")
    func inside() async throws {
        try await withWebServer({ _ in .text(200, "ok") }) { port, authority in
            let client = fetch(ScriptedResolver("127.0.0.1"), authorities: [authority])
            let answer = try await client.fetch(request("https://localhost:\(port)/", isPublic: false))
            #expect(answer.status == 200)
        }
    }

    /// To a server of the operator's that is asked often.
    private func often(_ url: String, mayRepeat: Bool = false) -> WebRequest {
        var request = request(url, isPublic: false)
        (request.keepsConnection, request.mayRepeat) = (true, mayRepeat)
        return request
    }

    @Test("Where it is asked for, calls share a connection and a look-up; else each has its own")
    func kept() async throws {
        try await withWebServer({ _ in .text(200, "ok") }) { port, authority in
            let url = "https://localhost:\(port)/"
            let resolver = ScriptedResolver("127.0.0.1")
            let client = fetch(resolver, authorities: [authority])
            for _ in 0..<5 { #expect(await code(client, often(url)) == nil) }
            #expect(resolver.asked.value.count == 1)
            #expect(await code(client, request(url, isPublic: false)) == nil)
            #expect(resolver.asked.value.count == 2)
            // A peer's URL is judged each time, whatever else is asked for.
            var peer = request(url)
            peer.keepsConnection = true
            #expect(await code(client, peer) == .forbiddenAddress)
            #expect(resolver.asked.value.count == 3)
            // Calls at one time.
            await withTaskGroup(of: WebError.Code?.self) { group in
                for _ in 0..<20 { group.addTask { await code(client, often(url)) } }
                // Bound: each of the fetches has its deadline.
                for await code in group { #expect(code == nil) }
            }
            #expect(resolver.asked.value.count == 3)
        }
    }

    @Test("A kept server that goes is unreachable, and looked up again once it is back")
    func keptServerGoes() async throws {
        let resolver = ScriptedResolver("127.0.0.1")
        var client: HTTPSFetch?
        var last = ""
        try await withWebServer({ _ in .text(200, "ok") }) { port, authority in
            let made = fetch(resolver, authorities: [authority])
            #expect(await code(made, often("https://localhost:\(port)/", mayRepeat: true)) == nil)
            (client, last) = (made, "https://localhost:\(port)/")
        }
        let kept = try #require(client)
        try await asked(for: "a server that is gone") {
            await code(kept, often(last, mayRepeat: true)) == .unreachable
        }
        #expect(await code(kept, often(last)) == .unreachable)
        #expect(resolver.asked.value.count >= 2, "each call looks for it anew")
    }

    @Test("Through a proxy a peer's URL is tunnelled to the judged address, never to the name")
    func proxy() async throws {
        let proxy = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(FirstLine())
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        FirstLine.seen.set("")
        let port = proxy.localAddress?.port ?? 0
        let client = fetch(ScriptedResolver("8.8.4.4"), proxy: .init(host: "127.0.0.1", port: port))
        #expect(await code(client, request("https://a.example/")) == .unreachable)
        #expect(FirstLine.seen.value.hasPrefix("CONNECT 8.8.4.4:443 "))
        try await proxy.close().get()
    }
}

/// A proxy that notes the first line it hears and hangs up.
private final class FirstLine: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    static let seen = Noted("")

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let text = String(buffer: unwrapInboundIn(data))
        Self.seen.set(text.split(separator: "\r\n").first.map(String.init) ?? "")
        context.close(promise: nil)
    }
}
