import Foundation
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import StatusPush
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

@Suite("A member of Status on the command line", .timeLimit(.minutes(30)))
struct StatusCommandTests {
    private static func person() throws -> CommandPerson { try CommandPerson("status", "member.json") }

    @Test("One registers, another sends, the push is opened, and servers forget")
    func life() async throws {
        try await RelayStage.statusRelay { relay in
            let (bob, alice) = (try Self.person(), try Self.person())
            let server = try #require(relay.relay.publicKeys["main"]?.first)
            let place = [
                "--node", try #require(relay.stage.sandbox.waku.clients.url), "--server", server, "--topic",
                StatusMember.topic
            ]
            let token = Hex.encode(World.live.randomBytes(32))
            try bob.put("\(token)\n", at: "token")
            let arrivals = relay.stage.apns.subscribe(token: token)
            let first = await bob.run("register", "--token-file", "token", arguments: place)
            #expect(first.err == [] && first.status == .done)
            #expect(first.out.last == "server \(server.prefix(12)): registered")
            let account = try #require(first.out.first?.split(separator: " ").last.map(String.init))
            #expect(StatusKeyFile.point(account) != nil)
            // Node, key and bundle id are the sandbox's own.
            let second = await alice.run("register", "--sandbox", try relay.sandboxFile())
            #expect(second.status == .done && second.out.last == first.out.last, "\(second.all)")
            let sent = await alice.run("send", "--to", account, input: "see you at nine")
            #expect(sent.out == ["taken for 1 of 1 phones"] && sent.err == [])
            let delivery = try await arrivals.next("a push")
            let push = String(decoding: delivery.body, as: UTF8.self)
            let opened = await bob.run("open", input: push)
            #expect(opened.out.last == "see you at nine" && opened.out.count == 2)
            #expect(await bob.run("open", input: push).out == ["ignored: it came before"])
            let fetched = await bob.run("open", "--sandbox", try relay.sandboxFile())
            #expect(fetched.out == ["ignored: it came before"], "\(fetched.err)")
            #expect(await alice.run("open", input: push).out == ["ignored: for another account"])
            let gone = await bob.run("unregister")
            #expect(gone.out == ["server \(server.prefix(12)): unregistered"])
            let after = await alice.run("send", "--to", account, input: "still there?")
            #expect(after.status == .failed)
            #expect(await bob.run("unregister").status == .failed)
            let again = await bob.run("register")
            #expect(again.out.last == "server \(server.prefix(12)): registered")
            let secrets = try ["key", "token", "device"].map { name in
                let kept = try JSONValue.parse(
                    Array(try Data(contentsOf: URL(fileURLWithPath: bob.state))))
                return try #require(kept[name]?.string)
            }
            for run in [first, sent, opened, gone, after, again] {
                let said = (run.out + run.err).joined()
                #expect(secrets.allSatisfy { !said.contains($0) })
            }
        }
    }

    @Test("What it cannot do it says in a line, and what is wrong is not kept")
    func faults() async throws {
        let person = try Self.person()
        let key = "0x04" + String(repeating: "1", count: 128)
        for words in [
            ["register"], ["register", "--node", "http://192.0.2.1:8645"], ["register", "--server", key],
            ["register", "--service", "huawei"], ["send", "--to", key]
        ] {
            let run = await person.run(words[0], arguments: Array(words.dropFirst()))
            #expect(run.status == .usage && !run.err.isEmpty && run.out.isEmpty, "\(words)")
        }
        for word in ["open", "unregister"] { #expect(await person.run(word).status == .failed) }
        #expect(!FileManager.default.fileExists(atPath: person.state), "nothing was written")
        let point = StatusKeyFile.publicText(Secp256k1KeyPair.generate(.live).point)
        let away = await person.run(
            "register",
            arguments: ["--node", "http://127.0.0.1:1", "--server", point, "--topic", "org.acme.status"])
        #expect(away.status == .unavailable && away.err.count == 1)
        let mode = try FileManager.default.attributesOfItem(atPath: person.state)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        for input in ["no push", "{}", ""] {
            let opened = await person.run("open", input: input)
            #expect(opened.status == .failed && opened.out.isEmpty)
        }
    }
}
