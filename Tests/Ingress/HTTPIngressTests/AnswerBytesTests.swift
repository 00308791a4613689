import NIOCore
import Testing

@testable import HTTPIngress

@Suite("The bytes of an answer")
struct AnswerBytesTests {
    private static let date = Array("Sun, 06 Nov 1994 08:49:37 GMT".utf8)
    private static let stamp = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"

    /// Behind what was written before, in a buffer that has no room for it.
    private func written(_ answer: HTTPOutbound, _ frame: AnswerFrame = AnswerFrame()) -> String {
        var buffer = ByteBuffer(string: "+")
        buffer.writeAnswer(answer, frame, date: Self.date)
        return String(buffer: buffer)
    }

    @Test("Head and body, for each way of framing")
    func frames() {
        let answer = HTTPOutbound(
            200, .json, Array("{}".utf8),
            headers: [(name: "retry-after", value: "7"), (name: "x", value: "")])
        let head =
            "+HTTP/1.1 200 OK\r\n\(Self.stamp)content-length: 2\r\ncontent-type: application/json\r\n"
            + "retry-after: 7\r\nx: \r\n"
        #expect(written(answer) == head + "\r\n{}")
        #expect(written(answer, AnswerFrame(isHeadOnly: true)) == head + "\r\n")
        #expect(written(answer, AnswerFrame(closes: true)) == head + "connection: close\r\n\r\n{}")
        #expect(
            written(answer, AnswerFrame(isVersion10: true)) == head + "connection: keep-alive\r\n\r\n{}")
        #expect(
            written(answer, AnswerFrame(isVersion10: true, isHeadOnly: true, closes: true))
                == head + "connection: close\r\n\r\n")
    }

    @Test("Without a body, without a type, and with statuses that have no words", arguments: [204, 304])
    func bodiless(_ status: Int) {
        let text = written(HTTPOutbound(status, .text, [1]))
        #expect(text.hasPrefix("+HTTP/1.1 \(status) No"))
        #expect(text.hasSuffix("\r\n\(Self.stamp)\r\n"))
        #expect(
            written(HTTPOutbound(200)) == "+HTTP/1.1 200 OK\r\n\(Self.stamp)content-length: 0\r\n\r\n")
        #expect(
            written(HTTPOutbound(599)) == "+HTTP/1.1 599 \r\n\(Self.stamp)content-length: 0\r\n\r\n")
    }

    @Test("Long fields and bodies are whole, and control bytes are left out of values")
    func long() {
        let value = String(repeating: "\u{e9}\u{7f}\r\n", count: 2_000)
        let answer = HTTPOutbound(
            404, .jsonText, Array(repeating: 0x61, count: 12_345),
            headers: Array(repeating: (name: "x-long", value: value), count: 3), closes: true)
        let field = "x-long: \(String(repeating: "\u{e9}", count: 2_000))\r\n"
        #expect(
            written(answer, AnswerFrame(closes: true))
                == "+HTTP/1.1 404 Not Found\r\n\(Self.stamp)content-length: 12345\r\n"
                + "content-type: application/json; charset=utf-8\r\n\(field)\(field)\(field)"
                + "connection: close\r\n\r\n" + String(repeating: "a", count: 12_345))
    }
}
