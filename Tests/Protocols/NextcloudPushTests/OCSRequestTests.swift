import Foundation
import NextcloudPush
import PushModel
import PushTesting
import Testing
import WireFormats

#if canImport(FoundationXML)
import FoundationXML
#endif

/// What is read of a request to the OCS interface, and what refuses it, in the deployed order.
@Suite("Nextcloud OCS requests", .timeLimit(.minutes(30)))
struct OCSRequestTests {
    private static let push = "/ocs/v2.php/apps/notifications/api/v2/push"
    private static let list = "/ocs/v2.php/apps/notifications/api/v2/notifications"

    private func head(_ method: String, _ path: String, query: String? = nil, json: Bool = false) -> OCSHead {
        OCSHead(
            method: method, path: path, query: query,
            contentType: json ? "application/json; charset=utf-8" : "application/x-www-form-urlencoded",
            apiRequest: "true")
    }

    private func call(
        _ head: OCSHead, _ body: String = "", isLoggedIn: Bool = true
    ) throws -> Result<OCSCall, OCSRefusal> {
        let request = try #require(OCSRequest(head))
        return Result { () throws(OCSRefusal) in
            try request.call(body: Secret(body.utf8), isLoggedIn: isLoggedIn)
        }
    }

    private func status(_ result: Result<OCSCall, OCSRefusal>) -> Int? {
        if case .failure(let refusal) = result { refusal.answer.status } else { nil }
    }

    @Test("Form, JSON and query name the same fields; the body counts before the query")
    func fields() throws {
        let form = "pushTokenHash=a%2Bb&devicePublicKey=k+y&proxyServer=https%3A%2F%2Fp%2F&format=json"
        let json = #"{"proxyServer":"https:\/\/p/","x":[1],"pushTokenHash":"a+b","devicePublicKey":"k y"}"#
        for (head, body) in [
            (head("POST", Self.push), form), (head("POST", Self.push, json: true), json),
            (head("POST", Self.push, query: form), ""),
            (head("POST", Self.push, query: "pushTokenHash=old&proxyServer=old"), form)
        ] {
            guard case .success(.register(let read)) = try call(head, body) else {
                Issue.record("no registration: \(body)")
                continue
            }
            #expect(read.pushTokenHash == "a+b" && read.devicePublicKey == "k y")
            #expect(read.proxyServer == "https://p/")
        }
        let odd = try call(
            head("POST", Self.push, json: true), #"{"pushTokenHash":1,"proxyServer":"a","proxyServer":null}"#)
        guard case .success(.register(let none)) = odd else { throw Odd() }
        #expect(none.pushTokenHash == nil && none.proxyServer == nil && none.devicePublicKey == nil)
    }

    private struct Odd: Error {}

    @Test("Each endpoint has its methods; another path is OCS 998, another method 405")
    func endpoints() throws {
        for (method, path) in [
            ("GET", "/ocs/v1.php/cloud/capabilities"), ("GET", "/ocs/v2.php/cloud/user"), ("GET", Self.list),
            ("DELETE", Self.list), ("GET", Self.list + "/7"), ("DELETE", Self.list + "/7"),
            ("DELETE", Self.push), ("POST", "/ocs/v2.php/apps/notifications/api/v3/test/self")
        ] {
            #expect(status(try call(head(method, path))) == nil, "\(method) \(path)")
            #expect(status(try call(head("PATCH", path))) == 405)
        }
        for path in [
            "/ocs/v2.php", "/ocs/v2.php/cloud/users", Self.push + "/", Self.list + "/", Self.list + "/-1",
            Self.list + "/7a", Self.list + "/7/8", "/ocs/v2.php/apps/notifications/api/v1/push"
        ] {
            guard case .failure(let refusal) = try call(head("GET", path), isLoggedIn: false) else {
                throw Odd()
            }
            #expect(refusal.answer.httpStatus(.v2) == 404 && refusal.answer.httpStatus(.v1) == 200)
            #expect(refusal.answer.body(.v2, .json).text.contains(#""statuscode":998"#))
        }
        #expect(OCSRequest(head("GET", "/index.php")) == nil)
        guard
            case .success(.notification(let id)) = try call(head("GET", Self.list + "/99999999999999999999"))
        else { throw Odd() }
        #expect(id == .max)
    }

    @Test("A stranger hears 401 before anything else of the call, a page without the header 412")
    func order() throws {
        var bare = head("POST", Self.push)
        bare.apiRequest = nil
        let stranger = try call(bare, "%", isLoggedIn: false)
        #expect(status(stranger) == 401)
        #expect(status(try call(bare, "%")) == 412)
        #expect(status(try call(head("POST", Self.push), "%")) == 400)
        #expect(status(try call(head("POST", Self.push, json: true), "{")) == 400)
        #expect(
            status(try call(head("POST", Self.push), String(repeating: "a", count: 65_537))) == 413)
        #expect(status(try call(head("GET", "/ocs/v2.php/cloud/capabilities"), isLoggedIn: false)) == nil)
        guard case .failure(let refusal) = stranger else { throw Odd() }
        for version in OCSAnswer.Version.allCases {
            #expect(refusal.answer.httpStatus(version) == 401)
            #expect(refusal.answer.body(version, .json).text.contains(#""statuscode":997"#))
        }
        #expect(refusal.answer.headers.map(\.name) == ["WWW-Authenticate"])
    }

    @Test("The query says the format, else the first application type of Accept, else it is XML")
    func formats() throws {
        for (query, accept, format) in [
            ("format=json", "application/xml", OCSAnswer.Format.json),
            ("format=xml", "application/json", .xml),
            (nil, "text/html, Application/JSON;q=0.9, application/xml", .json),
            (nil, "application/xml,application/json", .xml), (nil, nil, .xml), ("format=html", nil, .xml),
            ("a=b", "application/json", .json), ("%", "application/json", .json)
        ] as [(String?, String?, OCSAnswer.Format)] {
            var head = head("GET", Self.list, query: query)
            head.accept = accept
            #expect(OCSRequest(head)?.format == format, "\(query ?? "-") \(accept ?? "-")")
        }
    }

    @Test("Basic credentials are read to the first colon; what is none is a stranger's")
    func credentials() throws {
        func read(_ field: String) -> OCSCredentials? {
            var head = head("GET", Self.list)
            head.authorization = Secret(field.utf8)
            return OCSRequest(head)?.credentials
        }
        for scheme in ["Basic ", "basic  "] {
            let found = try #require(read(scheme + Base64.text(Array("älice:a:b".utf8))))
            #expect(found.user == "älice" && found.password.text == "a:b")
        }
        let none = [
            "", "Basic", "Basic ", "Basic\u{0}YTpi", "Basic %%%", "Bearer YTpi",
            "Basic " + Base64.text(Array("alice".utf8)),
            "Basic " + Base64.text(Array(":b".utf8)), "Basic " + Base64.text([0xFF, 0x3A, 0x62]),
            "Basic " + Base64.text([UInt8](repeating: 0x3A, count: 3_000))
        ]
        for field in none { #expect(read(field) == nil, "\(field.prefix(40))") }
    }

    @Test("Ids come as a form's list or JSON's; 201 are too many, and none at all a fault")
    func ids() throws {
        func ask(_ body: String, json: Bool = false) throws -> [Int64]? {
            guard
                case .success(.exists(let ids)) = try call(
                    head("POST", Self.list + "/exists", json: json), body)
            else { return nil }
            return ids
        }
        #expect(try ask("ids[]=1&ids%5B1%5D=2&ids[]=x") == [1, 2, 0])
        #expect(
            try ask(#"{"ids":[1,"2",null,1.5,9223372036854775807,9223372036854775808]}"#, json: true)
                == [1, 2, 0, 0, .max, 0])
        #expect(try ask(#"{"ids":[]}"#, json: true) == [])
        for (body, json) in [("", false), ("ids=1", false), (#"{"ids":1}"#, true)] {
            #expect(try ask(body, json: json) == nil)
        }
        let many = { (count: Int) in Array(repeating: "ids[]=1", count: count).joined(separator: "&") }
        #expect(try ask(many(200))?.count == 200)
        #expect(try ask(many(201)) == nil && ask(many(1_000)) == nil)
    }

    @Test("Any text comes out of both formats as it went in, but for what XML cannot say")
    func texts() throws {
        var random = SeededRandom(seed: 30)
        let odd: [Unicode.Scalar] = [
            "<", ">", "&", "\"", "'", "\r", "\n", "\t", "]", "\u{0}", "\u{1F}", "\u{7F}",
            "\u{85}", "\u{2028}", "\u{FFFE}", "ä", "😀", " ", "/", "\\"
        ]
        for _ in 0..<300 {
            var text = String.UnicodeScalarView()
            for _ in 0..<Int.random(in: 1...20, using: &random) {
                text.append(odd.randomElement(using: &random)!)
            }
            let subject = "x" + String(text) + "x"
            let answer = try StoredEnds.answer(subject)
            let json = try answer.body(.v2, .json).reveal { try JSONValue.parse($0) }
            #expect(json["ocs"]?["data"]?["subject"]?.string == subject)
            for version in OCSAnswer.Version.allCases {
                let reader = XMLReader()
                let parser = XMLParser(data: Data(answer.body(version, .xml).text.utf8))
                parser.delegate = reader
                #expect(parser.parse(), "\(subject.debugDescription)")
                let plain = String(
                    String.UnicodeScalarView(
                        subject.unicodeScalars.map {
                            $0.value < 0x20 && !"\t\n\r".unicodeScalars.contains($0) || $0.value == 0xFFFE
                                ? "\u{FFFD}" : $0
                        }))
                #expect(Array((reader.texts["subject"] ?? "").utf8) == Array(plain.utf8))
                #expect(reader.texts["notification_id"] == "1" && reader.texts["shouldNotify"] == "1")
            }
        }
    }
}

/// The text of each element, by its name.
private final class XMLReader: NSObject, XMLParserDelegate {
    var texts: [String: String] = [:]
    private var open: [String] = []

    func parser(
        _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) {
        open.append(name)
    }

    func parser(
        _ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?
    ) {
        open.removeLast()
    }

    func parser(_ parser: XMLParser, foundCharacters text: String) {
        guard let name = open.last else { return }
        texts[name, default: ""] += text
    }
}

extension Secret {
    var text: String { reveal { String(decoding: $0, as: UTF8.self) } }
}
