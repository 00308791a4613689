import NIOCore
import NIOPosix
import PushModel
import PushTesting
import Testing

@testable import Bench

@Suite("How load is made", .timeLimit(.minutes(30)))
struct DriveTests {
    @Test("With a rate each request has its moment, whether or not earlier ones were answered")
    func rate() {
        let pace = Pace.rate(1000)
        #expect(pace.due(of: 500, after: .zero, asked: 0, free: 0) == 1, "the first is due at once")
        #expect(pace.due(of: 500, after: .microseconds(999), asked: 0, free: 64) == 1)
        #expect(pace.due(of: 500, after: .microseconds(1001), asked: 0, free: 0) == 2)
        #expect(pace.due(of: 500, after: .milliseconds(250), asked: 3, free: 0) == 251)
        #expect(pace.due(of: 500, after: .seconds(9), asked: 3, free: 0) == 500)
        #expect(pace.moment(of: 0) == .zero && pace.moment(of: 250) == .milliseconds(250))
        #expect(Pace.rate(0.5).moment(of: 3) == .seconds(6))
    }

    @Test("Without one, as many are due as connections are free")
    func most() {
        #expect(Pace.max.due(of: 100, after: .zero, asked: 10, free: 5) == 15)
        #expect(Pace.max.due(of: 12, after: .seconds(5), asked: 10, free: 5) == 12)
        #expect(Pace.max.moment(of: 7) == nil)
    }

    @Test("An answer is read whole or not yet, at every length")
    func pieces() throws {
        let text = "HTTP/1.1 200 OK\r\nContent-Length:  5\r\nConnection: close\r\n\r\nhello"
        for length in 0..<text.utf8.count {
            var buffer = ByteBuffer(bytes: Array(text.utf8.prefix(length)))
            #expect(try HTTPReplyParser.next(&buffer) == nil, "\(length)")
            #expect(buffer.readableBytes == length)
        }
        var two = ByteBuffer(string: text + "HTTP/1.1 204 No Content\r\n\r\n")
        let first = try #require(try HTTPReplyParser.next(&two))
        #expect(first.status == 200 && first.closes && String(buffer: first.body) == "hello")
        let second = try #require(try HTTPReplyParser.next(&two))
        #expect(second.status == 204 && !second.closes && second.body.readableBytes == 0)
        #expect(two.readableBytes == 0)
    }

    @Test(
        "What is no such answer is a fault",
        arguments: [
            "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "\r\n\r\n",
            "HTTP/1.1 abc\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        ])
    func malformed(text: String) {
        #expect(throws: BenchError(.malformedAnswer)) {
            var buffer = ByteBuffer(string: text)
            _ = try HTTPReplyParser.next(&buffer)
        }
    }

    @Test("A head without an end is given up at a megabyte")
    func endless() {
        #expect(throws: BenchError(.malformedAnswer)) {
            var buffer = ByteBuffer(string: "HTTP/1.1 200 OK\r\nX: " + String(repeating: "y", count: 1 << 20))
            _ = try HTTPReplyParser.next(&buffer)
        }
    }

    @Test("A book gives back what was put into it, in order")
    func prepared() {
        var prepared = PreparedRequests()
        #expect(prepared.isEmpty)
        for number in 0..<100 {
            prepared.add(head: Array("h\(number) ".utf8), body: Array("b\(number)".utf8))
        }
        #expect(prepared.count == 100)
        #expect((0..<100).allSatisfy { String(buffer: prepared[$0]) == "h\($0) b\($0)" })
    }

    @Test(
        "Every request is asked once and counted by its answer; the watched bytes are found",
        arguments: [1, 7])
    func drive(connections: Int) async throws {
        let server = try await LineServer()
        let report = try await server.drive((0..<200).map { $0 % 4 == 0 ? "busy" : "good" }, connections)
        #expect(report.statuses == [200: 150, 503: 50])
        #expect(report.watched == 150 && report.unanswered == 0)
        #expect(report.latency.total == 200)
        #expect(server.asked.value.count == 200)
        try await server.close()
    }

    @Test("Who is hung up on is counted as unanswered, and a drive without a connection left ends")
    func hungUp() async throws {
        let server = try await LineServer()
        let report = try await server.drive(["good", "good", "end", "good"], 1)
        #expect(report.statuses == [200: 2] && report.unanswered == 1)
        #expect(server.asked.value == ["good", "good", "end"])
        try await server.close()
        await #expect(throws: BenchError(.unreachable)) { try await server.drive(["good"], 1) }
        await #expect(throws: BenchError(.badPlan)) { try await server.drive([], 1) }
    }

    @Test("A request that nobody answers is given up at the end of the patience")
    func silence() async throws {
        let server = try await LineServer()
        let report = try await server.drive(["mute", "good"], 1, patience: .milliseconds(200))
        #expect(report.statuses == [:] && report.unanswered == 1)
        try await server.close()
    }
}

/// Answers requests that consist of one word and a blank line: `good` 200, `busy` 503, `mute` never, and at
/// `end` it hangs up.
private final class LineServer: Sendable {
    let asked = Noted<[String]>([])
    private let listener: any Channel

    init() async throws {
        let asked = asked
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Answerer(asked))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    func drive(
        _ words: [String], _ connections: Int, patience: Duration = .seconds(60)
    ) async throws -> DriveReport {
        var prepared = PreparedRequests()
        for word in words { prepared.add(head: Array(word.utf8), body: Array("\r\n\r\n".utf8)) }
        let drive = RequestDrive(
            host: "127.0.0.1", port: listener.localAddress?.port ?? 0, prepared: prepared, pace: .max,
            watch: "yes",
            eventLoop: MultiThreadedEventLoopGroup.singleton.next())
        return try await drive.run(connections: connections, patience: patience)
    }

    func close() async throws { try await listener.close().get() }

    private final class Answerer: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let asked: Noted<[String]>
        private var text = ""
        init(_ asked: Noted<[String]>) { self.asked = asked }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            text += String(buffer: unwrapInboundIn(data))
            while let end = text.firstRange(of: "\r\n\r\n") {
                let word = String(text[..<end.lowerBound])
                text = String(text[end.upperBound...])
                asked.change { $0.append(word) }
                switch word {
                case "good": answer("200 OK\r\nContent-Length: 3\r\n\r\nyes", context)
                case "busy": answer("503 Full\r\nContent-Length: 2\r\n\r\nno", context)
                case "end": context.close(promise: nil)
                default: break
                }
            }
        }

        private func answer(_ rest: String, _ context: ChannelHandlerContext) {
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: "HTTP/1.1 " + rest)), promise: nil)
        }
    }
}
