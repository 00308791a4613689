import AtRest
import Foundation
import PushModel
import PushTesting
import RSAKeys
import Simulators
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

#if os(Linux)
@Suite("The memory of an idle Nextcloud relay", .timeLimit(.minutes(30)))
struct NextcloudMemoryTests {
    private static let text = RelayStage.oneApp(
        serving: "[cloud]", app: "voip: true, ",
        "  cloud: { protocol: nextcloud, apps: [acme], bare_path: false }\n")

    private struct Running {
        let stage: RelayStage
        let relay: ServedProgram
        let door: LocalCall

        func ask(_ method: String, _ path: String, _ body: Secret) async throws -> LocalCall.Answer {
            let form = Secret("application/x-www-form-urlencoded".utf8)
            let agent = Secret("Mozilla/5.0 (iOS) Nextcloud-Talk v20.1.0 (Strict VoIP)".utf8)
            return try await door.ask(
                method, "/cloud" + path, headers: [("Content-Type", form), ("User-Agent", agent)], body: body)
        }
    }

    /// A relay as a process of its own, whose push services are this one's.
    private static func with(_ body: (Running) async throws -> Void) async throws {
        try await RelayStage.with(text) { stage in
            let configuration = try ServedProgram.configuration(text, at: stage)
            _ = try KeyFile.create(stage.folder.path + "/storage.keys", .live)
            try await ServedProgram.with(configuration, in: stage) { relay in
                let door = try #require(LocalCall(patient: relay.file.urls["public"]))
                try await body(Running(stage: stage, relay: relay, door: door))
            }
        }
    }

    /// A refusal that passes, with words in body and field that no service says otherwise.
    private static func refusal(_ word: String) -> PreparedAnswer {
        PreparedAnswer(
            status: 503, body: Array("{\"reason\":\"\(word)\",\"error\":{\"message\":\"\(word)\"}}".utf8),
            contentType: "application/x-\(word)", times: 1)
    }

    @Test(
        "Nothing of registrations, pushes and push services' answers is in the memory of an idle relay",
        .enabled(if: geteuid() == 0 && Program.path != nil, "another process's memory is root's to read"))
    func idle() async throws {
        try await Self.with { running in
            let stage = running.stage
            var cast = try NextcloudCast(cloud: "cloud.example.org")
            var canaries: [Canary] = []
            let (apple, google) = (CanaryCast.word("apple"), CanaryCast.word("google"))
            for (name, word) in [("Apple's answer", apple), ("Google's answer", google)] {
                canaries.append(Canary(name, word))
            }
            stage.apns.turnConnections { $0.answers = [Self.refusal(apple)] }
            stage.fcm.turnConnections { $0.answers = [Self.refusal(google)] }
            let arrivals = [
                stage.apns.subscribe(token: cast.alert), stage.apns.subscribe(token: cast.voip),
                stage.fcm.subscribe(address: cast.address)
            ]
            for form in [cast.apple.form(cast.both), cast.google.form(cast.address)] {
                #expect(try await running.ask("POST", "/devices", form).status == 200)
            }
            let entries = try [
                cast.entry(cast.apple, cast.both), cast.entry(cast.apple, cast.both, type: "voip"),
                cast.entry(cast.google, cast.address, type: "background")
            ]
            #expect(
                try await running.ask("POST", "/notifications", HandmadeDevice.batch(entries)).failed == 0)
            for stream in arrivals { _ = try await stream.next("a push") }
            #expect(
                stage.apns.connectionKnobs.answers.count == 1 && stage.fcm.connectionKnobs.answers.count == 1)
            // A stranger asks at each door.
            let stranger = try HandmadeDevice(cast.apple.preimage)
            canaries += Self.key("a stranger's key", stranger)
            let forged = HandmadeDevice.batch([try stranger.entry(cast.both)])
            #expect(try await running.ask("POST", "/notifications", forged).failed == 1)
            #expect(try await running.ask("POST", "/devices", stranger.form(cast.both)).status == 409)
            #expect(try await running.ask("DELETE", "/devices", stranger.form()).status == 403)
            for device in [cast.apple, cast.google] {
                canaries += Self.key("a user's key", device)
                #expect(try await running.ask("DELETE", "/devices", device.form()).status == 200)
            }
            try await asked(for: "an empty outbox") { try await running.relay.owed() == 0 }
            canaries += cast.canaries
            let pid = running.relay.program.pid
            await MemoryImage.wait(until: pid, holdsNoneOf: canaries, looks: 30)
            let image = try MemoryImage(of: pid)
            #expect(image.count > 1 << 20)
            for hit in image.hits(canaries) { Issue.record("\(hit)") }
            // The search can find: the relay knows its app's name.
            #expect(!image.hits([Canary("bundle", "org.acme.chat")]).isEmpty)
            canaries.expectNone(in: [("the log", Data(await running.relay.log().utf8))])
        }
    }

    /// A modulus as it comes, and as the number that a library computes with.
    private static func key(_ name: String, _ device: HandmadeDevice) -> [Canary] {
        let modulus = Array(device.user.publicKey.der.suffix(120).prefix(64))
        return [Canary(name, modulus), Canary(name + ", as a number", modulus.reversed())]
    }
}
#endif
