import EventLoops
import NIOCore
import NIOPosix
import PushModel
import PushTesting
import Testing

@testable import WebSocket

extension WebSocketLimits {
    /// Deadlines that only a peer which does not answer at all can miss, however loaded the machine is. A test
    /// of a deadline sets that one by itself.
    static var patient: WebSocketLimits {
        var limits = WebSocketLimits()
        limits.connectDeadline = .seconds(600)
        limits.pingAfterSilence = .seconds(600)
        limits.pongDeadline = .seconds(600)
        limits.writeDeadline = .seconds(600)
        limits.closeDeadline = .seconds(600)
        return limits
    }
}

extension WebSocketConnection {
    /// ``receive()``, waited for as long as a test waits for anything.
    func next(file: String = #fileID, line: Int = #line) async throws -> WebSocketMessage? {
        try await bounded("a message, or the connection's end", file: file, line: line) {
            try await self.receive()
        }
    }
}

func newExecutor() -> LoopExecutor { LoopExecutor(MultiThreadedEventLoopGroup.singleton.next()) }

func newClient(
    _ limits: WebSocketLimits = .patient, certificates: [UInt8]? = nil, world: World = .live
) throws -> WebSocketClient {
    try WebSocketClient(executor: newExecutor(), limits: limits, certificates: certificates, world: world)
}

/// The `Sec-WebSocket-Key` of a request's head.
func key(of head: String) -> String? {
    head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("sec-websocket-key:") }
        .map { String($0.dropFirst(18)).filter { $0 != " " } }
}

func goodAnswer(to head: String) throws -> String {
    let word = try #require(key(of: head))
    return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Accept: \(UpgradeExchange.accept(for: word))\r\n\r\n"
}

/// Runs `body` with a client's connection and the raw server at its other end.
func withPair<Result: Sendable>(
    _ limits: WebSocketLimits = .patient, world: World = .live,
    _ body: @Sendable (WebSocketConnection, Wire) async throws -> Result
) async throws -> Result {
    let port = try await WirePort()
    let client = try newClient(limits, world: world)
    let address = try WebSocketAddress("ws://127.0.0.1:\(port.port)/")
    async let connecting = client.connect(address)
    let wire = try await port.accept()
    let head = try #require(await wire.head())
    wire.send(try goodAnswer(to: head))
    let connection = try await connecting
    let result = try await body(connection, wire)
    connection.abort()
    wire.close()
    try await port.close()
    return result
}

/// What `receive()` throws, or `nil`.
func failure(_ connection: WebSocketConnection) async -> WebSocketError.Code? {
    do throws(WebSocketError) {
        while try await connection.receive() != nil {}
        return nil
    } catch {
        return error.code
    }
}

/// What connecting throws, or `nil`.
func failure(
    _ client: WebSocketClient, _ url: String, proxy: SOCKS5Proxy? = nil
) async -> WebSocketError? {
    do throws(WebSocketError) {
        let connection = try await client.connect(try WebSocketAddress(url), proxy: proxy)
        connection.abort()
        return nil
    } catch {
        return error
    }
}

/// Expects a message, or with `nil` the end.
func expectNext(
    _ connection: WebSocketConnection, _ message: WebSocketMessage?,
    sourceLocation: SourceLocation = #_sourceLocation
) async throws {
    let next = try await connection.next()
    #expect(next == message, sourceLocation: sourceLocation)
}
