import DialTesting
import Foundation
import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

@Suite("A phone of Marmot on the command line", .timeLimit(.minutes(30)))
struct MarmotCommandTests {
    private static func person(_ stage: RelayStage? = nil) throws -> CommandPerson {
        let person = try CommandPerson("marmot", "phone.json", stage.map { _ in ["--ca", "ca.pem"] } ?? [])
        if let stage { try person.put(stage.sandbox.authority.certificatePEM, at: "ca.pem") }
        return person
    }

    /// Where phones and server meet, once the server has said where it listens.
    private static func place(_ running: RunningRelay) async throws -> [String] {
        let nostr = running.stage.sandbox.nostr
        try await MarmotSender(running).ready(running)
        try await asked(for: "the server's list") { nostr.events.contains { $0.kind == NostrKind.relayList } }
        return [
            "--relay", try #require(nostr.url), "--server",
            try #require(running.relay.publicKeys["marmot-main"]?.first)
        ]
    }

    private static func code(_ out: [String]) throws -> String {
        try #require(out.first { $0.hasPrefix("code ") }.map { String($0.dropFirst(5)) })
    }

    /// A phone with a token, in a group of its own.
    private struct Founder {
        let phone: CommandPerson
        /// Where its wakes arrive.
        let arrivals: AsyncStream<Delivery>
        let joined: CommandRun
        /// What others join the group by.
        let code: String
    }

    /// - Parameter ending: what stands behind the token in its file.
    /// - Parameter more: further words of its command line.
    private static func founder(
        at place: [String], _ running: RunningRelay, ending: String = "", _ more: [String] = []
    ) async throws -> Founder {
        let phone = try person(running.stage)
        let token = Hex.encode(World.live.randomBytes(32))
        try phone.put(token + ending, at: "token")
        let arrivals = running.stage.apns.subscribe(token: token)
        let joined = await phone.run("join", "--token-file", "token", arguments: more + place)
        return Founder(phone: phone, arrivals: arrivals, joined: joined, code: try code(joined.out))
    }

    @Test(
        "Phones join, one writes, the others are woken and fetch, and one leaves",
        arguments: TokenFormat.allCases)
    func life(_ format: TokenFormat) async throws {
        try await RelayStage.running(MarmotTests.text()) { running in
            let place = try await Self.place(running)
            let founder = try await Self.founder(
                at: place, running, ending: "\n", ["--format", format.rawValue])
            let (alice, first, code) = (founder.phone, founder.joined, founder.code)
            let bob = try Self.person(running.stage)
            #expect(first.err == [] && first.out.last == "told its token")
            let second = await bob.run(
                "join", "--group", code, "--service", "fcm", "--format", format.rawValue,
                arguments: place)
            #expect(second.err == [] && second.out.first?.hasSuffix(" joined") == true)
            #expect(second.out.last == "told its token" && !second.out.joined().contains(code))

            let sent = await bob.run("trigger", "see you at nine")
            #expect(sent.err == [] && sent.status == .done)
            #expect(sent.out.suffix(2).first?.hasSuffix("1 token, 1 of 1 triggers published") == true)
            #expect(sent.out.last == "  \(running.stage.sandbox.nostr.url ?? ""): accepted")
            let push = String(decoding: try await founder.arrivals.next("a wake").body, as: UTF8.self)
            #expect(push == #"{"aps":{"content-available":1}}"#)
            let opened = await alice.run("open", input: push)
            #expect(opened.out.first == "woken")
            #expect(opened.out.last?.hasSuffix(": see you at nine") == true)
            #expect(await alice.run("open", input: push).out == ["woken", "nothing new"])
            let fetched = await alice.run("open", "--sandbox", try running.sandboxFile())
            #expect(fetched.out == ["woken", "nothing new"], "\(fetched.err)")

            let listed = await alice.run("groups")
            #expect(listed.out.count == 3 && listed.out[0].hasSuffix(": 2 members"))
            #expect(listed.out.dropFirst().allSatisfy { $0.contains(": 1 token") })
            let gone = await alice.run("leave")
            #expect(gone.out.last?.hasSuffix(", token taken back") == true)
            let nobody = await bob.run("trigger")
            #expect(nobody.status == .done)
            #expect(nobody.out.last == "nobody to wake: no other phone has told its token")
            let secrets = try [alice, bob].flatMap { try Self.secrets($0) }
            for run in [first, second, sent, opened, listed, gone, nobody] {
                let said = (run.out + run.err).joined()
                #expect(secrets.allSatisfy { !said.contains($0) })
            }
        }
    }

    @Test("In a sandbox a phone needs nothing but its state directory, and remembers the authority")
    func sandbox() async throws {
        try await RelayStage.running(MarmotTests.text()) { running in
            _ = try await Self.place(running)
            let (alice, bob) = (try Self.person(), try Self.person())
            let directory = try running.sandboxFile()
            let first = await alice.run("join", "--sandbox", directory)
            #expect(first.err == [] && first.out.last == "told its token", "\(first.all)")
            let second = await bob.run("join", "--sandbox", directory, "--group", try Self.code(first.out))
            #expect(second.err == [] && second.out.last == "told its token", "\(second.all)")
            let sent = await bob.run("trigger", "see you at nine")
            #expect(sent.err == [] && sent.status == .done, "\(sent.all)")
            let opened = await alice.run("open", "--sandbox", directory)
            #expect(opened.out.last?.hasSuffix(": see you at nine") == true, "\(opened.all)")
        }
    }

    private static func secrets(_ person: CommandPerson) throws -> [String] {
        let kept = try JSONValue.parse(Array(try Data(contentsOf: URL(fileURLWithPath: person.state))))
        let mode = try FileManager.default.attributesOfItem(atPath: person.state)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        return try ["key", "token"].map { try #require(kept[$0]?.string) }
    }

    @Test("A phone without a token asks, is answered by one that shares, and wakes the others")
    func asking() async throws {
        try await RelayStage.running(MarmotTests.text()) { running in
            let place = try await Self.place(running)
            let founder = try await Self.founder(at: place, running)
            let (alice, code, desk) = (founder.phone, founder.code, try Self.person(running.stage))
            // Another group beside it, of which the desk knows nothing.
            #expect(await alice.run("join").status == .done)
            #expect(await alice.run("groups").out.count == 4)
            let asked = await desk.run(
                "join", "--group", code, "--service", "none", arguments: place)
            #expect(asked.out.last == "asked")
            #expect(await alice.run("share").status == .usage, "in two groups")
            let shared = await alice.run("share", "--group", code)
            #expect(shared.out.suffix(2) == ["told nothing new", "answered"], "\(shared.out)")
            #expect(
                await alice.run("share", "--group", code).out.suffix(2)
                    == ["told nothing new", "nobody waits for an answer"])
            #expect(await desk.run("ask").out == ["asked"])
            let sent = await desk.run("trigger")
            #expect(sent.status == .done && sent.err == [])
            _ = try await founder.arrivals.next("a wake")
        }
    }

    @Test("One that listens hears what is said as it is said, and answers")
    func listening() async throws {
        try await RelayStage.running(MarmotTests.text()) { running in
            let place = try await Self.place(running)
            let (alice, bob) = (try Self.person(running.stage), try Self.person(running.stage))
            let code = try Self.code(await alice.run("join", arguments: place).out)
            let notes = running.stage.sandbox.nostr.notes()
            async let heard = alice.run("listen", "--lines", "2")
            _ = try await notes.next("a request") {
                if case .requested = $0 { true } else { false }
            }
            #expect(await bob.run("join", "--group", code, arguments: place).status == .done)
            #expect(await bob.run("trigger", "hello").status == .done)
            let listened = await heard
            #expect(listened.status == .done && listened.out.count == 2)
            #expect(listened.out[0].hasSuffix(" joined") && listened.out[1].hasSuffix(": hello"))
        }
    }

    @Test("A server that nobody can find is said, and the message is said all the same")
    func unreached() async throws {
        try await RelayStage.running(MarmotTests.text()) { running in
            var place = try await Self.place(running)
            place[3] = MarmotSender.stranger.hex
            let (alice, bob) = (try Self.person(running.stage), try Self.person(running.stage))
            let code = try Self.code(await alice.run("join", arguments: place).out)
            #expect(await bob.run("join", "--group", code, arguments: place).status == .done)
            let sent = await bob.run("trigger", "hello")
            #expect(sent.status == .unavailable)
            #expect(sent.out.last?.hasSuffix("1 token, 0 of 0 triggers published") == true)
            #expect(sent.err.joined().contains("kind 10050") && sent.err.count == 1)
            #expect(
                await alice.run("open", input: #"{"aps":{"content-available":1}}"#).out.last?
                    .hasSuffix(": hello") == true)
        }
    }

    @Test("With --tor the trigger goes through the proxy alone")
    func tor() async throws {
        try await RelayStage.running(MarmotTests.text()) { running in
            let place = try await Self.place(running)
            let founder = try await Self.founder(at: place, running)
            let bob = try Self.person(running.stage)
            #expect(await bob.run("join", "--group", founder.code, arguments: place).status == .done)
            let proxy = try await SOCKSProxy(leadingTo: running.stage.sandbox.nostr.port)
            let sent = await bob.run("trigger", "--tor", "socks5://127.0.0.1:\(proxy.port)")
            #expect(sent.status == .done && sent.err == [])
            _ = try await founder.arrivals.next("a wake")
            #expect(Set(proxy.asked.map(\.username)).count == 2, "a look-up and a trigger")
            try await proxy.close()
            let without = await bob.run("trigger", "--tor", "socks5://127.0.0.1:1")
            #expect(without.status == .unavailable && without.err.joined().contains("Tor"))
        }
    }

    @Test("What it cannot do it says in a line, and what is wrong is not kept")
    func faults() async throws {
        let person = try Self.person()
        let server = MarmotSender.stranger.hex
        for words in [
            ["join"], ["join", "--relay", "wss://127.0.0.1:1"], ["join", "--server", server],
            ["join", "--relay", "ws://192.0.2.1", "--server", server],
            ["join", "--relay", "https://127.0.0.1", "--server", server],
            ["join", "--relay", "wss://127.0.0.1:1", "--server", "0x04"],
            ["join", "--relay", "wss://127.0.0.1:1", "--server", server, "--format", "mip06"],
            ["join", "--relay", "wss://127.0.0.1:1", "--server", server, "--service", "huawei"],
            ["join", "--relay", "wss://127.0.0.1:1", "--server", server, "--group", "no code"],
            ["trigger", "--tor", "http://127.0.0.1"], ["listen", "--lines", "0"]
        ] {
            let run = await person.run(words[0], arguments: Array(words.dropFirst()))
            #expect(run.status == .usage && !run.err.isEmpty && run.out.isEmpty, "\(words)")
        }
        for word in ["groups", "ask", "share", "trigger", "listen", "open", "leave"] {
            #expect(await person.run(word).status == .failed, "\(word)")
        }
        #expect(!FileManager.default.fileExists(atPath: person.state), "nothing was written")
        let away = await person.run("join", "--relay", "ws://127.0.0.1:1", "--server", server)
        #expect(away.status == .unavailable && away.err.count == 1)
        for input in ["no push", "{}", "", #"{"aps":{},"text":"x"}"#, #"{"data":{"a":"b"}}"#] {
            let opened = await person.run("open", input: input)
            #expect(opened.status == .failed && opened.out.isEmpty)
        }
        for text in ["", "{}", #"{"relay":"wss://a.example"}"#] {
            try writeFile(person.state, Array(text.utf8), replacing: true)
            let run = await person.run("groups")
            #expect(run.status == .failed && run.err.joined().contains("holds no phone"))
        }
    }
}
