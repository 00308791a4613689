import NIOCore
import NIOPosix
import NIOSSL
import PushModel
import PushTesting
import Synchronization
import Testing
import WebClient

/// A server that answers bytes as a test says: `script` gets the number of the connection and of the request
/// on it, both from 1.
private final class ScriptedServer: Sendable {
    enum Step: Sendable {
        case bytes(String)
        /// The connection ends.
        case end
        /// One byte after another, for ever.
        case trickle
    }

    let connections = Noted(0)
    private let channel: Mutex<(any Channel)?> = Mutex(nil)

    func start(
        host: String = "127.0.0.1", tls: NIOSSLContext? = nil,
        _ script: @escaping @Sendable (Int, Int) -> [Step]
    ) async throws -> Int {
        let made = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let number = self.connections.change { count in
                        count += 1
                        return count
                    }
                    let pipeline = channel.pipeline.syncOperations
                    if let tls { try pipeline.addHandler(NIOSSLServerHandler(context: tls)) }
                    try pipeline.addHandler(Handler { script(number, $0) })
                }
            }
            .bind(host: host, port: 0).get()
        channel.withLock { $0 = made }
        return made.localAddress?.port ?? 0
    }

    func stop() async throws {
        let made = channel.withLock { $0 }
        try await made?.close().get()
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let script: (Int) -> [Step]
        private var requests = 0
        private var bytes: [UInt8] = []

        init(_ script: @escaping (Int) -> [Step]) { self.script = script }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            bytes += unwrapInboundIn(data).readableBytesView
            // Requests of these tests have no body, or one of four bytes behind a post.
            while let end = bytes.firstRange(of: Array("\r\n\r\n".utf8))?.upperBound {
                let whole = bytes.first == UInt8(ascii: "P") ? end + 4 : end
                guard bytes.count >= whole else { return }
                bytes.removeFirst(whole)
                requests += 1
                for step in script(requests) { take(step, context) }
            }
        }

        private func take(_ step: Step, _ context: ChannelHandlerContext) {
            switch step {
            case .bytes(let text):
                context.writeAndFlush(NIOAny(ByteBuffer(string: text)), promise: nil)
            case .end: context.close(promise: nil)
            case .trickle:
                let channel = context.channel
                channel.eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(10)) {
                    task in
                    guard channel.isActive else { return task.cancel() }
                    channel.writeAndFlush(ByteBuffer(string: " "), promise: nil)
                }
            }
        }
    }
}

private func answer(_ text: String) -> ScriptedServer.Step {
    .bytes("HTTP/1.1 200 OK\r\ncontent-length: \(text.utf8.count)\r\n\r\n\(text)")
}

private func request(
    _ method: WebRequest.Method = .get, _ url: String, limit: Int = 1000,
    deadline: Duration = .seconds(240), isPublic: Bool = false, mayRepeat: Bool = false,
    keeps: Bool = false
) -> WebRequest {
    var request = WebRequest(
        method, url: url, body: method == .post ? Secret(Array("body".utf8)) : nil, answerLimitBytes: limit,
        deadline: deadline, publicAddressesOnly: isPublic)
    (request.mayRepeat, request.keepsConnection) = (mayRepeat, keeps)
    return request
}

private func code(_ fetch: HTTPSFetch, _ request: WebRequest) async -> WebError.Code? {
    do throws(WebError) {
        _ = try await fetch.fetch(request)
        return nil
    } catch { return error.code }
}

@Suite("Plain http to this machine", .timeLimit(.minutes(30)))
struct LoopbackFetchTests {
    private let fetch = HTTPSFetch(group: MultiThreadedEventLoopGroup.singleton, world: .live)

    @Test("Calls in turn share connections, whatever their methods", arguments: ["127.0.0.1", "localhost"])
    func kept(_ host: String) async throws {
        let server = ScriptedServer()
        let port = try await server.start { _, request in [answer("\(request)")] }
        // A connection goes back behind its answer, so that the next call may be before it.
        try await asked(for: "a connection that served each method") {
            for method in [WebRequest.Method.get, .post, .delete] {
                let given = try await fetch.fetch(request(method, "http://\(host):\(port)/"))
                #expect(given.status == 200)
                if given.body == Secret(Array("4".utf8)) { return true }
            }
            return false
        }
        try await server.stop()
    }

    @Test("Calls at one time have connections of their own, a bounded number of them")
    func atOnce() async throws {
        let server = ScriptedServer()
        let port = try await server.start { _, _ in [answer("ok")] }
        let url = "http://127.0.0.1:\(port)/"
        await withTaskGroup(of: WebError.Code?.self) { group in
            for _ in 0..<40 { group.addTask { await code(fetch, request(.get, url)) } }
            // Bound: each of the fetches has its deadline.
            for await code in group { #expect(code == nil) }
        }
        #expect(server.connections.value <= 8)
        try await server.stop()
    }

    @Test("A connection that the server ended between two calls costs a call that may be repeated nothing")
    func endedBetween() async throws {
        let server = ScriptedServer()
        let hasEnded = Noted(false)
        // Once it reads the second request of a connection and ends it without a word.
        let port = try await server.start { _, request in
            guard request == 2, !hasEnded.value else { return [answer("ok")] }
            hasEnded.set(true)
            return [.end]
        }
        try await asked(for: "a call over a connection that ends") {
            let url = "http://127.0.0.1:\(port)/"
            #expect(await code(fetch, request(.get, url, mayRepeat: true)) == nil)
            return hasEnded.value
        }
        try await server.stop()
    }

    @Test("What changes something, or empties a queue, is not repeated", arguments: [true, false])
    func notRepeated(_ isPost: Bool) async throws {
        let server = ScriptedServer()
        let port = try await server.start { _, request in request == 1 ? [answer("ok")] : [.end] }
        try await asked(for: "a call over a connection that ends") {
            let given = await code(fetch, request(isPost ? .post : .get, "http://127.0.0.1:\(port)/"))
            #expect(given == nil || given == .unreachable)
            return given == .unreachable
        }
        try await server.stop()
    }

    @Test("A server that ends every connection at once is asked twice and no more")
    func endsAlways() async throws {
        let server = ScriptedServer()
        let port = try await server.start { _, _ in [.end] }
        let url = "http://127.0.0.1:\(port)/"
        #expect(await code(fetch, request(.get, url, mayRepeat: true)) == .unreachable)
        #expect(server.connections.value == 2)
        try await server.stop()
    }

    @Test("An answer in chunks comes whole, and the connection goes on behind it")
    func chunks() async throws {
        let server = ScriptedServer()
        let port = try await server.start { _, _ in
            [
                .bytes("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"),
                .bytes("7;x=y\r\n, world\r\n"), .bytes("0\r\ntrailer: z\r\n\r\n")
            ]
        }
        var calls = 0
        try await asked(for: "a connection that is used again") {
            calls += 1
            let given = try await fetch.fetch(request(.get, "http://127.0.0.1:\(port)/"))
            #expect(given.body == Secret(Array("hello, world".utf8)))
            return server.connections.value < calls
        }
        try await server.stop()
    }

    @Test(
        "More bytes than were asked for are a fault, told or not",
        arguments: [
            "content-length: 1001\r\n\r\n" + String(repeating: "x", count: 1001),
            "transfer-encoding: chunked\r\n\r\n3e9\r\n" + String(repeating: "x", count: 1001)
                + "\r\n0\r\n\r\n",
            "connection: close\r\n\r\n" + String(repeating: "x", count: 1001)
        ])
    func tooLarge(_ rest: String) async throws {
        let server = ScriptedServer()
        // One that names no length ends with the connection.
        let end: [ScriptedServer.Step] = rest.hasPrefix("connection") ? [.end] : []
        let port = try await server.start { _, _ in [.bytes("HTTP/1.1 200 OK\r\n" + rest)] + end }
        let url = "http://127.0.0.1:\(port)/"
        #expect(await code(fetch, request(.get, url, limit: 1000)) == .answerTooLarge)
        #expect(await code(fetch, request(.get, url, limit: 1001)) == nil)
        try await server.stop()
    }

    @Test("A slow trickle ends with the deadline, before the head and behind it", arguments: [true, false])
    func trickle(_ hasHead: Bool) async throws {
        let server = ScriptedServer()
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n"
        let port = try await server.start { _, _ in [.bytes(hasHead ? head : "HTTP/1.1 200 "), .trickle] }
        let slow = request(
            .get, "http://127.0.0.1:\(port)/", limit: 2_000_000, deadline: .milliseconds(200), mayRepeat: true
        )
        #expect(await code(fetch, slow) == .deadlineExceeded)
        try await server.stop()
    }

    @Test(
        "What is no HTTP, or breaks off, is no answer",
        arguments: ["hello\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx"])
    func garbage(_ text: String) async throws {
        let server = ScriptedServer()
        let port = try await server.start { _, _ in [.bytes(text), .end] }
        #expect(await code(fetch, request(.get, "http://127.0.0.1:\(port)/")) == .unreachable)
        try await server.stop()
    }

    @Test("A redirect is an answer, never followed")
    func redirect() async throws {
        let server = ScriptedServer()
        let port = try await server.start { _, _ in
            [.bytes("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\n\r\n")]
        }
        let given = try await fetch.fetch(request(.get, "http://127.0.0.1:\(port)/"))
        #expect(given.status == 302 && server.connections.value == 1)
        try await server.stop()
    }

    @Test("Nobody who listens is unreachable")
    func nobody() async throws {
        let server = ScriptedServer()
        let port = try await server.start { _, _ in [] }
        try await server.stop()
        #expect(await code(fetch, request(.get, "http://127.0.0.1:\(port)/")) == .unreachable)
    }

    @Test(
        "Another machine is not asked without TLS",
        arguments: [
            "http://10.0.0.1/", "http://node.example/", "http://localhost.example/",
            "http://[2001:db8::1]:80/",
            "http://128.0.0.1/", "http://0.0.0.0/", "http://[::ffff:10.0.0.1]/"
        ])
    func elsewhere(_ url: String) async { #expect(await code(fetch, request(.get, url)) == .plainElsewhere) }

    @Test(
        "A URL that two parsers might read differently is malformed",
        arguments: [
            "http://", "http:///x", "http://127.0.0.1@a.example/", "http://a@127.0.0.1/", "http://127.1/",
            "http://2130706433/", "http://127.0.0.1:0/", "http://127.0.0.1\\@a.example/", "HTTP://127.0.0.1/"
        ])
    func malformed(_ url: String) async { #expect(await code(fetch, request(.get, url)) == .malformedURL) }

    @Test("A peer's URL leads to no server without TLS, on this machine least of all")
    func peers() async throws {
        let server = ScriptedServer()
        let port = try await server.start { _, _ in [answer("inside")] }
        let url = "http://127.0.0.1:\(port)/"
        #expect(await code(fetch, request(.get, url, isPublic: true)) == .malformedURL)
        #expect(server.connections.value == 0)
        try await server.stop()
    }
}

@Suite("https over connections that are kept where it is asked for", .timeLimit(.minutes(30)))
struct KeptFetchTests {
    /// Runs `body` with a server behind TLS, and a fetch that trusts it.
    private func with(
        _ script: @escaping @Sendable (Int, Int) -> [ScriptedServer.Step],
        _ body: (HTTPSFetch, _ url: String, ScriptedServer, ScriptedResolver) async throws -> Void
    ) async throws {
        let folder = try TemporaryFolder()
        _ = try folder.writeCertificate()
        let chain = try NIOSSLCertificate.fromPEMFile(folder.file("chain.pem"))
        let tls = try NIOSSLContext(
            configuration: .makeServerConfiguration(
                certificateChain: chain.map { .certificate($0) },
                privateKey: .privateKey(NIOSSLPrivateKey(file: folder.file("key.pem"), format: .pem))))
        let server = ScriptedServer()
        let port = try await server.start(tls: tls, script)
        let resolver = ScriptedResolver("127.0.0.1")
        let fetch = HTTPSFetch(
            WebOptions(extraAuthorities: [folder.file("chain.pem")]), resolver: resolver,
            group: MultiThreadedEventLoopGroup.singleton, world: .live)
        try await body(fetch, "https://localhost:\(port)/", server, resolver)
        try await server.stop()
        folder.remove()
    }

    @Test("Calls in turn share a connection; where it is not asked for, each has its own")
    func kept() async throws {
        try await with { _, request in
            [answer("\(request)")]
        } _: { fetch, url, server, resolver in
            // A connection goes back behind its answer, so that the next call may be before it.
            try await asked(for: "a connection that served five calls") {
                try await fetch.fetch(request(.post, url, keeps: true)).body == Secret(Array("5".utf8))
            }
            #expect(resolver.asked.value.count == 1)
            let before = server.connections.value
            for _ in 0..<3 { #expect(await code(fetch, request(.get, url)) == nil) }
            #expect(server.connections.value == before + 3)
        }
    }

    @Test("Calls at one time have a bounded number of connections")
    func atOnce() async throws {
        try await with { _, _ in
            [answer("ok")]
        } _: { fetch, url, server, _ in
            #expect(await code(fetch, request(.get, url, keeps: true)) == nil)
            await withTaskGroup(of: WebError.Code?.self) { group in
                for _ in 0..<40 { group.addTask { await code(fetch, request(.get, url, keeps: true)) } }
                // Bound: each of the fetches has its deadline.
                for await code in group { #expect(code == nil) }
            }
            #expect(server.connections.value <= 8)
        }
    }

    @Test(
        "A connection that ended between two calls costs only a call that is not to be repeated",
        arguments: [true, false])
    func endedBetween(_ mayRepeat: Bool) async throws {
        let hasEnded = Noted(false)
        let script = { @Sendable (_: Int, request: Int) -> [ScriptedServer.Step] in
            guard request == 2, !hasEnded.value else { return [answer("ok")] }
            hasEnded.set(true)
            return [.end]
        }
        try await with(script) { fetch, url, _, _ in
            try await asked(for: "a call over a connection that ends") {
                let given = await code(fetch, request(.get, url, mayRepeat: mayRepeat, keeps: true))
                #expect(given == nil || !mayRepeat && given == .unreachable)
                return hasEnded.value
            }
            // What was lost is lost; the next call is served.
            #expect(await code(fetch, request(.get, url, keeps: true)) == nil)
        }
    }

    @Test("More bytes than were asked for are a fault of the call alone")
    func faults() async throws {
        try await with { number, request in
            request == 1 && number == 1 ? [answer("ok")] : [answer(String(repeating: "x", count: 1001))]
        } _: { fetch, url, _, resolver in
            #expect(await code(fetch, request(.get, url, keeps: true)) == nil)
            #expect(await code(fetch, request(.get, url, limit: 1000, keeps: true)) == .answerTooLarge)
            #expect(await code(fetch, request(.get, url, limit: 1001, keeps: true)) == nil)
            #expect(resolver.asked.value.count == 1)
        }
    }
}
