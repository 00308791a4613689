import Foundation
import PushModel
import PushTesting
import SessionPush
import Simulators
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

/// Over real sockets; the swarm has nothing to say here.
@Suite("The paths of a Session instance", .timeLimit(.minutes(30)))
struct SessionFaceTests {
    /// Runs `body` with a relay.
    private func relay(_ more: String = "", _ body: (RunningRelay) async throws -> Void) async throws {
        let text = RelayStage.session(more)
        try await RelayStage.with(text) { stage in try await stage.run { try await body($0) } }
    }

    /// The members of an answer, of one element or of each of an array.
    private func members(_ answer: LocalCall.Answer) throws -> [JSONValue] {
        #expect(answer.status == 200)
        #expect(answer.header("content-type") == "application/json")
        let json = try JSONValue.parse(answer.body)
        return json.array ?? [json]
    }

    private func element(_ phone: SessionPhone) throws -> String {
        let calls = try phone.bodies()
        return try #require(calls.first).body.reveal { String(decoding: $0, as: UTF8.self) }
    }

    @Test("A phone subscribes, renews and leaves, in the clear and inside onion requests of both kinds")
    func subscribing() async throws {
        try await relay { relay in
            for cipher in [nil, OnionCipher.xchacha20, .aesGCM] {
                let phone = try SessionPhone(.apns)
                let now = World.live.now()
                #expect(try await phone.subscribe(at: relay, by: cipher) == [.added])
                // Its own clock tells it to come again within a week.
                let later = now + .seconds(7 * 86_400)
                #expect(try await phone.subscribe(at: relay, by: cipher, now: later) == [.refused(error: 4)])
                #expect(try await phone.leave(at: relay, by: cipher) == [.removed(wasThere: true)])
            }
        }
    }

    @Test("What body and headers call themselves does not matter; an array is answered in its order")
    func arrays() async throws {
        try await relay { relay in
            let element = try element(SessionPhone(.firebase))
            for type in ["application/x-www-form-urlencoded", "text/plain", "application/json"] {
                let headers = [(name: "Content-Type", value: Secret(type.utf8))]
                let answer = try await relay.session("/subscribe", Secret(element.utf8), headers: headers)
                #expect(try members(answer).first?["success"]?.bool == true, "\(type)")
            }
            let others = try (0..<9).map { _ in try self.element(SessionPhone(.apnsSandbox)) }
            let list = (["1", others[0], "{}", element, "null"] + others).joined(separator: ",")
            let answer = try await relay.session("/subscribe", Secret("[\(list)]".utf8))
            let found = try members(answer)
            #expect(found.map { $0["error"]?.int64 }.prefix(5) == [1, nil, 1, nil, 1])
            #expect(found[1]["added"]?.bool == true && found[3]["updated"]?.bool == true)
            #expect(found[5]["updated"]?.bool == true, "what stood first was first")
            #expect(found.dropFirst(6).allSatisfy { $0["added"]?.bool == true })
            let empty = try await relay.session("/subscribe", Secret("[]".utf8))
            #expect(empty.status == 200 && empty.text == "[]")
        }
    }

    @Test("Bodies that cannot be read are refused with 200 and the number 1")
    func badBodies() async throws {
        try await relay { relay in
            let padded = "[" + String(repeating: " ", count: 99_999) + "]"
            #expect(padded.utf8.count == 100_001)
            for body in ["", "x", "1", "\"text\"", "{", "[{]", "[{}", padded, "null", "{}"] {
                let answer = try await relay.session("/subscribe", Secret(body.utf8))
                #expect(try members(answer).map { $0["error"]?.int64 } == [1], "\(body.prefix(10))")
            }
            let deep = String(repeating: "[", count: 50_000)
            let answer = try await relay.session("/unsubscribe", Secret(deep.utf8))
            #expect(try members(answer).map { $0["error"]?.int64 } == [1])
            let many = "[" + Array(repeating: "0", count: 50_000).joined(separator: ",") + "]"
            #expect(many.utf8.count == 100_001)
            let fewer = try await relay.session("/subscribe", Secret(many.dropLast(3).utf8))
            #expect(try members(fewer).map { $0["error"]?.int64 } == [1])
        }
    }

    @Test("A body in chunks is read like any other, and none at all is none")
    func chunked() async throws {
        try await relay { relay in
            let element = try element(SessionPhone(.apns))
            let half = element.index(element.startIndex, offsetBy: element.count / 2)
            let parts = [element[..<half], element[half...]]
            let chunks = parts.map { String($0.utf8.count, radix: 16) + "\r\n\($0)\r\n" }.joined()
            for (body, word) in [
                ("Transfer-Encoding: chunked\r\n\r\n\(chunks)0\r\n\r\n", #""added":true"#),
                ("\r\n", #""error":1"#)
            ] {
                let stranger = try await Stranger.connect(to: try relay.door().port)
                stranger.send("POST /subscribe HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + body)
                #expect(await stranger.status() == 200)
                #expect(stranger.text.contains(word), "\(stranger.text)")
                stranger.close()
            }
        }
    }

    @Test("Other paths and methods are answered as such, outside and inside of an onion request")
    func paths() async throws {
        try await relay { relay in
            for path in ["/subscribe", "/unsubscribe", "/oxen/v4/lsrpc"] {
                let answer = try await relay.session(path, Secret([]), method: "PUT")
                #expect(answer.status == 405 && answer.header("allow") == "POST", "\(path)")
            }
            #expect(try await relay.session("/oxen/v3/lsrpc", Secret([])).status == 404)
            func inner(_ head: String, _ body: String = "[]") async throws -> String {
                try await relay.onion("l\(head.utf8.count):\(head)\(body.utf8.count):\(body)e")
            }
            let right = try await inner(#"{"method":"post","endpoint":"/subscribe?a=b"}"#)
            #expect(right.contains(#""code": 200"#) && right.hasSuffix("2:[]e"))
            #expect(try await inner(#"{"method":"GET","endpoint":"/subscribe"}"#).contains(#""code": 405"#))
            #expect(
                try await inner(#"{"method":"POST","endpoint":"/oxen/v4/lsrpc"}"#).contains(#""code": 404"#))
            #expect(try await inner(#"{"method":"POST"}"#).contains("Invalid v4 onion request"))
            let long = String(repeating: " ", count: 100_001)
            let refused = try await inner(#"{"method":"POST","endpoint":"/subscribe"}"#, long)
            #expect(refused.contains(#""code": 200"#) && refused.contains(#""error":1"#))
            #expect(try await relay.onion("i1e", .aesGCM).contains(#""code": 400"#))
        }
    }

    @Test("What no key opens is a 400 in the clear, and what is too long is not read")
    func closedOnions() async throws {
        try await relay { relay in
            for count in [0, 3, 4, 5, 100, 70_000] {
                let junk = Secret(World.live.randomBytes(count))
                let answer = try await relay.session("/oxen/v4/lsrpc", junk)
                #expect(answer.status == 400, "\(count)")
                #expect(answer.text.count < 100)
            }
            let long = Secret([UInt8](repeating: 0, count: SessionLimits.onionBodyBytes + 1))
            #expect(try await relay.session("/oxen/v4/lsrpc", long).status == 413)
        }
    }

    @Test("Without plain_http the two calls are answered inside onion requests alone")
    func onionAlone() async throws {
        try await relay(", plain_http: false") { relay in
            let phone = try SessionPhone(.apns)
            #expect(try await relay.session("/subscribe", Secret("[]".utf8)).status == 404)
            #expect(try await phone.subscribe(at: relay, by: .xchacha20) == [.added])
        }
    }

    @Test("A service that the configuration does not name is refused with the number 2, and so is Huawei's")
    func services() async throws {
        try await relay(", services: { apns: acme }") { relay in
            #expect(try await SessionPhone(.apns).subscribe(at: relay) == [.added])
            let body = try element(SessionPhone(.firebase))
            for text in [
                body, body.replacing("firebase", with: "huawei"), body.replacing("firebase", with: "x")
            ] {
                let answer = try await relay.session("/subscribe", Secret(text.utf8))
                #expect(try members(answer).map { $0["error"]?.int64 } == [2])
            }
        }
    }

    @Test("One address that asks too often hears so, element by element, and onion requests go on")
    func tolls() async throws {
        try await relay { relay in
            let element = try element(SessionPhone(.apns))
            let list = "[" + Array(repeating: element, count: 100).joined(separator: ",") + "]"
            #expect(list.utf8.count < 100_000)
            var refused = 0
            for _ in 0..<2 {
                let answer = try await relay.session("/subscribe", Secret(list.utf8))
                refused += try members(answer).count { $0["error"]?.int64 == 3 }
            }
            // An account signs 30 times a minute.
            #expect(refused >= 130)
            #expect(try await SessionPhone(.apns).subscribe(at: relay, by: .aesGCM) == [.added])
        }
    }
}
