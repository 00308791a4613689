import NIOCore
import PushModel
import PushTesting
import Testing

@testable import WebSocket

@Suite("Farewells", .timeLimit(.minutes(30))) struct CloseTests {
    @Test("a server's Close is echoed, and the reader is told the end after what came before it")
    func server() async throws {
        try await withPair { connection, wire in
            wire.send(RawFrame(RawFrame.text, "last words"))
            wire.send(.close(1001, Array("restart".utf8)))
            wire.send(RawFrame(RawFrame.text, "never"))
            try await expectNext(connection, WebSocketMessage("last words"))
            try await expectNext(connection, nil)
            try await expectNext(connection, nil)
            #expect(await wire.frame()?.code == 1001)
            await #expect(throws: WebSocketError(.closed)) { try await connection.send(text: "late") }
            await #expect(throws: WebSocketError(.closed)) { try await connection.ping() }
        }
    }

    @Test("a Close without a code is echoed without one") func empty() async throws {
        try await withPair { connection, wire in
            wire.send(RawFrame(RawFrame.close))
            try await expectNext(connection, nil)
            #expect(await wire.frame() == RawFrame(RawFrame.close, isMasked: true))
        }
    }

    @Test(
        "codes of the registry and of applications are farewells",
        arguments: [1000, 1003, 1011, 1014, 3000, 4999])
    func codes(code: UInt16) async throws {
        try await withPair { connection, wire in
            wire.send(.close(code))
            try await expectNext(connection, nil)
            #expect(await wire.frame()?.code == code)
        }
    }

    @Test("a client says its code once, waits for the answer, and takes no more messages")
    func client() async throws {
        try await withPair { connection, wire in
            async let closing: Void = connection.close(.goingAway)
            #expect(await wire.frame()?.code == 1001)
            wire.send(RawFrame(RawFrame.text, "crossed"))
            wire.send(RawFrame(RawFrame.ping, "crossed"))
            wire.send(.close(1001))
            await closing
            try await expectNext(connection, nil)
            await connection.close()
            wire.close()
        }
    }

    @Test("a client does not wait for ever for an answer") func unanswered() async throws {
        var limits = WebSocketLimits.patient
        limits.closeDeadline = .milliseconds(50)
        try await withPair(limits) { connection, wire in
            await connection.close()
            #expect(await wire.frame()?.code == 1000)
            #expect(await wire.ends())
        }
    }

    @Test("a stream that ends without a farewell is told apart from one with") func lost() async throws {
        try await withPair { connection, wire in
            wire.send(RawFrame(RawFrame.text, "half", flags: 0))
            wire.close()
            #expect(await failure(connection) == .lost)
            #expect(await failure(connection) == .lost)
        }
    }

    @Test("a client that asks and hears nothing gives the server up") func silence() async throws {
        var limits = WebSocketLimits.patient
        limits.pingAfterSilence = .milliseconds(40)
        limits.pongDeadline = .milliseconds(40)
        try await withPair(limits) { connection, wire in
            #expect(await failure(connection) == .silent)
            #expect(await wire.frame()?.opcode == RawFrame.ping)
            #expect(await wire.ends())
        }
    }

    @Test("half of the way there a user is told, who may know what the server does answer") func doubt()
        async throws
    {
        var limits = WebSocketLimits.patient
        limits.pingAfterSilence = .milliseconds(20)
        limits.pongDeadline = .seconds(20)
        let clock = ManualClock()
        try await withPair(limits, world: clock.world(seed: 1)) { connection, wire in
            #expect(!connection.isDoubted)
            clock.advance(by: .milliseconds(20))
            // Its PING.
            #expect(await wire.frame()?.opcode == RawFrame.ping)
            clock.advance(by: .seconds(10))
            try await asked(for: "a doubt") { connection.isDoubted }
            wire.send(RawFrame(RawFrame.text, "alive"))
            try await expectNext(connection, WebSocketMessage("alive"))
            #expect(!connection.isDoubted)
        }
    }

    @Test("a server that answers every PING is not given up") func life() async throws {
        var limits = WebSocketLimits.patient
        limits.pingAfterSilence = .milliseconds(20)
        try await withPair(limits) { connection, wire in
            for _ in 0..<5 {
                let ping = try #require(await wire.frame())
                #expect(ping.opcode == RawFrame.ping)
                wire.send(RawFrame(RawFrame.pong, ping.payload))
            }
            wire.send(RawFrame(RawFrame.text, "alive"))
            try await expectNext(connection, WebSocketMessage("alive"))
        }
    }

    @Test("a caller's PING is answered by its own PONG or a later one, and by no other") func ping()
        async throws
    {
        try await withPair { connection, wire in
            async let first = connection.ping()
            let one = try #require(await wire.frame())
            async let second = connection.ping()
            let two = try #require(await wire.frame())
            wire.send(RawFrame(RawFrame.pong, "another"))
            wire.send(RawFrame(RawFrame.pong, two.payload))
            #expect(try await first >= .zero)
            #expect(try await second >= .zero)
            #expect(one.payload != two.payload)
        }
    }
}
