import Foundation
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

/// What an origin must not show: looked for byte by byte in its log, its pages and its files.
@Suite("An origin's secrets", .timeLimit(.minutes(30)))
struct OriginBlindnessTests {
    private static let token = "application-token-canary"
    private static let text = "canary of a notification's text"
    private static let sender = "canary of a sender"

    @Test("Texts, tokens and keys stand in no log, page or file, before they have left and after")
    func secrets() async throws {
        try await RelayStage.with(
            RunningOrigin.both(", application_token_file: token"),
            prepare: { folder in
                try Self.token.write(toFile: folder + "/token", atomically: true, encoding: .utf8)
                chmod(folder + "/token", 0o600)
            }
        ) { stage in
            try await stage.run { relay in
                let running = RunningOrigin(relay: relay, origin: relay)
                let key = try await running.begin()
                let phone = try await OriginPhone(.fcm, .zap, running, key: key)
                let secrets =
                    [
                        Canary("application token", Self.token), Canary("text", Self.text),
                        Canary("sender", Self.sender), Canary("device token", phone.token)
                    ] + (try Canary.hex("API key", key))

                // Owed, while the push service takes its time.
                stage.fcm.turnConnections { $0.answerDelay = .fixed(.seconds(5)) }
                let call =
                    #"{"user":"\#(RunningOrigin.user)","content":"#
                    + #"{"text":"\#(Self.text)","sender":"\#(Self.sender)"},"key":"k"}"#
                let answer = try await relay.door("origin").ask(
                    "POST", "/notify", headers: [("Authorization", Secret("Bearer \(Self.token)".utf8))],
                    body: Secret(call.utf8))
                #expect(answer.status == 202)
                try await expectNone(of: secrets, stage, relay)
                stage.fcm.turnConnections { $0.answerDelay = .none }
                // What nobody may do shows nothing either.
                _ = try await relay.door("origin").ask(
                    "POST", "/notify", headers: [("Authorization", Secret("Bearer \(key)".utf8))],
                    body: Secret(call.utf8))
                _ = try await running.ask(key, Self.token, "POST", "/api/v1/register", Secret([]))
                try await expectNone(of: secrets, stage, relay)
            }
        }
    }

    private func expectNone(
        of secrets: [Canary], _ stage: RelayStage, _ relay: RunningRelay
    ) async throws {
        var places = [("log", Array(stage.log.all.joined(separator: "\n").utf8))]
        for path in ["/metrics", "/status", OriginDesk.Path.status.rawValue, OriginDesk.Path.users.rawValue] {
            places.append((path, try await relay.admin(path).body))
        }
        for name in try FileManager.default.subpathsOfDirectory(atPath: stage.state) {
            var isFolder: ObjCBool = false
            let path = stage.state + "/" + name
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), !isFolder.boolValue
            else { continue }
            places.append((name, Array(try Data(contentsOf: URL(fileURLWithPath: path)))))
        }
        #expect(places.contains { $0.0 == "relay.sqlite" && $0.1.count > 1_000 })
        for (name, bytes) in places {
            let data = Data(bytes)
            for secret in secrets {
                #expect(!secret.isIn(data), "\(secret.name) in \(name)")
            }
        }
    }
}
