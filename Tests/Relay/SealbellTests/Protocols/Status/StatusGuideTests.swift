import Crypto
import Foundation
import PushModel
import PushTesting
import Simulators
import StatusPush
import Testing
import WakuIngress
import WebClient
import WireFormats

@testable import RelayProgram

@Suite("docs/guides/status.md", .timeLimit(.minutes(30)))
struct StatusGuideTests {
    private static func page() throws -> String {
        try String(contentsOf: repositoryRoot().appending(path: "docs/guides/status.md"), encoding: .utf8)
    }

    /// The commands of a section, each block of them a script.
    private static func blocks(_ heading: String) throws -> [String] {
        let sections = try page().split(separator: "\n## ")
        let section = try #require(sections.first { $0.hasPrefix(heading) }, "\(heading)")
        return section.split(separator: "\n\n").filter { $0.hasPrefix("    ") }.map(String.init)
    }

    /// The one command in the running text that begins so.
    private static func inline(_ start: String) throws -> String {
        let text = try page().replacing(#/```(?s:.*?)```/#, with: "")
        let found = text.matches(of: #/`([^`]+)`/#).map { String($0.1) }.filter { $0.hasPrefix(start) }
        return try #require(found.count == 1 ? found.first : nil, "\(found)")
    }

    /// An operator at a machine of their own, a folder that stands for the root of the file system.
    private struct OperatorMachine {
        let folder: TemporaryFolder

        /// Lays down what Apple and Google gave.
        init() throws {
            folder = try TemporaryFolder()
            let key = P256.Signing.PrivateKey().pemRepresentation
            try writeFile(folder.path + "/AuthKey_F6G7H8I9J0.p8", Array(key.utf8), replacing: true)
            let account = try ServiceAccount().json(tokenURI: "https://oauth2.googleapis.com/token")
            try writeFile(folder.path + "/acme-firebase.json", Array(account.utf8), replacing: true)
        }

        var rehearsal: String { folder.path + "/tmp/rehearsal" }

        /// The page's places as this machine has them.
        func here(_ text: String) -> String {
            ["/etc/sealbell", "/var/lib/sealbell", "/tmp/rehearsal"].reduce(text) {
                $0.replacing($1, with: folder.path + $1)
            }
        }

        /// Starts a script of the page's in a shell that finds the built program.
        func start(_ script: String) throws -> Program {
            let place = URL(filePath: try #require(Program.path)).deletingLastPathComponent().path
            return try Program(
                ["-e", "-c", here(script)], of: "/bin/sh", in: folder.path,
                before: "PATH='\(place)':$PATH; export PATH;")
        }

        func run(_ script: String) async throws -> (status: Int32?, said: String) {
            let program = try start(script)
            await program.silence()
            return (await program.status(), program.text)
        }

        /// Runs one command line of the page's, which may begin with what is piped into it, with patience.
        func play(_ line: String) async -> CommandRun {
            let halves = line.components(separatedBy: " | ")
            let input = halves.count == 2 ? halves[0].replacing(#/^echo /#, with: "") + "\n" : ""
            let words = (halves.last ?? "").split(separator: " ").map(String.init)
            #expect(words.first == "sealbell")
            return await .of(
                Array(words.dropFirst()), in: folder.path, home: folder.path, input: input)
        }

        /// The page's third step; or its last configuration, where a gorush delivers.
        func configure(withGorush: Bool = false) throws {
            let fences = try page().matches(of: #/```yaml\n((?s:.*?))```/#)
            #expect(fences.count == 2)
            let text = here(String(try #require(withGorush ? fences.last : fences.first).1))
            try writeFile(folder.path + "/etc/sealbell/sealbell.yaml", Array(text.utf8), replacing: true)
        }
    }

    @Test("The page's keys are made as it says, and its configuration is sound, with a gorush too")
    func sound() async throws {
        let desk = try OperatorMachine()
        let made = try await desk.run(
            "mkdir -p \(desk.folder.path)/etc\n" + #require(try Self.blocks("1. Keys").first))
        #expect(made.status == 0, "\(made.said)")
        let printed = try #require(made.said.firstMatch(of: #/\b0x04[0-9a-f]{128}\b/#)).0
        let etc = desk.folder.path + "/etc/sealbell"
        let kept = try StatusKeyFile.read(etc + "/status.key")
        #expect(StatusKeyFile.publicText(kept.point) == printed)
        for file in ["apns.p8", "fcm.json", "storage.keys", "status.key"] {
            let mode = try FileManager.default.attributesOfItem(atPath: "\(etc)/\(file)")[.posixPermissions]
            #expect(mode as? Int == 0o600, "\(file)")
        }
        try desk.configure()
        let configuration = etc + "/sealbell.yaml"
        let check = try Self.inline("sealbell config check") + " --config \(configuration)"
        let checked = await desk.play(check)
        #expect(checked.status == .done, "\(checked.out + checked.err)")
        // Neither Apple nor Google is called from here, and the page's ports may be another program's.
        let doctor = await desk.play(
            try Self.inline("sealbell doctor") + " --offline --config \(configuration)")
        let faults = doctor.out.filter { $0.hasPrefix("FAULT") && !$0.contains(" ports ") }
        #expect(!doctor.out.isEmpty && faults.isEmpty, "\(doctor.out + doctor.err)")
        let text = try String(contentsOfFile: configuration, encoding: .utf8)
        let gateway = text + "    \(try Self.inline("gorush: {"))\n    compatibility: status-go\n"
        try writeFile(configuration, Array(gateway.utf8), replacing: true)
        let again = await desk.play(check)
        #expect(again.status == .done, "\(again.out + again.err)")
        try desk.configure(withGorush: true)
        for file in ["apns.p8", "fcm.json"] { try FileManager.default.removeItem(atPath: "\(etc)/\(file)") }
        let without = await desk.play(check)
        #expect(without.status == .done, "\(without.out + without.err)")
    }

    private static func isThere(_ programs: String...) -> Bool {
        programs.allSatisfy { FileManager.default.isExecutableFile(atPath: "/usr/bin/\($0)") }
    }

    @Test(
        "The page's rehearsal brings a push from one played member to the other, and its checks tell so",
        .enabled(if: isThere("curl", "jq", "base64")))
    func rehearsal() async throws {
        let desk = try OperatorMachine()
        let keys = try #require(try Self.blocks("1. Keys").first)
        #expect(try await desk.run("mkdir -p \(desk.folder.path)/etc\n" + keys).status == 0)
        try desk.configure()
        let blocks = try Self.blocks("6. A phone")
        try #require(blocks.count == 3)
        let program = try desk.start(
            "mkdir -p \(desk.folder.path)/tmp\n"
                + blocks[1].replacing("    sealbell serve", with: "    exec sealbell serve"))
        #expect(await program.says("\"event\":\"started\""), "\(program.text)")
        let file = try RunFile.running(desk.rehearsal)
        let members = Members(
            node: try #require(file.urls["sandbox-waku-client"]),
            server: try #require(file.publicKeys["status-main"]?.first),
            control: try #require(file.urls["sandbox-control"]))
        do {
            try await members.converse(desk, blocks, admin: try #require(file.urls["admin"]))
        } catch {
            program.signal(SIGTERM)
            throw error
        }
        await program.stop()
    }

    /// Two members that the page has speak to one another, and what fills its gaps.
    private struct Members {
        let node: String
        let server: String
        let control: String

        func converse(_ desk: OperatorMachine, _ blocks: [String], admin: String) async throws {
            let checks = try page()
            let door = try #require(LocalCall(patient: admin))
            let health = try inline("curl http://127.0.0.1:8645")
            let said = try await desk.run(health.replacing("http://127.0.0.1:8645", with: node))
            #expect(said.status == 0 && said.said.contains("Ready"), "\(said.said)")
            let ready = try #require(checks.firstMatch(of: #/`(\/health\/ready\?[^`]*)`/#)).1
            try await asked(for: "a relay that is ready") {
                try await door.ask("GET", String(ready)).status == 200
            }
            let lines = blocks[0].replacing(#/ \\\n +/#, with: " ").split(separator: "\n").map {
                $0.trimmingCharacters(in: .whitespaces)
                    .replacing("http://127.0.0.1:8646", with: node)
                    .replacing("--server 0x04…", with: "--server \(server)")
            }
            try #require(lines.count == 3)
            let bob = await desk.play(lines[0])
            #expect(bob.status == .done && bob.out.last?.hasSuffix(": registered") == true, "\(bob)")
            let alice = await desk.play(lines[1])
            #expect(alice.status == .done, "\(alice)")
            let account = try #require(bob.out.first?.firstMatch(of: #/0x04[0-9a-f]{128}/#)).0
            let sent = await desk.play(lines[2].replacing("--to 0x04…", with: "--to \(account)"))
            #expect(sent.out == ["taken for 1 of 1 phones"], "\(sent)")
            let opened = try await desk.run(blocks[2].replacing("http://127.0.0.1:PORT", with: control))
            #expect(opened.status == 0 && opened.said.contains("\nhello\n"), "\(opened.said)")
            try await look(door, desk, checks)
            let gone = await desk.play(try inline("sealbell device status unregister"))
            #expect(gone.status == .done && gone.out.last?.hasSuffix(": unregistered") == true, "\(gone)")
        }

        /// What the page says to look at after a first notification.
        private func look(_ door: LocalCall, _ desk: OperatorMachine, _ page: String) async throws {
            let statistics = try JSONValue.parse(
                try await door.ask("GET", "/status/statistics?instance=status-main").body)
            #expect(page.contains("| `/status/statistics`: `waku.heard` grows |"))
            #expect(statistics["waku"]?["heard"]?.int64 ?? 0 > 0)
            #expect(page.contains("| `registered` |") && page.contains("| `queries`, `requests` |"))
            #expect(statistics["registered"]?.int64 == 2 && statistics["requests"]?.int64 ?? 0 >= 1)
            #expect(statistics["queries"]?.int64 != nil)
            let metrics = try await door.ask("GET", "/metrics").text
            #expect(page.contains("| `sealbell_push_answers_total` |"))
            #expect(metrics.contains(#/sealbell_push_answers_total\{[^}]*outcome="accepted"[^}]*\} 1/#))
            let control = try #require(LocalCall(patient: control))
            let list = try JSONValue.parse(try await control.ask("GET", "/production/deliveries").body)
            let id = try #require(list.array?.last?["id"]?.string)
            let why = await desk.play(
                try inline("sealbell why").replacing("REFERENCE", with: id) + " --at \(desk.rehearsal)")
            #expect(why.status == .done, "\(why)")
        }
    }

    @Test("Every key, flag, note, outcome and option that the page names is one")
    func words() async throws {
        let page = try Self.page()
        let node = try #require(try Self.blocks("2. The Waku node").first)
        for row in page.matches(of: #/\n\| `(--[a-z-]+)/#) { #expect(node.contains("\(row.1)="), "\(row.1)") }
        let topic = WakuNode("http://127.0.0.1:8645")?.pubsubTopic
        let shard = try #require(node.firstMatch(of: #/--cluster-id=(\d+) --shard=(\d+) /#))
        #expect(topic == "/waku/2/rs/\(shard.1)/\(shard.2)" && page.contains("`\(topic ?? "")`"))
        let notes = Set(WakuNote.allCases.map(\.code.text))
        for row in page.matches(of: #/\n\| (`[a-z]+-[a-z-]+`(?:, `[a-z]+-[a-z-]+`)*)(?: in the log)? \|/#) {
            for name in row.1.matches(of: #/`([a-z-]+)`/#) { #expect(notes.contains(String(name.1))) }
        }
        for note in [WakuNote.nodeAway, .nodeAlone, .gapGivenUp, .storeAbsent] {
            #expect(page.contains("`\(note.code.text)`"))
        }
        let outcomes = page.matches(of: #/outcome="(\w+)"/#).map { String($0.1) }
        let known = Set(StatusError.Code.allCases.map(\.rawValue) + ["elsewhere"])
        #expect(outcomes.count >= 2 && outcomes.allSatisfy(known.contains), "\(outcomes)")
        for key in page.matches(of: #/`(bundle|key_file|gorush|compatibility|waku)[`:]/#) {
            #expect(StatusProtocol.keys.contains(String(key.1)))
        }
        let desk = try OperatorMachine()
        for (command, option) in [("register", "--token-file"), ("open", "--file")] {
            let help = await desk.play("sealbell device status \(command) --help")
            #expect(page.contains("`\(option)`") && help.out.joined().contains(option))
        }
    }
}
