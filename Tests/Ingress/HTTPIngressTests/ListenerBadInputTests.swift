import HTTPIngress
import PushTesting
import Synchronization
import Testing

/// Bytes that are no good request, and the one answer they get.
struct BadRequest: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let bytes: String
    let status: Int

    init(_ name: String, _ status: Int, _ bytes: String) {
        testDescription = name
        self.bytes = bytes
        self.status = status
    }
}

let badRequests: [BadRequest] = [
    BadRequest("no HTTP at all", 400, "\u{16}\u{03}\u{01} hello\r\n\r\n"),
    BadRequest("HTTP/2 preface", 400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    BadRequest("version 3", 505, "GET /echo HTTP/3.0\r\nHost: t\r\n\r\n"),
    BadRequest("no Host", 400, "GET /echo HTTP/1.1\r\n\r\n"),
    BadRequest("two Hosts", 400, "GET /echo HTTP/1.1\r\nHost: t\r\nHost: u\r\n\r\n"),
    BadRequest("space before the colon", 400, "GET /echo HTTP/1.1\r\nHost : t\r\n\r\n"),
    BadRequest("empty field name", 400, "GET /echo HTTP/1.1\r\nHost: t\r\n: x\r\n\r\n"),
    BadRequest("control byte in a field", 400, "GET /echo HTTP/1.1\r\nHost: t\r\nX: a\u{01}b\r\n\r\n"),
    BadRequest("target without a slash", 400, "GET echo HTTP/1.1\r\nHost: t\r\n\r\n"),
    BadRequest("target of another scheme", 400, "GET ftp://t/echo HTTP/1.1\r\nHost: t\r\n\r\n"),
    BadRequest("bytes beyond ASCII in the target", 400, "GET /\u{e9}cho HTTP/1.1\r\nHost: t\r\n\r\n"),
    BadRequest(
        "both lengths", 400,
        "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    BadRequest(
        "both lengths, the other way round", 400,
        "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"),
    BadRequest(
        "two lengths", 400,
        "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
    BadRequest(
        "the same length twice", 400,
        "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc"),
    BadRequest("negative length", 400, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: -1\r\n\r\n"),
    BadRequest("length with a sign", 400, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: +3\r\n\r\nabc"),
    BadRequest("length in a list", 400, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 3, 3\r\n\r\nabc"),
    BadRequest("hexadecimal length", 400, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 0x3\r\n\r\nabc"),
    BadRequest(
        "length beyond 64 bits", 400,
        "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999999999999999999\r\n\r\n"),
    BadRequest(
        "unknown transfer coding", 501,
        "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    BadRequest(
        "transfer coding twice", 400,
        "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    BadRequest(
        "transfer coding of HTTP/1.0", 400,
        "POST /echo HTTP/1.0\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    BadRequest(
        "chunk size that is no number", 400,
        "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n"),
    BadRequest(
        "chunk size beyond 64 bits", 400,
        "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff1\r\nabc\r\n"),
    BadRequest(
        "expectation nobody knows", 417,
        "POST /echo HTTP/1.1\r\nHost: t\r\nExpect: tea\r\nContent-Length: 1\r\n\r\n"),
    BadRequest(
        "length beyond the route's bound", 400,
        "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 1025\r\n\r\n"),
    BadRequest(
        "body of a path nobody has", 404, "POST /none HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\n"),
    BadRequest(
        "one field of 20 KiB", 431,
        "GET /echo HTTP/1.1\r\nHost: t\r\nX: \(String(repeating: "a", count: 20_000))\r\n\r\n"),
    BadRequest(
        "target of 20 KiB", 431, "GET /\(String(repeating: "a", count: 20_000)) HTTP/1.1\r\nHost: t\r\n\r\n"),
    BadRequest(
        "200 fields", 431,
        "GET /echo HTTP/1.1\r\nHost: t\r\n\(String(repeating: "A: b\r\n", count: 200))\r\n"),
    BadRequest(
        "many fields that are large together", 431,
        "GET /echo HTTP/1.1\r\nHost: t\r\n"
            + String(repeating: "A: \(String(repeating: "b", count: 700))\r\n", count: 40) + "\r\n")
]

@Suite("Bad input is answered once, quickly, and reaches no face", .timeLimit(.minutes(30)))
struct ListenerBadInputTests {
    @Test("A request that is not well-formed", arguments: badRequests)
    func malformed(_ bad: BadRequest) async throws {
        let calls = Mutex(0)
        let face = ProbeFace { inbound in
            calls.withLock { $0 += 1 }
            return ProbeFace.echo(inbound)
        }
        try await withClient([face]) { _, client in
            try await client.send(bad.bytes)
            let answer = try await client.answer()
            #expect(answer.status == bad.status)
            #expect(answer.header("connection") == "close")
            #expect(await client.end() == [], "there is one answer and nothing behind it")
        }
        #expect(calls.withLock { $0 } == 0)
    }

    @Test("A hidden second request behind an ambiguous first one is never read")
    func smuggling() async throws {
        let seen = Mutex<[String]>([])
        let face = ProbeFace("probe", [HTTPRoute(.prefix("/"), bodyLimitBytes: 1024)]) { inbound in
            seen.withLock { $0.append(inbound.path) }
            return .text(200, "ok")
        }
        let hidden = "GET /hidden HTTP/1.1\r\nHost: t\r\n\r\n"
        let carriers = [
            "POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\(hidden)",
            "POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\n\(hidden)",
            "POST /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: xchunked\r\n\r\n\(hidden)",
            "POST /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n\(hidden)"
        ]
        try await withListener([face]) { _, port in
            for bytes in carriers {
                let client = try await RawClient.connect(port)
                try await client.send(bytes)
                #expect(try await client.answer().status >= 400)
                #expect(await client.end() == [])
                client.close()
            }
        }
        #expect(seen.withLock { $0 } == [])
    }

    @Test("A face gives the refusal its own form")
    func form() async throws {
        try await withClient { _, client in
            try await client.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5000000\r\n\r\n")
            #expect(try await client.answer().text == "face refuses bodyTooLarge\n")
        }
    }

    @Test("A chunked body that grows past the bound is refused while it is still being sent")
    func chunkedTooLarge() async throws {
        try await withClient { listener, client in
            try await client.send("POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n")
            let chunk = "100\r\n\(String(repeating: "x", count: 256))\r\n"
            for _ in 0..<5 { try await client.send(chunk) }
            #expect(try await client.answer().status == 400)
            #expect(await client.end() == [])
            #expect(listener.load.bytes == 0)
        }
    }

    @Test(
        "A request cut off at any byte gets one 400, or silence before its first byte", arguments: [0, 1, 2])
    func truncated(_ third: Int) async throws {
        let whole = Array(post("/echo", "abcdef").utf8)
        try await withListener { _, port in
            for length in stride(from: third, to: whole.count, by: 3) {
                let client = try await RawClient.connect(port)
                if length > 0 { try await client.send(Array(whole[..<length])) }
                try await client.endSending()
                if length == 0 {
                    #expect(await client.end() == [])
                } else {
                    #expect(try await client.answer().status == 400, "cut at \(length)")
                    #expect(await client.end() == [])
                }
                client.close()
            }
        }
    }

    @Test("A request split at any byte is answered as if it came whole")
    func split() async throws {
        let whole = Array(post("/echo", "abcdef", "X-Long: \(String(repeating: "y", count: 50))\r\n").utf8)
        try await withClient { _, client in
            for cut in 1..<whole.count {
                try await client.send(Array(whole[..<cut]))
                try await client.send(Array(whole[cut...]))
                let answer = try await client.answer()
                #expect(answer.status == 200 && answer.text == "abcdef", "cut at \(cut)")
            }
        }
    }

    @Test("Noise of any kind ends in an answer below 500 or in the connection's end, never in a crash")
    func noise() async throws {
        let seed = UInt64.random(in: .min ... .max)
        var chance = SeededRandom(seed: seed)
        let whole = Array(post("/echo", "abcdef").utf8)
        try await withListener { _, port in
            for _ in 0..<300 {
                var bytes = whole
                for _ in 0...Int.random(in: 0...3, using: &chance) {
                    bytes[Int.random(in: 0..<bytes.count, using: &chance)] = UInt8.random(
                        in: 0...255, using: &chance)
                }
                let client = try await RawClient.connect(port)
                try await client.send(bytes)
                try await client.endSending()
                do {
                    let answer = try await client.answer()
                    #expect(
                        answer.status < 500 || answer.status == 501 || answer.status == 505, "seed \(seed)")
                } catch RawFault.ended {}
                client.close()
            }
            let client = try await RawClient.connect(port)
            try await client.send(post("/echo", "still here"))
            #expect(try await client.answer().text == "still here", "seed \(seed)")
            client.close()
        }
    }
}
