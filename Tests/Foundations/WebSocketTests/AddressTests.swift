import Testing

@testable import WebSocket

@Suite("WebSocket addresses", .timeLimit(.minutes(30))) struct AddressTests {
    struct Good: Sendable {
        let url: String
        let isSecure: Bool
        let host: String
        let port: Int
        let target: String
        let authority: String
    }

    static let good: [Good] = [
        .init(
            url: "wss://relay.example.com", isSecure: true, host: "relay.example.com", port: 443, target: "/",
            authority: "relay.example.com"),
        .init(
            url: "WSS://Relay.Example.COM:443/", isSecure: true, host: "relay.example.com", port: 443,
            target: "/", authority: "relay.example.com"),
        .init(
            url: "wss://relay.example.com:8443/Inbox?a=B", isSecure: true, host: "relay.example.com",
            port: 8443, target: "/Inbox?a=B", authority: "relay.example.com:8443"),
        .init(
            url: "ws://127.0.0.1:6969", isSecure: false, host: "127.0.0.1", port: 6969, target: "/",
            authority: "127.0.0.1:6969"),
        .init(
            url: "ws://[::1]:80?x", isSecure: false, host: "::1", port: 80, target: "/?x",
            authority: "[::1]"),
        .init(
            url: "ws://abcdefghij.onion", isSecure: false, host: "abcdefghij.onion", port: 80, target: "/",
            authority: "abcdefghij.onion")
    ]

    @Test("a URL is taken apart", arguments: good) func parts(row: Good) throws {
        let address = try WebSocketAddress(row.url)
        #expect(address.isSecure == row.isSecure)
        #expect(address.host == row.host)
        #expect(address.port == row.port)
        #expect(address.target == row.target)
        #expect(address.authority == row.authority)
    }

    @Test(
        "what two parsers could read in two ways is refused",
        arguments: [
            "", "wss://", "wss:///path", "https://relay.example.com", "relay.example.com",
            "wss://user@relay.example.com", "wss://user:word@relay.example.com", "wss://relay.example.com#x",
            "wss://relay.example.com\\@other.example.com", "wss://relay .example.com",
            "wss://relay.example.com/a b", "wss://relay.example.com/\r\nX: y", "wss://rełay.example.com",
            "wss://relay..example.com", "wss://-relay.example.com", "wss://relay.example.com.",
            "wss://127.1", "wss://0x7f.1", "wss://1.2.3.4.5", "wss://256.1.1.1", "wss://[::1",
            "wss://[1.2.3.4]",
            "wss://[::1]x", "wss://relay.example.com:", "wss://relay.example.com:0",
            "wss://relay.example.com:65536", "wss://relay.example.com:+443", "wss://relay.example.com:443x"
        ])
    func refused(url: String) {
        #expect(throws: WebSocketError(.malformedURL)) { try WebSocketAddress(url) }
    }

    @Test("a URL has a bound") func long() throws {
        let room = WebSocketAddress.urlBytes - "wss://a.example/".utf8.count
        _ = try WebSocketAddress("wss://a.example/" + String(repeating: "x", count: room))
        #expect(throws: WebSocketError(.malformedURL)) {
            try WebSocketAddress("wss://a.example/" + String(repeating: "x", count: room + 1))
        }
    }

    @Test("onion names and this machine are known") func kinds() throws {
        #expect(try WebSocketAddress("ws://a.b.onion").isOnion)
        #expect(try !WebSocketAddress("ws://onion.example").isOnion)
        #expect(try WebSocketAddress("ws://localhost:1").isLoopback)
        #expect(try WebSocketAddress("ws://127.9.9.9").isLoopback)
        #expect(try WebSocketAddress("ws://[::1]").isLoopback)
        #expect(try !WebSocketAddress("ws://localhost.example").isLoopback)
    }
}
