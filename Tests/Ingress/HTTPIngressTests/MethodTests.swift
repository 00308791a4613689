import HTTPIngress
import PushTesting
import Testing

@Suite("HTTP's smaller duties", .timeLimit(.minutes(30)))
struct MethodTests {
    @Test("HEAD has the length and no body, and the connection goes on")
    func head() async throws {
        let face = ProbeFace { _ in .text(200, "four") }
        try await withClient([face]) { _, client in
            try await client.send("HEAD /echo HTTP/1.1\r\nHost: t\r\n\r\n")
            let answer = try await client.answer(isHead: true)
            #expect(answer.header("content-length") == "5")
            try await client.send(get("/echo"))
            #expect(try await client.answer().text == "four\n")
        }
    }

    @Test("Expect: 100-continue is told to go on only when the body would be taken")
    func expectContinue() async throws {
        try await withClient { _, client in
            try await client.send(
                "POST /echo HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
            let told = await client.bytes(25)
            #expect(String(decoding: told, as: UTF8.self) == "HTTP/1.1 100 Continue\r\n\r\n")
            try await client.send("abc")
            #expect(try await client.answer().text == "abc")
            try await client.send(
                "POST /echo HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 3000\r\n\r\n")
            #expect(try await client.answer().status == 400)
        }
    }

    @Test("Connection: close and HTTP/1.0 end behind the answer; HTTP/1.0 with keep-alive does not")
    func persistence() async throws {
        try await withListener { _, port in
            for request in [get("/echo", "Connection: close\r\n"), "GET /echo HTTP/1.0\r\n\r\n"] {
                let client = try await RawClient.connect(port)
                try await client.send(request)
                let answer = try await client.answer()
                #expect(answer.status == 200)
                #expect(answer.header("connection") == "close")
                #expect(await client.end() == [])
                client.close()
            }
            let client = try await RawClient.connect(port)
            for _ in 0..<2 {
                try await client.send("GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                #expect(try await client.answer().header("connection") == "keep-alive")
            }
            client.close()
        }
    }

    @Test("An upgrade is not taken up: the answer is HTTP/1.1 and the connection ends")
    func upgrade() async throws {
        try await withClient { _, client in
            try await client.send(get("/echo", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"))
            let answer = try await client.answer()
            #expect(answer.status == 200)
            #expect(await client.end() == [])
        }
    }

    @Test("A client that ends its side behind a whole request still gets its answer")
    func halfClosed() async throws {
        let gate = Gate()
        let face = ProbeFace.held(by: gate)
        let load = Signal()
        try await withClient([face], load: load) { listener, client in
            try await client.send(post("/echo", "bye"))
            try await client.endSending()
            await load.until { listener.load.requests == 1 }
            gate.open()
            #expect(try await client.answer().text == "bye")
            #expect(await client.end() == [])
        }
    }

    @Test(
        "Of pipelined requests before the end of the client's side each whole one is answered, a cut one is 400"
    )
    func halfClosedPipeline() async throws {
        try await withClient { _, client in
            try await client.send(
                post("/echo", "1") + post("/echo", "2")
                    + "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\n3")
            try await client.endSending()
            #expect(try await client.answer().text == "1")
            #expect(try await client.answer().text == "2")
            #expect(try await client.answer().status == 400)
            #expect(await client.end() == [])
        }
    }

    @Test("Chunked bodies are put together, trailers dropped")
    func chunked() async throws {
        try await withClient { _, client in
            try await client.send(
                "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "3\r\nabc\r\n4;ext=1\r\ndefg\r\n0\r\nX-Trailer: y\r\n\r\n")
            #expect(try await client.answer().text == "abcdefg")
            try await client.send(post("/echo", "next"))
            #expect(try await client.answer().text == "next")
        }
    }

    @Test("A path nobody has is 404 and the connection goes on")
    func notFound() async throws {
        try await withClient { _, client in
            for path in ["/", "/echo/", "/echoo", "/ECHO", "*"] {
                try await client.send("OPTIONS \(path) HTTP/1.1\r\nHost: t\r\n\r\n")
                #expect(try await client.answer().status == 404)
            }
            try await client.send(get("/echo"))
            #expect(try await client.answer().status == 200)
        }
    }

    @Test("A field value with a line break cannot begin another field")
    func headerInjection() async throws {
        let face = ProbeFace { _ in
            HTTPOutbound(200, .none, headers: [(name: "x-probe", value: "a\r\nset-cookie: b")])
        }
        try await withClient([face]) { _, client in
            try await client.send(get("/echo"))
            let answer = try await client.answer()
            #expect(answer.header("set-cookie") == nil)
            #expect(answer.header("x-probe") == "aset-cookie: b")
        }
    }

    @Test("Answers of a megabyte arrive whole, also when the client reads them late")
    func largeAnswer() async throws {
        let face = ProbeFace { _ in HTTPOutbound(200, .octets, Array(repeating: 7, count: 1_000_000)) }
        try await withClient([face]) { _, client in
            try await client.send(get("/echo") + get("/echo"))
            for _ in 0..<2 { #expect(try await client.answer().body.count == 1_000_000) }
        }
    }
}
