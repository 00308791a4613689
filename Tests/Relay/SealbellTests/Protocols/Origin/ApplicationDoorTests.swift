import Foundation
import PushModel
import PushTesting
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

/// Applications at an origin's door, over real sockets.
@Suite("An origin's applications", .timeLimit(.minutes(30)))
struct ApplicationDoorTests {
    private static let token = "application-token-of-16"

    private static func ask(
        _ running: RunningOrigin, _ method: String, _ path: String, _ body: String? = nil,
        token: String? = ApplicationDoorTests.token
    ) async throws -> (status: Int, json: JSONValue) {
        var headers: [(name: String, value: Secret)] = []
        if let token { headers.append(("Authorization", Secret("Bearer \(token)".utf8))) }
        let answer = try await running.origin.door("origin").ask(
            method, path, headers: headers, body: body.map { Secret($0.utf8) })
        return (answer.status, (try? JSONValue.parse(answer.body)) ?? .null)
    }

    private static func run(_ body: (RunningOrigin, _ key: String) async throws -> Void) async throws {
        try await RelayStage.with(
            RunningOrigin.both(", application_token_file: token"),
            prepare: { folder in
                try (Self.token + "\n").write(toFile: folder + "/token", atomically: true, encoding: .utf8)
                chmod(folder + "/token", 0o600)
            }
        ) { stage in
            try await stage.run { relay in
                let running = RunningOrigin(relay: relay, origin: relay)
                try await body(running, try await running.begin())
            }
        }
    }

    @Test("A text goes out once for a key, is told of, and is taken back")
    func life() async throws {
        try await Self.run { running, key in
            let phone = try await OriginPhone(.apns, .zap, running, key: key)
            let call =
                #"{"user":"ada@example.org","content":{"text":"Tea","sender":"Kettle"},"key":"tea-1"}"#
            async let left = Self.ask(running, "POST", "/notify", call)
            async let right = Self.ask(running, "POST", "/notify", call)
            let answers = try await [left, right]
            let again = try await Self.ask(running, "POST", "/notify", call)
            #expect(answers.map(\.status) == [202, 202] && again.status == 202)
            let id = try #require(again.json["id"]?.string)
            #expect(answers.allSatisfy { $0.json["id"]?.string == id && $0.json["devices"]?.int64 == 1 })
            #expect(try await running.became(of: id) == ["accepted"])

            let told = try await Self.ask(running, "GET", "/notify/\(id)")
            let device = try #require(told.json["devices"]?.array?.first)
            #expect(device["state"]?.string == "accepted")
            #expect(device["device"]?.string?.hasPrefix("account ") == true)

            let withdrawal = #"{"user":"ada@example.org","withdraw":["\#(id)"],"key":"tea-2"}"#
            let back = try await Self.ask(running, "POST", "/notify", withdrawal)
            #expect(back.status == 202)
            let taken = try #require(back.json["id"]?.string)
            #expect(taken != id)
            #expect(try await running.became(of: taken) == ["accepted"])
            let repeated = try await Self.ask(running, "POST", "/notify", withdrawal)
            #expect(repeated.status == 202 && repeated.json["id"]?.string == taken)
            let seen = try await phone.opened(2)
            guard case .message(let message) = seen[0].body, case .remove(let ids) = seen[1].body else {
                Issue.record("a message, and then its removal: \(seen.count)")
                return
            }
            #expect(message.content == "Tea" && message.senderName == "Kettle")
            #expect(ids == [message.id])
            // Nothing else came: three calls with one key are one notification.
            #expect(seen.count == 2)
        }
    }

    @Test(
        "What cannot be done has one answer",
        arguments: [
            (#"{"user":"nobody","content":"x"}"#, 404), (#"{"user":"ada@example.org"}"#, 400),
            (#"{"content":"x"}"#, 400), ("no JSON", 400), (#"["user"]"#, 400),
            (#"{"user":"ada@example.org","content":""}"#, 400),
            (#"{"user":"ada@example.org","content":{"sender":"a"}}"#, 400),
            (#"{"user":"ada@example.org","content":{"text":"x","sender":7}}"#, 400),
            (#"{"user":"ada@example.org","content":"x","withdraw":[]}"#, 400),
            (#"{"user":"ada@example.org","withdraw":[]}"#, 400),
            (#"{"user":"ada@example.org","withdraw":["7"]}"#, 400),
            (#"{"user":"ada@example.org","withdraw":[7]}"#, 400),
            (#"{"user":"ada@example.org","content":"x","key":7}"#, 400),
            (#"{"user":"ada@example.org","content":"x","key":""}"#, 400),
            (#"{"user":"a\u0000b","content":"x"}"#, 404)
        ])
    func refusals(_ call: (body: String, status: Int)) async throws {
        try await Self.run { running, _ in
            let answer = try await Self.ask(running, "POST", "/notify", call.body)
            #expect(answer.status == call.status)
            #expect(try await running.origin.owed() == 0)
        }
    }

    @Test("Nobody without the token gets as far as that")
    func token() async throws {
        try await Self.run { running, _ in
            let call = #"{"user":"ada@example.org","content":"x"}"#
            for token in [nil, "", "application-token-of-17", "APPLICATION-TOKEN-OF-16"] {
                let answer = try await Self.ask(running, "POST", "/notify", call, token: token)
                #expect(answer.status == 401)
            }
            #expect(try await Self.ask(running, "GET", "/notify").status == 405)
            #expect(try await Self.ask(running, "GET", "/notify/0").status == 404)
            #expect(try await running.origin.owed() == 0)
        }
    }
}
