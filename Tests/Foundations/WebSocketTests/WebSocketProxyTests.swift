import PushModel
import Testing

@testable import WebSocket

@Suite("Through a SOCKS proxy", .timeLimit(.minutes(30))) struct WebSocketProxyTests {
    private func proxy(_ server: SOCKSServer, _ credentials: SOCKS5Proxy.Credentials? = nil) -> SOCKS5Proxy {
        SOCKS5Proxy(host: "127.0.0.1", port: server.number, credentials: credentials)
    }

    /// Connects through the proxy to a raw server, says a word, and tells how the proxy was asked.
    private func ask(_ url: String, _ credentials: SOCKS5Proxy.Credentials?) async throws -> SOCKSServer.Asked
    {
        let server = try await SOCKSServer()
        let port = try await WirePort()
        let client = try newClient()
        async let serving: Void = server.serveOne(leadingTo: port.port)
        async let connecting = client.connect(try WebSocketAddress(url), proxy: proxy(server, credentials))
        let wire = try await port.accept()
        wire.send(try goodAnswer(to: try #require(await wire.head())))
        let connection = try await connecting
        try await connection.send(text: "through")
        #expect(await wire.frame()?.payload == Array("through".utf8))
        connection.abort()
        wire.close()
        try await serving
        try await server.close()
        try await port.close()
        return try #require(server.asked.first)
    }

    @Test(
        "the proxy alone looks names up, even such as nobody else could",
        arguments: ["relay.invalid", "abcdefghijklmnop.onion", "localhost"])
    func names(host: String) async throws {
        let asked = try await ask("ws://\(host):8080/x", nil)
        #expect(asked == .init(kind: 3, host: Array(host.utf8), port: 8080))
    }

    @Test("an address goes as an address") func addresses() async throws {
        #expect(try await ask("ws://192.0.2.7", nil) == .init(kind: 1, host: [192, 0, 2, 7], port: 80))
        let six = try await ask("ws://[2001:db8::7]:81", nil)
        #expect(
            six
                == .init(
                    kind: 4, host: [0x20, 1, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [7], port: 81))
    }

    @Test("credentials of its own isolate each connection, and nothing weaker is offered") func isolation()
        async throws
    {
        var seen: Set<String> = []
        for _ in 0..<3 {
            let asked = try await ask("ws://relay.invalid", .isolated(.live))
            seen.insert("\(asked.username ?? "") \(asked.password ?? "")")
        }
        #expect(seen.count == 3)
        let server = try await SOCKSServer(.init(method: [5, 0xFF]))
        let client = try newClient()
        async let serving: Void = server.serveOne(leadingTo: 0)
        let error = await failure(client, "ws://relay.invalid", proxy: proxy(server, .isolated(.live)))
        #expect(error?.code == .proxyRefused)
        try await serving
        #expect(server.methods == [[2]])
        try await server.close()
    }

    @Test("credentials hold 1 to 255 bytes") func credentials() {
        func secret(_ count: Int) -> Secret { Secret([UInt8](repeating: 0x61, count: count)) }
        #expect(SOCKS5Proxy.Credentials(username: secret(1), password: secret(255)) != nil)
        #expect(SOCKS5Proxy.Credentials(username: secret(0), password: secret(1)) == nil)
        #expect(SOCKS5Proxy.Credentials(username: secret(1), password: secret(0)) == nil)
        #expect(SOCKS5Proxy.Credentials(username: secret(256), password: secret(1)) == nil)
        #expect(SOCKS5Proxy.Credentials(username: secret(1), password: secret(256)) == nil)
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        let name: String
        let script: SOCKSServer.Script
        var hasCredentials = false
        var testDescription: String { name }
    }

    static let refusals: [Refusal] =
        [
            .init(name: "no method fits", script: .init(method: [5, 0xFF])),
            .init(name: "a method nobody offered", script: .init(method: [5, 2])),
            .init(
                name: "a weaker method than asked for", script: .init(method: [5, 0]), hasCredentials: true),
            .init(name: "SOCKS 4", script: .init(method: [4, 0])),
            .init(name: "HTTP", script: .init(method: Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8))),
            .init(name: "a wrong password", script: .init(login: [1, 1]), hasCredentials: true),
            .init(name: "a login of another version", script: .init(login: [5, 0]), hasCredentials: true),
            .init(
                name: "an address kind of nobody", script: .init(answer: [5, 0, 0, 9, 0, 0], leadsOn: false)),
            .init(
                name: "another version", script: .init(answer: [4, 0, 0, 1, 0, 0, 0, 0, 0, 0], leadsOn: false)
            )
        ]
        + (1...9).map { reply in
            .init(
                name: "reply \(reply)",
                script: .init(answer: [5, reply, 0, 1, 0, 0, 0, 0, 0, 0], leadsOn: false))
        }

    @Test("a proxy that refuses or speaks otherwise fails the attempt", arguments: refusals)
    func refused(row: Refusal) async throws {
        let server = try await SOCKSServer(row.script)
        let client = try newClient()
        async let serving: Void = server.serveOne(leadingTo: 0)
        let credentials = row.hasCredentials ? SOCKS5Proxy.Credentials.isolated(.live) : nil
        let error = await failure(client, "ws://relay.invalid", proxy: proxy(server, credentials))
        #expect(error?.code == .proxyRefused)
        try await serving
        try await server.close()
    }

    @Test("a proxy that says nothing is given up by its own deadline, and one that is not there at once")
    func silent() async throws {
        var limits = WebSocketLimits.patient
        limits.proxiedConnectDeadline = .milliseconds(100)
        let port = try await WirePort()
        let proxy = SOCKS5Proxy(host: "127.0.0.1", port: port.port)
        #expect(
            await failure(try newClient(limits), "ws://relay.invalid", proxy: proxy)?.code == .connectDeadline
        )
        try await port.close()
        #expect(await failure(try newClient(), "ws://relay.invalid", proxy: proxy)?.code == .unreachable)
    }
}
