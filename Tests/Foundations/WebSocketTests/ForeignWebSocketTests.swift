import Foundation
import NIOCore
import Testing

@testable import WebSocket

/// Runs against the echo that `SEALBELL_ECHO` names: what `make interop` does with a server that others wrote.
@Suite("Our client at a foreign WebSocket server", .timeLimit(.minutes(30)))
struct ForeignWebSocketTests {
    static let url = ProcessInfo.processInfo.environment["SEALBELL_ECHO"]

    private func join() async throws -> WebSocketConnection {
        try await newClient().connect(try WebSocketAddress(try #require(Self.url)))
    }

    @Test("messages of every form of length come back", .enabled(if: url != nil)) func echo() async throws {
        let connection = try await join()
        for count in [0, 1, 125, 126, 127, 65_535, 65_536, 262_144] {
            let text = WebSocketMessage.text(ByteBuffer(repeating: 0x7A, count: count))
            try await connection.send(text)
            try await expectNext(connection, text)
            let binary = WebSocketMessage.binary(ByteBuffer(repeating: 0xFF, count: count))
            try await connection.send(binary)
            try await expectNext(connection, binary)
        }
        try await connection.send(text: "zażółć 🔔")
        try await expectNext(connection, WebSocketMessage("zażółć 🔔"))
        let span = try await connection.ping()
        #expect(span >= .zero)
        await connection.close()
        try await expectNext(connection, nil)
    }

    @Test("the server's farewell is an end in good order", .enabled(if: url != nil)) func close() async throws
    {
        let connection = try await join()
        try await connection.send(text: "close")
        try await expectNext(connection, nil)
    }
}
