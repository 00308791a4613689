import HTTPIngress
import Testing

@Suite("A listener answers well-formed requests", .timeLimit(.minutes(30)))
struct ListenerConversationTests {
    @Test("A body comes back, and the connection serves the next request")
    func echo() async throws {
        try await withClient { _, client in
            for text in ["one", "two", "three"] {
                try await client.send(post("/echo", text))
                let answer = try await client.answer()
                #expect(answer.status == 200)
                #expect(answer.text == text)
                #expect(answer.header("server") == nil)
                #expect(answer.header("connection") == nil)
            }
        }
    }

    @Test("The face sees method, path, query, fields whatever their case, and the route's tag")
    func request() async throws {
        let face = ProbeFace { inbound in
            .text(
                200,
                [
                    inbound.method.rawValue, inbound.path, inbound.query ?? "-",
                    inbound.header("x-SEEN") ?? "-",
                    String(inbound.tag), String(inbound.headerCount("X-Seen")), String(inbound.isSecure)
                ].joined(separator: "|"))
        }
        try await withClient([face]) { _, client in
            try await client.send("PUT /echo?a=b?c HTTP/1.1\r\nHost: t\r\nx-seen: v\r\nX-SEEN: w\r\n\r\n")
            #expect(try await client.answer().text == "PUT|/echo|a=b?c|v|7|2|false\n")
            try await client.send("GET http://other.example/echo HTTP/1.1\r\nHost: t\r\n\r\n")
            #expect(try await client.answer().text == "GET|/echo|-|-|7|0|false\n")
        }
    }
}
