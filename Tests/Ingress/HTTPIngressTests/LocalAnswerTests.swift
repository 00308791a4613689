import Testing
import WebClient

/// What commands and tests hear from a server on this machine, which may be any program.
@Suite("An answer of a server nearby, as bytes")
struct LocalAnswerTests {
    private func words(_ text: String) -> String {
        switch LocalAnswer.parse(Array(text.utf8)) {
        case .unfinished: "unfinished"
        case .malformed: "malformed"
        case .whole(let answer): "\(answer.status) \(answer.text)"
        case .untilTheEnd(let answer): "\(answer.status) … \(answer.text)"
        }
    }

    private static let whole = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

    @Test("A head without a line is malformed, and so is one that is no head")
    func odd() {
        let texts = [
            "\r\n\r\n", "\r\n\r\n\r\n\r\n", " \r\n\r\n", "HTTP/1.1\r\n\r\n", "HTTP/1.1 \r\n\r\n",
            "HTTP/1.1 x OK\r\n\r\n", "SMTP 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffff\r\n"
        ]
        for text in texts { #expect(words(text) == "malformed", "\(text.debugDescription)") }
        #expect(words("HTTP/1.1 200 OK\r\ncontent-length: 9223372036854775807\r\n\r\n") == "unfinished")
    }

    @Test("A few interim answers are passed over; a peer that sends nothing else is malformed")
    func interim() {
        let one = "HTTP/1.1 100 Continue\r\n\r\n"
        #expect(words(one) == "unfinished")
        #expect(words(one + Self.whole) == "200 ok")
        // As deep as there are of them, a reader that calls itself would end the process.
        #expect(words(String(repeating: one, count: 100_000) + Self.whole) == "malformed")
    }

    @Test("Cut at any length it is unfinished, and no other")
    func cut() {
        for text in [Self.whole, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"]
        {
            let bytes = Array(text.utf8)
            for count in 0..<bytes.count - 2 {
                let found = words(String(decoding: bytes[..<count], as: UTF8.self))
                #expect(found == "unfinished" || found == "200 ok", "\(count)")
            }
            #expect(words(text) == "200 ok")
        }
    }
}
