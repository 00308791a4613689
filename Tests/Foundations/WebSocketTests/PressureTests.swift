import NIOCore
import PushModel
import Synchronization
import Testing

@testable import WebSocket

@Suite("Pressure both ways", .timeLimit(.minutes(30))) struct PressureTests {
    @Test("a reader that does not read stops the socket, and gets everything later") func reader()
        async throws
    {
        let limits = WebSocketLimits.patient
        let frame = RawFrame(RawFrame.binary, [UInt8](repeating: 5, count: 16_000)).bytes
        let count = 1_000
        try await withPair(limits) { connection, wire in
            wire.send([UInt8](repeatElement(frame, count: count).joined()))
            // 16 MB: more than both kernels' buffers hold, so the bound is reached and the rest waits outside.
            try await connection.held(until: { $0.bytes >= limits.readAheadBytes })
            for number in 0..<count {
                let message = try await connection.next()
                #expect(message?.count == 16_000, "message \(number)")
                // One reading of the socket may come on top: four buffers of 64 KiB.
                #expect(await connection.held().bytes <= limits.readAheadBytes + 4 * 65_536 + 16_000)
            }
        }
    }

    @Test("small messages are bounded by their number") func small() async throws {
        let limits = WebSocketLimits.patient
        let frame = RawFrame(RawFrame.binary, [1]).bytes
        // Half as many again as the bound below.
        let count = 165_000
        try await withPair(limits) { connection, wire in
            wire.send([UInt8](repeatElement(frame, count: count).joined()))
            try await connection.held(until: { $0.messages >= limits.readAheadMessages })
            for _ in 0..<count / 100 {
                let message = try await connection.next()
                #expect(message?.count == 1)
                #expect(
                    await connection.held().messages <= limits.readAheadMessages + 5 * 65_536 / frame.count)
            }
        }
    }

    @Test("a server is not asked for signs of life that nobody would read") func rest() async throws {
        var limits = WebSocketLimits.patient
        limits.pingAfterSilence = .milliseconds(200)
        limits.readAheadMessages = 2
        let bounds = limits
        try await withPair(bounds) { connection, wire in
            wire.send(RawFrame(RawFrame.text, "one"))
            wire.send(RawFrame(RawFrame.text, "two"))
            try await connection.held(until: { $0.messages == 2 })
            // As long as it takes to ask one who is read; first for a question that was on its way.
            func asked(_ times: Int) async throws {
                try await withPair(bounds) { _, other in
                    for _ in 0..<times {
                        let ping = try #require(await other.frame())
                        #expect(ping.opcode == RawFrame.ping)
                        other.send(RawFrame(RawFrame.pong, ping.payload))
                    }
                }
            }
            try await asked(1)
            _ = wire.rest()
            try await asked(3)
            #expect(wire.rest() == [])
            try await expectNext(connection, WebSocketMessage("one"))
            try await expectNext(connection, WebSocketMessage("two"))
            // Read again, it is asked again.
            #expect(await wire.frame()?.opcode == RawFrame.ping)
        }
    }

    @Test("senders wait for a slow server in bounded number, and nothing is sent by halves")
    func writers() async throws {
        var limits = WebSocketLimits.patient
        limits.writeDeadline = .milliseconds(300)
        limits.waitingWriters = 3
        let bounds = limits
        let message = WebSocketMessage.binary(ByteBuffer(repeating: 9, count: 200_000))
        try await withPair(bounds) { connection, wire in
            try await wire.reads(false)
            let told = try await withThrowingTaskGroup(of: WebSocketError.Code?.self) { group in
                for _ in 0..<100 {
                    group.addTask {
                        do throws(WebSocketError) {
                            try await connection.send(message)
                            return nil
                        } catch {
                            return error.code
                        }
                    }
                }
                return try await group.reduce(into: [WebSocketError.Code?]()) { $0.append($1) }
            }
            let sent = told.count { $0 == nil }
            #expect(sent > 0)
            let late = told.count { $0 == .writeDeadline }
            // The kernel's buffers may grow and take one that waited.
            #expect((1...bounds.waitingWriters).contains(late))
            #expect(told.count { $0 == .overloaded } == 100 - sent - late)
            try await wire.reads(true)
            for _ in 0..<sent { #expect(await wire.frame()?.payload.count == 200_000) }
            try await connection.send(text: "after")
            #expect(await wire.frame()?.payload == Array("after".utf8))
        }
    }

    @Test("a message above the bound is refused before anything is sent") func tooLarge() async throws {
        try await withPair { connection, wire in
            let message = WebSocketMessage.binary(ByteBuffer(repeating: 9, count: 262_145))
            await #expect(throws: WebSocketError(.tooLarge)) { try await connection.send(message) }
            try await connection.send(.binary(ByteBuffer(repeating: 9, count: 262_144)))
            #expect(await wire.frame()?.payload.count == 262_144)
        }
    }

    @Test("a cancelled reader leaves the connection to the next") func cancelledReader() async throws {
        try await withPair { connection, wire in
            let reader = Task { () -> WebSocketError.Code? in await failure(connection) }
            try await connection.held(until: { $0.hasReader })
            reader.cancel()
            #expect(await reader.value == .cancelled)
            wire.send(RawFrame(RawFrame.text, "next"))
            let next = try await connection.next()
            #expect(next == WebSocketMessage("next"))
        }
    }

    @Test("a cancelled sender's message is never sent") func cancelledSender() async throws {
        var limits = WebSocketLimits.patient
        limits.waitingWriters = 64
        let message = WebSocketMessage.binary(ByteBuffer(repeating: 9, count: 200_000))
        try await withPair(limits) { connection, wire in
            try await wire.reads(false)
            let sent = Mutex(0)
            let sender = Task { () -> WebSocketError.Code? in
                do throws(WebSocketError) {
                    while true {
                        try await connection.send(message)
                        sent.withLock { $0 += 1 }
                    }
                } catch {
                    return error.code
                }
            }
            try await connection.held(until: { $0.writers > 0 })
            sender.cancel()
            #expect(await sender.value == .cancelled)
            #expect(await connection.held().writers == 0)
            try await wire.reads(true)
            for _ in 0..<sent.withLock({ $0 }) { #expect(await wire.frame()?.payload.count == 200_000) }
            try await connection.send(text: "next")
            #expect(await wire.frame()?.payload == Array("next".utf8))
        }
    }
}
