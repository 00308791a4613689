import NIOHTTP1
import Testing

@testable import HTTPIngress

@Suite("What a head says")
struct HeadTests {
    private func head(_ uri: String, _ fields: [(String, String)] = [("host", "t")]) throws -> CheckedHead {
        try CheckedHead(
            HTTPRequestHead(version: .http1_1, method: .POST, uri: uri, headers: HTTPHeaders(fields)))
    }

    private func refusal(_ uri: String, _ fields: [(String, String)] = [("host", "t")]) -> IngressRefusal? {
        do {
            _ = try head(uri, fields)
            return nil
        } catch {
            return (error as? HeadFault)?.refusal
        }
    }

    @Test(
        "A target is split at its first question mark",
        arguments: [
            ("/", "/", nil), ("/a/b", "/a/b", nil), ("/a?", "/a", ""), ("/?a=/b?c", "/", "a=/b?c"),
            ("//a?b", "//a", "b"), ("*", "*", nil), ("http://h/a?b?c", "/a", "b?c"),
            ("HTTPS://h?b", "/", "b"), ("http://h", "/", nil), ("http://", "/", nil),
            ("/a-path-that-is-longer-than-fifteen-bytes?q", "/a-path-that-is-longer-than-fifteen-bytes", "q")
        ] as [(String, String, String?)])
    func target(_ uri: String, _ path: String, _ query: String?) throws {
        let head = try head(uri)
        #expect(head.path == path)
        #expect(head.query == query)
    }

    @Test(
        "A target with other bytes than visible ASCII, or of no known form, is refused",
        arguments: ["", "a", "?", "ftp://h/", "/a b", "/\u{7f}", "/\u{e9}", "/a?\u{1}", "http://h/\u{e9}"])
    func badTarget(_ uri: String) { #expect(refusal(uri) == .malformed) }

    @Test("Fields are told apart without regard to case, and by nothing else")
    func names() throws {
        #expect("X-Seen".isField("x-sEEN"))
        #expect(!"X-Seen".isField("X-Sees"))
        // What a comparison by one bit would take for the same.
        #expect(!"x-seen".isField("x\rseen"))
        #expect(!"x^".isField("x~"))
        #expect(!"x@".isField("x`"))
        #expect(!"x".isField("xx"))
        #expect("".isField(""))
        let name = "a-name-that-is-longer-than-fifteen-bytes"
        #expect(name.uppercased().isField(name))
        for byte in UInt8(0)...127 {
            let letter = String(UnicodeScalar(byte))
            for other in UInt8(0)...127 {
                let wanted = String(UnicodeScalar(other))
                #expect(letter.isField(wanted) == (letter.lowercased() == wanted.lowercased()))
            }
        }
    }

    @Test("The head's own fields are seen in any case, and given twice they are refused")
    func own() throws {
        let whole = try head(
            "/", [("HOST", "t"), ("Content-LENGTH", "12"), ("Expect", "100-Continue"), ("x", "y")])
        #expect(whole.contentLength == 12)
        #expect(whole.awaitsContinue)
        #expect(try head("/", [("Host", "t"), ("Transfer-Encoding", "CHUNKED")]).isChunked)
        #expect(refusal("/", []) == .malformed)
        #expect(refusal("/", [("host", "t"), ("Host", "t")]) == .malformed)
        #expect(
            refusal("/", [("host", "t"), ("content-length", "1"), ("Content-Length", "1")]) == .malformed)
        #expect(
            refusal("/", [("host", "t"), ("content-length", "1"), ("Transfer-Encoding", "chunked")])
                == .malformed)
        #expect(
            refusal("/", [("host", "t"), ("transfer-encoding", "gzip")]) == .unsupportedTransferCoding)
        #expect(refusal("/", [("host", "t"), ("EXPECT", "200-ok")]) == .unsupportedExpectation)
    }

    @Test("A credential is the first that was given, however it is counted")
    func credential() throws {
        let fields = [("host", "t"), ("Authorization", "a"), ("x-seen", "1"), ("AUTHORIZATION", "b")]
        for made in [HTTPFields(HTTPHeaders(fields)), try head("/", fields).fields] {
            for name in ["authorization", "Authorization"] {
                #expect(made.first(name) == "a")
                #expect(made.count(name) == 2)
            }
            #expect(made.first("X-Seen") == "1")
            #expect(made.count("X-Seen") == 1)
            #expect(made.first("x-unseen") == nil)
            #expect(made.count("x-unseen") == 0)
        }
        let none = try head("/").fields
        #expect(none.first("authorization") == nil)
        #expect(none.count("authorization") == 0)
    }

    @Test("A field is found by a name of any length, and none by another name of that length")
    func namesOfEachLength() throws {
        for length in 1...140 {
            let name = String(repeating: "x", count: length)
            let fields = [("host", "t"), (name.uppercased(), "a"), ("y", "b"), (name, "c")]
            for made in [HTTPFields(HTTPHeaders(fields)), try head("/", fields).fields] {
                #expect(made.first(name) == "a")
                #expect(made.count(name) == 2)
                #expect(made.first(String(repeating: "z", count: length)) == nil)
                #expect(made.count(String(repeating: "z", count: length)) == 0)
            }
        }
    }
}
