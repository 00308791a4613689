import NIOCore
import Testing

@testable import WebSocket

/// What a server says, and what a client makes of it.
struct FrameCase: Sendable, CustomTestStringConvertible {
    let name: String
    let sent: [UInt8]
    /// What the server is told.
    let code: UInt16
    let failure: WebSocketError.Code
    var testDescription: String { name }

    init(_ name: String, _ code: UInt16, _ failure: WebSocketError.Code, _ frames: RawFrame...) {
        self.init(name, code, failure, bytes: frames.flatMap(\.bytes))
    }

    init(_ name: String, _ code: UInt16, _ failure: WebSocketError.Code, bytes: [UInt8]) {
        (self.name, self.code, self.failure, sent) = (name, code, failure, bytes)
    }

    private typealias F = RawFrame

    static let broken: [FrameCase] = [
        .init("a masked frame", 1002, .protocolViolation, F(F.text, "x").masked),
        .init("the first reserved bit", 1002, .protocolViolation, F(F.text, "x", flags: 0xC0)),
        .init("the second reserved bit", 1002, .protocolViolation, F(F.text, "x", flags: 0xA0)),
        .init("the third reserved bit", 1002, .protocolViolation, F(F.ping, "x", flags: 0x90)),
        .init("opcode 3", 1002, .protocolViolation, F(3, "x")),
        .init("opcode 7", 1002, .protocolViolation, F(7)),
        .init("opcode 11", 1002, .protocolViolation, F(11, "x")),
        .init("opcode 15", 1002, .protocolViolation, F(15)),
        .init("a continuation of nothing", 1002, .protocolViolation, F(F.continuation, "x")),
        .init(
            "a continuation behind a whole message", 1002, .protocolViolation, F(F.text, "x"),
            F(F.continuation, "y")),
        .init(
            "a text inside a text", 1002, .protocolViolation, F(F.text, "x", flags: 0), F(F.text, "y")),
        .init(
            "a binary inside a text", 1002, .protocolViolation, F(F.text, "x", flags: 0), F(F.binary, "y")),
        .init("a PING in fragments", 1002, .protocolViolation, F(F.ping, "x", flags: 0)),
        .init("a Close in fragments", 1002, .protocolViolation, F(F.close, flags: 0)),
        .init("a PING of 126 bytes", 1002, .protocolViolation, F(F.ping, [UInt8](repeating: 1, count: 126))),
        .init("a PONG of 126 bytes", 1002, .protocolViolation, F(F.pong, [UInt8](repeating: 1, count: 126))),
        .init("a Close of one byte", 1002, .protocolViolation, F(F.close, [3])),
        .init("a reason that is no UTF-8", 1007, .notUTF8, F.close(1000, [0xC3, 0x28])),
        .init("a message a byte too long", 1009, .tooLarge, bytes: F.head(F.text, 0x80, length: 262_145)),
        .init("a length of 63 bits", 1009, .tooLarge, bytes: F.head(F.binary, 0x80, length: .max)),
        .init(
            "a length of 64 bits", 1009, .tooLarge, bytes: [0x82, 127] + [UInt8](repeating: 255, count: 8)),
        .init(
            "fragments that are too long together", 1009, .tooLarge,
            F(F.text, [UInt8](repeating: 0x61, count: 200_000), flags: 0),
            F(F.continuation, [UInt8](repeating: 0x61, count: 62_145))),
        .init(
            "fragments without end", 1008, .tooLarge,
            bytes: F(F.text, flags: 0).bytes
                + [UInt8](repeatElement(F(F.continuation, flags: 0).bytes, count: 1024).joined()))
    ]

    /// Codes that no frame may carry (RFC 6455 §7.4).
    static let forbiddenCodes: [UInt16] = [
        0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535
    ]

    static let notUTF8: [[UInt8]] = [
        [0x80], [0xC0, 0xAF], [0xC3], [0xC3, 0x28], [0xE0, 0x80, 0xAF], [0xE2, 0x82], [0xED, 0xA0, 0x80],
        [0xF0, 0x80, 0x80, 0xAF], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFF],
        Array("κόσμε".utf8) + [0xED, 0xBF, 0xBF] + Array("edited".utf8)
    ]
}

@Suite("Frames from a server", .timeLimit(.minutes(30))) struct FrameTests {
    @Test("a broken rule is answered with its code, and ends the connection", arguments: FrameCase.broken)
    func broken(rule: FrameCase) async throws {
        try await withPair { connection, wire in
            wire.send(rule.sent)
            #expect(await failure(connection) == rule.failure)
            let farewell = try #require(await wire.frame())
            #expect(farewell.code == rule.code)
            #expect(farewell.isMasked)
        }
    }

    @Test("a Close with a code that may not travel breaks the rules", arguments: FrameCase.forbiddenCodes)
    func forbidden(code: UInt16) async throws {
        try await withPair { connection, wire in
            wire.send(.close(code))
            #expect(await failure(connection) == .protocolViolation)
            #expect(await wire.frame()?.code == 1002)
        }
    }

    @Test("a text that is no UTF-8 is answered with 1007", arguments: FrameCase.notUTF8)
    func notUTF8(bytes: [UInt8]) async throws {
        try await withPair { connection, wire in
            wire.send(RawFrame(RawFrame.text, bytes))
            #expect(await failure(connection) == .notUTF8)
            #expect(await wire.frame()?.code == 1007)
        }
    }

    @Test("a binary message may hold any bytes") func binary() async throws {
        try await withPair { connection, wire in
            wire.send(RawFrame(RawFrame.binary, [0xFF, 0x00, 0xC0]))
            try await expectNext(connection, .binary(ByteBuffer(bytes: [0xFF, 0x00, 0xC0])))
        }
    }

    @Test("a message of the full size arrives, whole or in pieces that split characters")
    func fullSize() async throws {
        let text = [UInt8](repeatElement("ż".utf8, count: 131_072).joined())
        try await withPair { connection, wire in
            wire.send(RawFrame(RawFrame.text, text))
            try await expectNext(connection, .text(ByteBuffer(bytes: text)))
            wire.send(RawFrame(RawFrame.text, Array(text[..<1]), flags: 0))
            wire.send(RawFrame(RawFrame.continuation, [], flags: 0))
            wire.send(RawFrame(RawFrame.continuation, Array(text[1..<70_001]), flags: 0))
            wire.send(RawFrame(RawFrame.continuation, Array(text[70_001...])))
            try await expectNext(connection, .text(ByteBuffer(bytes: text)))
            wire.send(RawFrame(RawFrame.text))
            try await expectNext(connection, .text(ByteBuffer()))
        }
    }

    @Test("bytes that come one at a time are the same frames") func drip() async throws {
        try await withPair { connection, wire in
            for byte in RawFrame(RawFrame.text, "drip").bytes + RawFrame(RawFrame.ping, "p").bytes {
                wire.send([byte])
            }
            try await expectNext(connection, WebSocketMessage("drip"))
            #expect(await wire.frame()?.payload == Array("p".utf8))
        }
    }

    @Test("a PING between fragments is answered with its own bytes, and a PONG nobody asked for is no fault")
    func ping() async throws {
        try await withPair { connection, wire in
            wire.send(RawFrame(RawFrame.text, "one ", flags: 0))
            wire.send(RawFrame(RawFrame.ping, [UInt8](repeating: 7, count: 125)))
            wire.send(RawFrame(RawFrame.pong, "nobody asked"))
            wire.send(RawFrame(RawFrame.continuation, "two"))
            try await expectNext(connection, WebSocketMessage("one two"))
            let pong = try #require(await wire.frame())
            #expect(pong == RawFrame(RawFrame.pong, [UInt8](repeating: 7, count: 125), isMasked: true))
        }
    }

    @Test("what a client sends is masked, with another mask each time") func masks() async throws {
        try await withPair { connection, wire in
            var masks: Set<[UInt8]> = []
            for _ in 0..<4 {
                try await connection.send(text: "same")
                let bytes = try #require(await wire.take(10))
                #expect(bytes[0] == 0x81)
                #expect(bytes[1] == 0x84)
                masks.insert(Array(bytes[2..<6]))
                #expect(zip(bytes[6...], bytes[2..<6]).map { $0 ^ $1 } == Array("same".utf8))
            }
            #expect(masks.count > 1)
        }
    }
}
