import HTTPIngress
import Testing

/// `//api` is `/api` where a route says so, and nowhere else.
@Suite("Paths with more than one leading slash", .timeLimit(.minutes(30)))
struct LeadingSlashTests {
    private static let open = ProbeFace(
        "open",
        [
            HTTPRoute(.exact("/api/a"), bodyLimitBytes: 8, tag: 1, takesLeadingSlashes: true),
            HTTPRoute(.prefix("/api/"), bodyLimitBytes: 4, tag: 2, takesLeadingSlashes: true)
        ]
    ) { .text(200, "open \($0.tag) \($0.path)") }
    private static let strict = ProbeFace(
        "strict",
        [
            HTTPRoute(.exact("/metrics"), bodyLimitBytes: 8, tag: 3),
            HTTPRoute(.prefix("/admin/"), bodyLimitBytes: 8, tag: 4)
        ]
    ) { .text(200, "strict \($0.tag) \($0.path)") }

    @Test("Where a route says so, several slashes count as one anywhere, and not below its prefix")
    func repeated() async throws {
        let face = ProbeFace(
            "joined",
            [
                HTTPRoute(.exact("/a/b"), bodyLimitBytes: 8, tag: 1, takesRepeatedSlashes: true),
                HTTPRoute(.prefix("/a/"), bodyLimitBytes: 4, tag: 2),
                HTTPRoute(.exact("/c/d"), bodyLimitBytes: 4, tag: 3)
            ]
        ) { .text(200, "\($0.tag)") }
        try await withClient([face]) { _, client in
            for (path, text) in [
                ("/a/b", "1"), ("/a//b", "1"), ("//a///b", "1"), ("/a//c", "2"), ("/a/b/", "2"),
                ("/a/b//", "2"), ("/c/d", "3"), ("/c//d", nil), ("//c/d", nil)
            ] as [(String, String?)] {
                try await client.send(get(path))
                let answer = try await client.answer()
                #expect(answer.status == (text == nil ? 404 : 200), "\(path)")
                if let text { #expect(answer.text == text + "\n", "\(path)") }
            }
        }
    }

    @Test("They lead to the route that takes them, with its own bound, and to no other route")
    func routes() async throws {
        try await withListener([Self.open, Self.strict]) { _, port in
            let client = try await RawClient.connect(port)
            for (path, status, text) in [
                ("/api/a", 200, "open 1 /api/a\n"), ("//api/a", 200, "open 1 //api/a\n"),
                ("/////api/a", 200, "open 1 /////api/a\n"), ("//api/x", 200, "open 2 //api/x\n"),
                ("//api//a", 200, "open 2 //api//a\n"), ("/api//a", 200, "open 2 /api//a\n"),
                ("/metrics", 200, "strict 3 /metrics\n"), ("//metrics", 404, nil), ("//admin/x", 404, nil),
                ("//", 404, nil), ("//api", 404, nil), ("/%2fapi/a", 404, nil), ("/.//api/a", 404, nil),
                ("//./api/a", 404, nil), ("//api/../metrics", 200, "open 2 //api/../metrics\n")
            ] {
                try await client.send(get(path))
                let answer = try await client.answer()
                #expect(answer.status == status, "\(path)")
                if let text { #expect(answer.text == text, "\(path)") }
            }
            client.close()
            for (path, count, status) in [("//api/a", 8, 200), ("//api/a", 9, 400), ("//api/b", 5, 400)] {
                let client = try await RawClient.connect(port)
                try await client.send(post(path, String(repeating: "x", count: count)))
                #expect(try await client.answer().status == status, "\(path) \(count)")
                client.close()
            }
        }
    }
}
