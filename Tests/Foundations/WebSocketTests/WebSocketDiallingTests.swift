import DialTesting
import Dialling
import EventLoops
import NIOCore
import NIOPosix
import PushModel
import PushTesting
import Simulators
import Testing

@testable import WebSocket

/// A relay, or a proxy to it, whose name has two addresses, of which one is dead.
@Suite("A relay of two addresses", .timeLimit(.minutes(30))) struct WebSocketDiallingTests {
    static let orders = DeadAddress.Kind.allCases.flatMap { kind in [(kind, true), (kind, false)] }

    private func expectEcho(
        _ kind: DeadAddress.Kind, _ isDeadFirst: Bool, isSecure: Bool = false,
        on group: MultiThreadedEventLoopGroup = .singleton
    ) async throws {
        let authority = isSecure ? try CertificateAuthority() : nil
        let server = try await EchoServer(authority: authority, on: group)
        let dead = try await group.next().submit { try DeadAddress(kind, port: server.port) }.get()
        let client = try WebSocketClient(
            executor: LoopExecutor(group.next()), limits: .patient,
            certificates: authority.map { Array($0.certificatePEM.utf8) },
            dialling: .swift(isDeadFirst ? [dead.address, .here] : [.here, dead.address]))
        let scheme = isSecure ? "wss" : "ws"
        let address = try WebSocketAddress("\(scheme)://localhost:\(server.port)/")
        let connection = try await bounded("a connection") { try await client.connect(address) }
        try await connection.send(text: "through")
        try await expectNext(connection, .text(ByteBuffer(string: "through")))
        connection.abort()
        try await server.close()
    }

    @Test("it is reached by the good one, whichever comes first", arguments: orders, [false, true])
    func direct(_ order: (DeadAddress.Kind, Bool), _ isSecure: Bool) async throws {
        try await expectEcho(order.0, order.1, isSecure: isSecure)
    }

    @Test(
        "it is in a network without IPv6", .enabled(if: BareNetwork.refusal == nil, "needs a namespace"),
        arguments: orders, [false, true])
    func withoutIPv6(_ order: (DeadAddress.Kind, Bool), _ isSecure: Bool) async throws {
        try await BareNetwork.with { group in
            try await expectEcho(order.0, order.1, isSecure: isSecure, on: group)
        }
    }

    @Test("a SOCKS proxy is, and the target's name still goes to it alone", arguments: orders)
    func proxied(_ kind: DeadAddress.Kind, _ isDeadFirst: Bool) async throws {
        let proxy = try await SOCKSServer()
        let server = try await EchoServer()
        let dead = try DeadAddress(kind, port: proxy.number)
        let options = DialOptions.swift(isDeadFirst ? [dead.address, .here] : [.here, dead.address])
        let client = try WebSocketClient(executor: newExecutor(), limits: .patient, dialling: options)
        async let serving: Void = proxy.serveOne(leadingTo: server.port)
        let connection = try await bounded("a connection") {
            try await client.connect(
                try WebSocketAddress("ws://relay.invalid/"),
                proxy: SOCKS5Proxy(host: "proxy.test", port: proxy.number))
        }
        try await connection.send(text: "through")
        try await expectNext(connection, .text(ByteBuffer(string: "through")))
        connection.abort()
        try await serving
        #expect((options.resolver as? NamedAddresses)?.asked == ["proxy.test"])
        try await proxy.close()
        try await server.close()
    }

    @Test("an address that refuses the upgrade makes room for the other, and is told if there is none")
    func refused() async throws {
        let port = try await WirePort()
        let server = try await EchoServer(host: "127.0.0.9", port: port.port)
        let other = IPAddress(v4: 0x7F00_0009)
        // Nothing but a failure makes the next address begin.
        for addresses in [[.here, other], [.here]] {
            let client = try WebSocketClient(
                executor: newExecutor(), limits: .patient, dialling: .patient(addresses))
            let address = try WebSocketAddress("ws://localhost:\(port.port)/")
            async let outcome = Self.code(client, address)
            let wire = try await port.accept()
            _ = await wire.head()
            wire.send("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            #expect(await outcome == (addresses.count == 2 ? nil : .upgradeRefused))
            wire.close()
        }
        try await server.close()
        try await port.close()
    }

    private static func code(
        _ client: WebSocketClient, _ address: WebSocketAddress
    ) async -> WebSocketError.Code? {
        do throws(WebSocketError) {
            try await client.connect(address).abort()
            return nil
        } catch { return error.code }
    }
}
