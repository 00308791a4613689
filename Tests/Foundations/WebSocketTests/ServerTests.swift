import NIOCore
import PushModel
import Simulators
import Testing

@testable import WebSocket

@Suite("The server's side", .timeLimit(.minutes(30))) struct ServerTests {
    private let request =
        "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"

    private func open(_ server: EchoServer) async throws -> Wire {
        let wire = try await Wire.connect(port: server.port)
        wire.send(request)
        let head = try #require(await wire.head())
        #expect(head.hasPrefix("HTTP/1.1 101 "))
        #expect(head.lowercased().contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="))
        return wire
    }

    @Test("masked frames are heard and answered unmasked") func echo() async throws {
        let server = try await EchoServer()
        let wire = try await open(server)
        for frame in [RawFrame(RawFrame.text, "ż"), RawFrame(RawFrame.binary, [0, 255])] {
            wire.send(frame.masked)
            #expect(await wire.frame() == frame)
        }
        wire.send(RawFrame(RawFrame.ping, "p").masked)
        #expect(await wire.frame() == RawFrame(RawFrame.pong, "p"))
        wire.send(RawFrame.close(1000).masked)
        #expect(await wire.frame() == .close(1000))
        #expect(await wire.ends())
        try await server.close()
    }

    @Test("a frame without a mask breaks the rules") func unmasked() async throws {
        let server = try await EchoServer()
        let wire = try await open(server)
        wire.send(RawFrame(RawFrame.text, "bare"))
        #expect(await wire.frame()?.code == 1002)
        wire.send(RawFrame.close(1002).masked)
        #expect(await wire.ends())
        try await server.close()
    }

    @Test("a request that asks for no WebSocket, or may not have one, gets HTTP") func plain() async throws {
        let server = try await EchoServer()
        for head in [
            "GET / HTTP/1.1\r\nHost: x\r\n\r\n", request.replacing("GET / ", with: "GET /no "),
            request.replacing("Version: 13", with: "Version: 8"),
            request.replacing("dGhlIHNhbXBsZSBub25jZQ==", with: "dGhl\r\nSec-WebSocket-Key: c2Ft")
        ] {
            let wire = try await Wire.connect(port: server.port)
            wire.send(head)
            #expect(await wire.head()?.hasPrefix("HTTP/1.1 101") == false)
            wire.close()
        }
        try await server.close()
    }

    @Test("client and server of one codec hold a conversation") func both() async throws {
        let server = try await EchoServer()
        let client = try newClient()
        let connection = try await client.connect(try WebSocketAddress("ws://127.0.0.1:\(server.port)"))
        for count in [0, 1, 125, 126, 65_535, 65_536, 262_144] {
            let message = WebSocketMessage.text(ByteBuffer(repeating: 0x61, count: count))
            try await connection.send(message)
            try await expectNext(connection, message)
        }
        #expect(try await connection.ping() >= .zero)
        await connection.close()
        try await expectNext(connection, nil)
        try await server.close()
    }
}

@Suite("WebSocket over TLS", .timeLimit(.minutes(30))) struct SecureTests {
    @Test(
        "the sandbox's authority is trusted where it is given, by name and by address",
        arguments: ["localhost", "127.0.0.1"])
    func trusted(host: String) async throws {
        let authority = try CertificateAuthority()
        let server = try await EchoServer(authority: authority)
        let client = try newClient(certificates: Array(authority.certificatePEM.utf8))
        let connection = try await client.connect(try WebSocketAddress("wss://\(host):\(server.port)"))
        try await connection.send(text: "sealed")
        try await expectNext(connection, WebSocketMessage("sealed"))
        await connection.close()
        try await server.close()
    }

    @Test("another authority, and the system's, do not vouch for it") func stranger() async throws {
        let server = try await EchoServer(authority: try CertificateAuthority())
        let other = try CertificateAuthority()
        let url = "wss://localhost:\(server.port)"
        for client in [
            try newClient(), try newClient(certificates: Array(other.certificatePEM.utf8))
        ] {
            #expect(await failure(client, url)?.code == .tlsFailed)
        }
        try await server.close()
    }

    @Test("a certificate for the address does not stand for another name") func name() async throws {
        let authority = try CertificateAuthority()
        let server = try await EchoServer(authority: authority)
        let proxy = try await SOCKSServer()
        let client = try newClient(certificates: Array(authority.certificatePEM.utf8))
        for (host, code) in [("relay.invalid", WebSocketError.Code.tlsFailed), ("localhost", nil)] {
            async let serving: Void = proxy.serveOne(leadingTo: server.port)
            let error = await failure(
                client, "wss://\(host)", proxy: SOCKS5Proxy(host: "127.0.0.1", port: proxy.number))
            #expect(error?.code == code)
            try await serving
        }
        try await proxy.close()
        try await server.close()
    }

    @Test("a server that speaks no TLS, or ends in the handshake, is told as such") func bare() async throws {
        let plain = try await EchoServer()
        #expect(await failure(try newClient(), "wss://localhost:\(plain.port)")?.code == .tlsFailed)
        try await plain.close()
        let port = try await WirePort()
        let client = try newClient()
        async let failed = failure(client, "wss://localhost:\(port.port)")
        let wire = try await port.accept()
        _ = await wire.take(5)
        wire.close()
        #expect(await failed?.code == .tlsFailed)
        try await port.close()
    }
}
