import Crypto
import Foundation
import PushModel
import PushTesting
import Testing

@testable import RelayProgram

@Suite("The first configuration, what is in force, and who may touch it", .timeLimit(.minutes(30)))
struct ConfigInitTests {
    private static let answers = [
        "--answer", "apns.team=A1B2C3D4E5", "--answer", "apns.key_id=F6G7H8I9J0", "--answer",
        "apns.key_file=AuthKey.p8", "--answer", "apns.bundles=org.acme.chat,org.acme.talk"
    ]

    /// A folder with a credential as Apple gives it, readable by everybody.
    private func downloaded() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        let path = folder.path + "/AuthKey.p8"
        try writeFile(path, Array(P256.Signing.PrivateKey().pemRepresentation.utf8), replacing: true)
        chmod(path, 0o644)
        return folder
    }

    private func run(_ words: [String], _ folder: TemporaryFolder) async -> CommandRun {
        await .of(words, in: folder.path, home: folder.path)
    }

    @Test("What it writes is accepted, closed to others, and never written over")
    func written() async throws {
        for word in Hosting.standard.protocols.filter({ $0.section == nil }).map({ $0.word }) {
            let folder = try downloaded()
            let relays = word == "marmot" ? ["--answer", "marmot.relays=wss://relay.example.org"] : []
            let bundles = ["--answer", "apns.bundles=org.acme.chat"]
            let words =
                ["config", "init", "--config", "etc/sealbell.yaml", "--app", "acme-chat", "--protocol", word]
                + Self.answers.dropLast(2) + bundles + relays
            let made = await run(words, folder)
            #expect(made.status == .done, "\(word): \(made.all)")
            #expect(made.out.contains("Next:"))
            // What runs elsewhere and is asked for is named once more, as something to do.
            let peer = ["session": "oxend", "status": "Waku node"][word]
            #expect(peer.map { peer in made.out.contains { $0.contains(peer) } } ?? true, "\(made.out)")
            let files = try FileManager.default.contentsOfDirectory(atPath: folder.path + "/etc")
            #expect(files.contains("sealbell.yaml") && files.contains("storage.keys"), "\(files)")
            for file in files {
                let facts = try FileManager.default.attributesOfItem(atPath: folder.path + "/etc/" + file)
                #expect((facts[.posixPermissions] as? NSNumber)?.intValue == 0o600, "\(file)")
            }
            let checked = await run(["config", "check", "etc/sealbell.yaml"], folder)
            #expect(checked.status == .done, "\(word): \(checked.all)")
            let before = try files.map { try readFile(folder.path + "/etc/" + $0, limitBytes: 1 << 20) }
            let again = await run(words, folder)
            #expect(again.status == .failed && again.err.first?.contains("There is a file") == true)
            let after = try files.map { try readFile(folder.path + "/etc/" + $0, limitBytes: 1 << 20) }
            #expect(before == after)
        }
    }

    @Test("A wrong, missing or unknown answer is told, and nothing is written")
    func refused() async throws {
        let folder = try downloaded()
        let start = ["config", "init", "--app", "acme", "--protocol", "zulip"]
        for (words, status) in [
            (start, Ending.usage), (start + Array(Self.answers.dropLast(2)), .usage),
            (start + Self.answers + ["--answer", "apns.nothing=1"], .usage),
            (start + Self.answers + ["--answer", "apns"], .usage),
            (start + Self.answers + ["--answer", "apns.team=short"], .configuration),
            (start + Self.answers + ["--answer", "apns.team=A\": [\n"], .configuration),
            (["config", "init", "--app", "A B", "--protocol", "zulip"] + Self.answers, .configuration),
            (["config", "init", "--app", "acme", "--protocol", "smoke"] + Self.answers, .usage),
            (start + Self.answers + ["--host", "https://push.acme.example"], .usage),
            (start + Self.answers + ["--host", "push.acme.example."], .usage),
            (start + Self.answers + ["--host", "push.acme.example:443"], .usage)
        ] {
            let run = await run(words, folder)
            #expect(run.status == status, "\(words): \(run.all)")
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["AuthKey.p8"])
    }

    @Test("A credential that is not there, or whose place is another's, is told, and nothing is written")
    func credentials() async throws {
        let folder = try downloaded()
        let etc = folder.path + "/etc"
        let words = [
            "config", "init", "--config", "etc/sealbell.yaml", "--app", "acme", "--protocol", "zulip"
        ]
        let missing = words + Self.answers.map { $0.replacing("AuthKey.p8", with: "Auth.p8") }
        let first = await run(missing, folder)
        #expect(first.status == .configuration && first.err.first?.contains("/Auth.p8: ") == true)
        #expect(!FileManager.default.fileExists(atPath: etc), "\(first.all)")
        try FileManager.default.createDirectory(atPath: etc, withIntermediateDirectories: true)
        try writeFile(etc + "/apns.p8", Array("another".utf8), replacing: false)
        let second = await run(words + Self.answers, folder)
        #expect(second.status == .failed && second.err.first?.contains("nothing was changed") == true)
        #expect(try FileManager.default.contentsOfDirectory(atPath: etc) == ["apns.p8"])
    }

    @Test("At a terminal it asks for what no option says")
    func asked() async throws {
        let folder = try downloaded()
        var facts = facts(home: folder.path)
        facts.workingDirectory = folder.path
        let (out, questions) = (Lines(), Lines())
        var shell = Shell(facts: facts, world: .live, out: { out.add($0) }, err: { out.add($0) })
        shell.ask = { question in
            questions.add(question)
            if question.hasPrefix("Protocols") { return "zulip" }
            if question.hasPrefix("Public host name") { return "push.acme.example" }
            if question.hasPrefix("Does the app use APNs") { return "y" }
            if question.hasPrefix("Apple's team") { return "A1B2C3D4E5" }
            if question.hasPrefix("Id of") { return "F6G7H8I9J0" }
            if question.hasPrefix("File of that key") { return "AuthKey.p8" }
            return question.hasPrefix("Bundle") ? "org.acme.chat" : ""
        }
        let status = await Sealbell.run(["config", "init"], shell)
        #expect(status == .done, "\(out.all)")
        #expect(questions.all.contains { $0.contains("FCM") })
        // Where it leads, is told with the name that was said.
        #expect(out.all.contains { $0.contains("https://push.acme.example") }, "\(out.all)")
        #expect(!out.all.contains { $0.contains("example.org lead") || $0.contains("in the place of") })
        #expect(await run(["config", "check"], folder).status == .done)
    }

    @Test("What is in force is shown with the place it came from, and what may be secret is not")
    func shown() async throws {
        let record = ConfigurationRecord()
        let text = minimal(
            appending: "log: { format: json }\nalerts:\n"
                + "  webhook: { url: \"https://hooks.example.org/c4n4ry\", secret_file: hook }\n"
                + "  mail: { command: [/usr/sbin/sendmail, c4n4ry] }\n")
        let request = ConfigurationRequest(settings: ["limits.connections=99"])
        let configuration = try ConfigurationLoader.read(
            text, file: "/etc/sealbell/sealbell.yaml", request, facts(["SEALBELL_LOG__LEVEL": "debug"]),
            Hosting.standard.vocabulary, record)
        let entries = Dictionary(record.all.map { ($0.path, $0) }, uniquingKeysWith: { $1 })
        func expect(_ path: String, _ value: String, _ source: ConfigurationFault.Source) {
            #expect(entries[path]?.value == value, "\(path)")
            #expect(entries[path]?.source == source, "\(path)")
        }
        expect("log.level", "debug", .environment("SEALBELL_LOG__LEVEL"))
        expect("limits.connections", "99", .commandLine)
        expect("limits.outbox.rows", "\(configuration.limits.outboxRows)", .builtIn)
        expect("state", configuration.state, .builtIn)
        expect("store.keys", configuration.store.keysFile, .builtIn)
        expect("listeners.admin.bind", "127.0.0.1:8481", .builtIn)
        expect("apps.acme.apns.environment", "production", .builtIn)
        expect("apps.acme.apns.bundles", "[org.acme.chat]", .file(line: 7))
        expect("apps.acme.apns.key_file", "/etc/sealbell/apns.p8", .file(line: 6))
        #expect(entries["alerts.webhook.url"]?.value == "https://hooks.example.org/‹hidden›")
        #expect(entries["alerts.mail.command"]?.value == "[/usr/sbin/sendmail, ‹hidden›]")
        #expect(!record.all.contains { $0.value.contains("c4n4ry") })
        // The command says the same.
        let folder = try TemporaryFolder()
        try writeFile(folder.path + "/sealbell.yaml", Array(text.utf8), replacing: true)
        let shown = await run(["config", "show", "--set", "limits.connections=99"], folder)
        #expect(shown.status == .done && shown.out.first?.hasPrefix("KEY") == true, "\(shown.all)")
        #expect(shown.out.contains { $0.hasPrefix("limits.connections") && $0.hasSuffix("command line") })
        #expect(shown.out.contains { $0.hasSuffix("\(folder.path)/sealbell.yaml:7") }, "\(shown.all)")
        let json = await run(["config", "show", "--json"], folder)
        #expect(json.out.first?.contains("\"source\":\"default\"") == true && !json.all.contains("c4n4ry"))
        #expect(await run(["config", "show", "--set", "log.level=loud"], folder).status == .configuration)
    }

    @Test("A folder that everybody may write to and a secret of a stranger are worth a warning, no more")
    func owners() throws {
        let configuration = try load(minimal(), state: "/var/lib/sealbell")
        var modes = ["/etc/sealbell": FileFacts(owner: 0, mode: 0o40755)]
        func check(_ user: UInt32) -> [Finding] {
            var checks = OwnerChecks(configuration)
            checks.user = user
            let modes = modes
            checks.facts = { modes[$0] }
            return checks.check()
        }
        #expect(check(1_000).isEmpty)
        modes["/etc/sealbell"]?.mode = 0o40777
        #expect(check(1_000).map(\.subject) == ["/etc/sealbell"])
        modes["/etc/sealbell"]?.mode = 0o41777
        #expect(check(1_000).isEmpty, "nobody removes what is another's")
        modes["/etc/sealbell/apns.p8"] = FileFacts(owner: 1_234, mode: 0o100600)
        let foreign = check(1_000)
        #expect(foreign.count == 1 && foreign[0].subject.contains("apns.p8") && Findings(foreign).ok)
        #expect(check(1_234).isEmpty && check(0).isEmpty, "nothing says yet whose the relay is")
        modes["/var/lib/sealbell"] = FileFacts(owner: 1_234, mode: 0o40700)
        #expect(check(0).isEmpty && check(1_000).isEmpty)
        modes["/var/lib/sealbell"]?.owner = 999
        #expect(check(0).count == 1)
    }

    @Test("Colours are for a terminal that has them and a person who wants them")
    func colours() {
        #expect(Style.isWanted(isTerminal: true, ["TERM": "xterm"]))
        #expect(Style.isWanted(isTerminal: true, ["NO_COLOR": ""]))
        #expect(!Style.isWanted(isTerminal: false, [:]))
        #expect(!Style.isWanted(isTerminal: true, ["NO_COLOR": "1"]))
        #expect(!Style.isWanted(isTerminal: true, ["TERM": "dumb"]))
        let finding = Finding.warning(.files, "a", "b.")
        #expect(finding.line == "warning  files          a: b.")
        #expect(finding.line(isStyled: true) == "\u{1B}[33mwarning\u{1B}[0m  files          a: b.")
        let table = TextTable.lines(["A", "LONG"], [["one", "1"], ["x", ""]])
        #expect(table == ["A    LONG", "one  1", "x"])
        #expect(TextTable.lines(["A"], []).isEmpty)
    }
}
