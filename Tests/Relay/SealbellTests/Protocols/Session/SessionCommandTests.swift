import Foundation
import Primitives
import PushModel
import PushTesting
import SessionPush
import Simulators
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

@Suite("A Session phone on the command line", .timeLimit(.minutes(30)))
struct SessionCommandTests {
    /// The account's id out of what `subscribe` printed.
    private func account(_ out: [String]) throws -> AccountID {
        let line = try #require(out.first)
        #expect(line.hasPrefix("account 05"))
        return try #require(AccountID(Secret(try Hex.decode(Array(line.dropFirst(8).utf8)))))
    }

    @Test(
        "It subscribes in the clear and by onion, opens what arrives, and takes itself back",
        arguments: [nil] + OnionCipher.allCases)
    func life(cipher: OnionCipher?) async throws {
        try await RelayStage.running(RelayStage.session()) { relay in
            let (person, network) = (try CommandPerson("session"), relay.stage.sandbox.session)
            let token = Hex.encode(World.live.randomBytes(32))
            try person.put("\(token)\n", at: "token")
            let way =
                cipher.map {
                    ["--onion-key", relay.relay.publicKeys["main"]?.first ?? "", "--cipher", $0.rawValue]
                } ?? []
            let arrivals = relay.stage.apns.subscribe(token: token)
            let first = await person.run(
                "subscribe",
                arguments: ["--server", relay.urls["public"] ?? "", "--token-file", "token"] + way)
            #expect(first.err == [])
            #expect(Array(first.out.dropFirst()) == ["relay: HTTP 200", "subscribed"])
            let account = try account(first.out)
            try await network.watch(1)
            let message = StorageNotice.written(Secret("see you".utf8), to: account, .live)
            network.store(message)
            let hash = message.hash.reveal { String(decoding: $0, as: UTF8.self) }
            let delivery = try await arrivals.next("a delivery")
            let push = String(decoding: delivery.body, as: UTF8.self)
            let opened = await person.run("open", input: push)
            #expect(
                opened.out == [
                    "message: namespace 0, hash \(hash), 7 bytes", Base64.text(Array("see you".utf8))
                ])
            try writeFile(person.folder.path + "/push", delivery.body, replacing: true)
            #expect(await person.run("open", "--file", "push").out == opened.out)
            // Again, with what the state file holds.
            let again = await person.run(
                "subscribe", arguments: cipher == nil ? [] : Array(way.suffix(2)))
            #expect(again.out == [first.out[0], "relay: HTTP 200", "subscribed again"])
            let gone = await person.run("unsubscribe", arguments: Array(way.suffix(2)))
            #expect(gone.out == ["relay: HTTP 200", "unsubscribed"])
            let nothing = await person.run("unsubscribe")
            #expect(nothing.status == .failed && nothing.out.isEmpty)
            for run in [first, opened, again, gone] {
                #expect(!(run.out + run.err).joined().contains(token))
            }
        }
    }

    @Test(
        "Whoever writes in a sandbox is heard by the relay, and the phone fetches from there and opens",
        arguments: [SessionService.apns, .firebase])
    func sandbox(_ service: SessionService) async throws {
        try await RelayStage.running(RelayStage.session()) { relay in
            let (person, directory) = (try CommandPerson("session"), try relay.sandboxFile())
            let subscribed = await person.run(
                "subscribe", "--server", relay.urls["public"] ?? "", "--service", service.rawValue)
            #expect(subscribed.err == [])
            let account = try #require(subscribed.out.first?.split(separator: " ").last.map(String.init))
            func send(_ account: String, _ text: String) async -> CommandRun {
                await .of(
                    ["device", "session", "send", "--to", account, "--sandbox", directory],
                    in: person.folder.path, input: text)
            }
            let sent = await send(account, "see you")
            #expect(sent.out == ["stored, and told to the push server"] && sent.status == .done)
            let opened = await person.run("open", "--sandbox", directory)
            #expect(opened.out.count == 2 && opened.out.last == Base64.text(Array("see you".utf8)))
            let push = try #require(opened.out.first)
            // The same text once more is another message.
            #expect(await send(account, "see you").status == .done)
            try await asked(for: "the second push") {
                let again = await person.run("open", "--sandbox", directory)
                return again.out.count == 2 && again.out.first != push
            }
            // Server and key are the sandbox's own, and the request is sealed as apps seal theirs.
            let other = try CommandPerson("session")
            let told = await other.run("subscribe", "--sandbox", directory)
            #expect(told.err == [] && told.out.last == "subscribed", "\(told.all)")
            let kept = try JSONValue.parse(Array(try Data(contentsOf: URL(filePath: other.state))))
            #expect(kept["onion_key"]?.string == relay.relay.publicKeys["main"]?.first)
            #expect(kept["server"]?.string == relay.urls["public"])
            let nowhere = await other.run("subscribe", "--sandbox", other.folder.path)
            #expect(nowhere.status == .unavailable && nowhere.out == [])
            #expect(await send("05ad", "see you").status == .usage)
            let long = await send(account, String(repeating: "a", count: 2_049))
            #expect(long.status == .usage && long.out.isEmpty)
        }
    }

    @Test("Another phone's push, and what is no push, are not opened")
    func foreign() async throws {
        try await RelayStage.running(RelayStage.session()) { relay in
            let (person, other) = (try CommandPerson("session"), try SessionPhone(.apns))
            let subscribed = await person.run("subscribe", "--server", relay.urls["public"] ?? "")
            #expect(subscribed.status == .done)
            let arrivals = relay.stage.apns.subscribe(token: other.token)
            #expect(try await other.subscribe(at: relay) == [.added])
            try await relay.stage.sandbox.session.watch(2)
            relay.stage.sandbox.session.store("not for you", for: other)
            let delivery = try await arrivals.next("a delivery")
            for input in [String(decoding: delivery.body, as: UTF8.self), "no push", "{}", ""] {
                let opened = await person.run("open", input: input)
                #expect(opened.status == .failed && opened.out.isEmpty)
                #expect(!opened.err.isEmpty)
            }
        }
    }

    @Test("A wrong onion key, and what is no push server, are told apart by one line each")
    func wrongKey() async throws {
        try await RelayStage.running(RelayStage.session()) { relay in
            let url = relay.urls["public"] ?? ""
            let right = relay.relay.publicKeys["main"]?.first ?? ""
            let other = Hex.encode(X25519KeyPair.generate(.live).publicKey)
            let person = try CommandPerson("session")
            func subscribe(_ key: String, at url: String) async -> (status: Ending, said: [String]) {
                let run = await person.run("subscribe", "--server", url, "--onion-key", key)
                return (run.status, run.out.dropFirst() + run.err)
            }
            let wrong = await subscribe(other, at: url)
            #expect(wrong.status == .failed && wrong.said.count == 1)
            #expect(wrong.said[0].contains("its onion key is another than --onion-key"))
            let zero = await subscribe(String(repeating: "0", count: 64), at: url)
            #expect(zero.status == .usage && zero.said[0].contains("--onion-key"))
            let elsewhere = await subscribe(right, at: relay.urls["admin"] ?? "")
            #expect(elsewhere.status == .failed && elsewhere.said.count == 1)
            #expect(elsewhere.said[0].contains("is no push server (HTTP 404)"))
            #expect(try await relay.statistic("subscription")?.int64 == 0)
            // The file has kept the phone, and takes the right key.
            let mended = await subscribe(right, at: url)
            #expect(mended.said == ["relay: HTTP 200", "subscribed"])
        }
    }

    @Test("What it keeps is for its owner alone, and what it cannot do it says without a secret")
    func faults() async throws {
        let person = try CommandPerson("session")
        let without = await person.run("subscribe")
        #expect(without.status == .usage && without.err.joined().contains("--server"))
        #expect(await person.run("open").status == .failed)
        #expect(await person.run("unsubscribe").status == .failed)
        #expect(await person.run("subscribe", "--service", "huawei").status == .usage)
        #expect(await person.run("subscribe", "--cipher", "rot13").status == .usage)
        let misspelt = await person.run(
            "subscribe", "--server", "http://localhost:1", "--onion-key", "0123")
        #expect(misspelt.status == .usage && misspelt.err.joined().contains("--onion-key"))
        #expect(!FileManager.default.fileExists(atPath: person.state), "nothing was written")
        let onion = String(repeating: "09", count: 32)
        let unreached = await person.run(
            "subscribe", "--server", "http://localhost:1", "--onion-key", onion)
        #expect(unreached.status == .unavailable)
        #expect(unreached.out.last == "relay: no answer")
        let mode = try FileManager.default.attributesOfItem(atPath: person.state)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let kept = try JSONValue.parse(Array(try Data(contentsOf: URL(fileURLWithPath: person.state))))
        let secrets = try ["seed", "token", "kept"].map { try #require(kept[$0]?.string) }
        for run in [without, misspelt, unreached] {
            let text = (run.out + run.err).joined()
            #expect(secrets.allSatisfy { !text.contains($0) })
        }
        try writeFile(person.state, Array("{\"seed\":\"\(secrets[0])\"}".utf8), replacing: true)
        let broken = await person.run("subscribe")
        #expect(broken.status == .failed && !broken.err.joined().contains(secrets[0]))
    }
}
