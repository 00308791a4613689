import DialTesting
import EventLoops
import PushModel
import Simulators
import Testing

@testable import WebSocket

@Suite("The opening handshake", .timeLimit(.minutes(30))) struct UpgradeTests {
    @Test("the accept value is RFC 6455's own example") func accept() {
        #expect(UpgradeExchange.accept(for: "dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    }

    @Test("the request says what RFC 6455 asks for, and no more than it needs") func request() async throws {
        let port = try await WirePort()
        let client = try newClient()
        async let connecting = client.connect(try WebSocketAddress("ws://localhost:\(port.port)/in?x=1"))
        let wire = try await port.accept()
        let head = try #require(await wire.head())
        let lines = head.components()
        #expect(lines[0] == "GET /in?x=1 HTTP/1.1")
        #expect(
            lines.dropFirst().map { $0.prefix { $0 != ":" } } == [
                "Host", "Upgrade", "Connection", "Sec-WebSocket-Key", "Sec-WebSocket-Version"
            ])
        #expect(lines[1] == "Host: localhost:\(port.port)")
        #expect(lines[5] == "Sec-WebSocket-Version: 13")
        // 16 bytes in base64.
        #expect(key(of: head)?.count == 24)
        wire.send(try goodAnswer(to: head))
        try await connecting.abort()
        try await port.close()
    }

    struct Bad: Sendable, CustomTestStringConvertible {
        let name: String
        var answer: @Sendable (_ good: String) -> String
        var code = WebSocketError.Code.badUpgrade
        var status: Int?
        var testDescription: String { name }
    }

    private static func without(_ field: String) -> @Sendable (String) -> String {
        { good in
            good.components().filter { !$0.hasPrefix(field) }.joined(separator: "\r\n") + "\r\n\r\n"
        }
    }

    private static func with(_ line: String) -> @Sendable (String) -> String {
        { good in good.dropLast(2) + line + "\r\n\r\n" }
    }

    private static func swap(_ old: String, _ new: String) -> @Sendable (String) -> String {
        { good in
            guard let range = good.firstRange(of: old) else { return "" }
            return good.replacingSubrange(range, with: new)
        }
    }

    static let bad: [Bad] = [
        .init(
            name: "200", answer: { _ in "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" },
            code: .upgradeRefused, status: 200),
        .init(
            name: "403 with a body", answer: { _ in "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno" },
            code: .upgradeRefused, status: 403),
        .init(
            name: "301", answer: { _ in "HTTP/1.1 301 Moved\r\nLocation: ws://127.0.0.1:1/\r\n\r\n" },
            code: .upgradeRefused, status: 301),
        .init(name: "no accept", answer: without("Sec-WebSocket-Accept")),
        .init(name: "no upgrade", answer: without("Upgrade")),
        .init(name: "no connection", answer: without("Connection")),
        .init(name: "another accept", answer: swap("Sec-WebSocket-Accept: ", "Sec-WebSocket-Accept: A")),
        .init(name: "two accepts", answer: with("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")),
        .init(name: "another upgrade", answer: swap("Upgrade: websocket", "Upgrade: h2c")),
        .init(name: "another connection", answer: swap("Connection: Upgrade", "Connection: close")),
        .init(name: "a protocol nobody asked for", answer: with("Sec-WebSocket-Protocol: nostr")),
        .init(
            name: "an extension nobody asked for",
            answer: with("Sec-WebSocket-Extensions: permessage-deflate")),
        .init(name: "HTTP/1.0", answer: swap("HTTP/1.1", "HTTP/1.0")),
        .init(name: "a status of two digits", answer: swap(" 101 ", " 10 ")),
        .init(name: "a folded line", answer: with("X: a\r\n b")),
        .init(name: "a field without a colon", answer: with("X")),
        .init(name: "a field without a name", answer: with(": x")),
        .init(name: "a space before the colon", answer: swap("Upgrade:", "Upgrade :")),
        .init(name: "a bare line feed", answer: with("X: a\nY: b")),
        .init(name: "a NUL", answer: with("X: a\0")),
        .init(name: "no HTTP at all", answer: { _ in "SSH-2.0-OpenSSH_9.2\r\n\r\n" }),
        .init(name: "an end without an answer", answer: { _ in "HTTP/1.1 101 Swi" }),
        .init(name: "a head without end", answer: with("X: " + String(repeating: "x", count: 16 << 10)))
    ]

    @Test("an answer that is no upgrade fails", arguments: bad) func refused(row: Bad) async throws {
        let port = try await WirePort()
        let client = try newClient()
        async let failed = failure(client, "ws://127.0.0.1:\(port.port)")
        let wire = try await port.accept()
        let head = try #require(await wire.head())
        wire.send(row.answer(try goodAnswer(to: head)))
        if row.name.hasPrefix("an end") { wire.close() }
        let error = await failed
        #expect(error?.code == row.code)
        #expect(error?.status == row.status)
        #expect(await wire.ends())
        try await port.close()
    }

    @Test("spelling that RFC 9110 leaves free is taken, and frames may follow at once") func free()
        async throws
    {
        let port = try await WirePort()
        let client = try newClient()
        async let connecting = client.connect(try WebSocketAddress("ws://127.0.0.1:\(port.port)"))
        let wire = try await port.accept()
        let asked = try #require(await wire.head())
        let word = try #require(key(of: asked))
        let head =
            "HTTP/1.1 101\r\nSERVER: x\r\nupgrade:WebSocket\r\nconnection: keep-alive , UPGRADE\r\n"
            + "sec-websocket-accept: \t\(UpgradeExchange.accept(for: word)) \r\nX: ż\r\n\r\n"
        wire.send(Array(head.utf8) + RawFrame(RawFrame.text, "at once").bytes)
        let connection = try await connecting
        try await expectNext(connection, WebSocketMessage("at once"))
        connection.abort()
        try await port.close()
    }

    @Test("a port where nobody listens is unreachable") func nobody() async throws {
        let port = try #require(HeldPort(0, isSixth: false))
        let error = await failure(try newClient(), "ws://127.0.0.1:\(port.number)")
        #expect(error?.code == .unreachable)
        withExtendedLifetime(port) {}
    }

    @Test("a name that cannot exist is unreachable, and an onion name is not even looked up")
    func names() async throws {
        #expect(await failure(try newClient(), "ws://relay.invalid")?.code == .unreachable)
        #expect(await failure(try newClient(), "ws://relay.onion")?.code == .onionNeedsProxy)
    }

    @Test("a server that accepts and says nothing is given up") func deadline() async throws {
        let port = try await WirePort()
        var limits = WebSocketLimits.patient
        // Long enough to get as far as the port on any machine: it is the answer that does not come.
        limits.connectDeadline = .seconds(2)
        let client = try newClient(limits)
        async let failed = failure(client, "ws://127.0.0.1:\(port.port)")
        let wire = try await port.accept()
        #expect(await failed?.code == .connectDeadline)
        _ = await wire.head()
        #expect(await wire.ends())
        try await port.close()
    }

    @Test("a cancelled attempt ends its socket") func cancelled() async throws {
        let port = try await WirePort()
        let client = try newClient()
        let attempt = Task { await failure(client, "ws://127.0.0.1:\(port.port)") }
        let wire = try await port.accept()
        _ = await wire.head()
        attempt.cancel()
        #expect(await attempt.value?.code == .cancelled)
        #expect(await wire.ends())
        try await port.close()
    }

    @Test("a CA file without a certificate is refused") func authority() {
        #expect(throws: WebSocketError(.badCertificateFile)) { try newClient(certificates: []) }
        #expect(throws: WebSocketError(.badCertificateFile)) { try newClient(certificates: Array("x".utf8)) }
    }
}

extension String {
    /// The lines of a head, without the empty one at its end.
    func components() -> [String] {
        split(separator: "\r\n" as Character).map(String.init)
    }

    func replacingSubrange(_ range: Range<Index>, with text: String) -> String {
        var copy = self
        copy.replaceSubrange(range, with: text)
        return copy
    }
}
