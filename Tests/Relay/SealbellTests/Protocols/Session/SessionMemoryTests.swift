import AtRest
import Foundation
import PushModel
import PushTesting
import SessionPush
import Simulators
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

#if os(Linux)
@Suite("The memory of an idle Session relay", .timeLimit(.minutes(30)))
struct SessionMemoryTests {
    private struct Running {
        let stage: RelayStage
        let relay: ServedProgram
        let door: LocalCall
        let onionKey: Secret

        /// Sends a call, by onion request or as it is.
        ///
        /// - Returns: whether the answer's one element is a success.
        func send(_ call: SessionCall, by cipher: OnionCipher?) async throws -> Bool {
            guard let cipher else {
                let answer = try await door.ask("POST", call.endpoint.rawValue, headers: [], body: call.body)
                return answer.text.contains("success")
            }
            var random = SystemRandomNumberGenerator()
            let request = try OnionServer(host: "127.0.0.1", key: onionKey)
                .request(call, through: [], cipher, using: &random)
            let answer = try await door.ask("POST", request.path, headers: [], body: request.body)
            let opened = try request.answer(status: answer.status, body: Secret(answer.body))
            return opened.status == 200
        }
    }

    /// A relay as a process of its own, whose push services, oxend and storage nodes are this one's.
    private static func with(_ body: (Running) async throws -> Void) async throws {
        try await RelayStage.with(RelayStage.session()) { stage in
            let oxend = try #require(stage.sandbox.session.daemonEndpoint)
            let text = try ServedProgram.configuration(
                RelayStage.session(", oxend: \"\(oxend)\""), at: stage)
            _ = try KeyFile.create(stage.folder.path + "/storage.keys", .live)
            try await ServedProgram.with(text, in: stage) { relay in
                let key = try Hex.decode(Array(try #require(relay.file.publicKeys["main"]?.first).utf8))
                let door = try #require(LocalCall(patient: relay.file.urls["public"]))
                try await body(Running(stage: stage, relay: relay, door: door, onionKey: Secret(key)))
            }
        }
    }

    /// Every value in the call, in each form that the relay meets.
    private static func canaries(_ call: SessionCall, of phone: SessionPhone) throws -> [Canary] {
        let json = try JSONValue.parse(call.body.reveal { Array($0) })
        var canaries = [Canary("token", phone.token)]
        for field in ["pubkey", "session_ed25519", "enc_key"] {
            canaries += try Canary.hex(field, try #require(json[field]?.string))
        }
        return canaries + [Canary("signature", try Base64.decode(try #require(json["signature"]?.string)))]
    }

    @Test(
        "Nothing of a subscription or a message is in the memory of an idle relay, nor in its log",
        .enabled(if: geteuid() == 0 && Program.path != nil, "another process's memory is root's to read"))
    func idle() async throws {
        try await Self.with { running in
            let (stage, network) = (running.stage, running.stage.sandbox.session)
            var canaries: [Canary] = []
            let ways: [(SessionService, OnionCipher?)] = [
                (.apns, nil), (.firebase, .xchacha20), (.apns, .aesGCM)
            ]
            for (count, (service, cipher)) in ways.enumerated() {
                let phone = try SessionPhone(service)
                let call = try #require(try phone.bodies().first)
                canaries += try Self.canaries(call, of: phone)
                #expect(try await running.send(call, by: cipher))
                try await network.watch(count + 1)
                let arrivals =
                    service == .firebase
                    ? stage.fcm.subscribe(address: phone.token) : stage.apns.subscribe(token: phone.token)
                let message = CanaryCast.word("message")
                canaries += [
                    Canary("hash", network.store(message, for: phone)), Canary("message", message)
                ]
                let delivery = try await arrivals.next("a push")
                #expect(try phone.message(delivery).text == message)
                canaries.append(Canary("sealed push", Array(delivery.body.suffix(60).prefix(40))))
            }
            let stray = CanaryCast.word("stray")
            canaries.append(Canary("stray", stray))
            for body in [#"{"\#(stray)":"\#(stray)"}"#, stray, "[\(stray)]"] {
                for path in ["/subscribe", "/unsubscribe", "/oxen/v4/lsrpc"] {
                    _ = try await running.door.ask("POST", path, headers: [], body: Secret(body.utf8))
                }
            }
            for node in SessionNetworkSimulator.nodes {
                network.say(node, [Array("notify.message".utf8), Array("d1:@9:\(stray)e".utf8)])
                network.say(node, [Array(stray.utf8)])
            }
            try await asked(for: "an empty outbox") { try await running.relay.owed() == 0 }
            // What was shown is kept for a few seconds, for other nodes of the swarm.
            // Whatever is left after half a minute is told below by its name.
            try? await asked(for: "a memory without what was said", looks: 30) {
                try MemoryImage(of: running.relay.program.pid).hits(canaries).isEmpty
            }
            let image = try MemoryImage(of: running.relay.program.pid)
            #expect(image.count > 1 << 20)
            for hit in image.hits(canaries) { Issue.record("\(hit)") }
            // The search can find: the relay knows the core key by which it is known.
            let answer = try await running.relay.admin.ask("GET", "/session/statistics")
            let core = try #require(try JSONValue.parse(answer.body)["core_key"]?.string)
            let known = Canary("core key", try Hex.decode(Array(core.utf8)))
            #expect(try !MemoryImage(of: running.relay.program.pid).hits([known]).isEmpty)
            canaries.expectNone(in: [("the log", Data(await running.relay.log().utf8))])
        }
    }
}
#endif
