import Foundation
import PushModel
import PushTesting
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

@Suite("The program as a process", .timeLimit(.minutes(30)), .serialized)
struct ProcessTests {
    private static let text = RelayStage.text.replacing("level: debug", with: "level: info")

    private func folder() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        try writeFile(folder.path + "/sealbell.yaml", Array(Self.text.utf8), replacing: true)
        return folder
    }

    private func serve(_ folder: TemporaryFolder) throws -> Program {
        try Program(
            ["serve", "--sandbox", "--config", "sealbell.yaml", "--state", "state"], in: folder.path)
    }

    private func runFile(_ folder: TemporaryFolder) throws -> RunFile {
        try RunFile.running(folder.path + "/state")
    }

    @Test("A parent that closes its streams gets no log written into a file of the state")
    func closedStreams() async throws {
        let folder = try folder()
        let program = try Program(
            ["serve", "--sandbox", "--config", "sealbell.yaml", "--state", "state"], in: folder.path,
            before: "exec <&- >&- 2>&-;")
        try await asked(for: "a relay that serves") { (try? runFile(folder))?.pid == program.pid }
        #if canImport(Glibc)
        for descriptor in 0...2 {
            let place = "/proc/\(program.pid)/fd/\(descriptor)"
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: place) == "/dev/null")
        }
        #endif
        await program.stop()
        #expect(try readFile(folder.path + "/state/lock", limitBytes: 4096).isEmpty)
    }

    @Test("It says where it is, keeps a second one out, drains at SIGTERM and ends with 0")
    func life() async throws {
        let folder = try folder()
        let program = try serve(folder)
        // Printed behind `run.json`, which is therefore there.
        #expect(await program.says("\"event\":\"started\""))
        let file = try runFile(folder)
        #expect(file.pid == program.pid && file.publicKeys["zulip-main"]?.count == 1)
        let door = try #require(LocalCall(patient: file.urls["public"]))
        #expect(try await door.ask("GET", "/api/v1/remotes/server/analytics/status").status == 401)
        let admin = try #require(LocalCall(patient: file.urls["admin"]))
        // Ready as soon as the Nostr relay beside it is listened at.
        try await asked(for: "a relay that is ready") {
            try await admin.ask("GET", "/health/ready").status == 200
        }

        let second = try serve(folder)
        #expect(await second.status() == 69)
        // The second one has left the first one's file alone.
        #expect(try runFile(folder) == file)

        await program.stop()
        #expect(try RunFile.find(state: folder.path + "/state") == .none)
        let third = try serve(folder)
        #expect(await third.says("\"event\":\"started\""))
        // Once it answers, its signals are trapped.
        let again = try #require(LocalCall(patient: try runFile(folder).urls["public"]))
        #expect(try await again.ask("GET", "/api/v1/remotes/").status == 404)
        third.signal(SIGINT)
        #expect(await third.status() == 0)
    }

    @Test("A reload comes into force whole or not at all, and who asked for it hears which")
    func reload() async throws {
        let folder = try folder()
        let program = try serve(folder)
        #expect(await program.says("\"event\":\"started\""))
        let file = try runFile(folder)
        let door = try #require(LocalCall(patient: file.urls["public"]))
        let admin = try #require(LocalCall(patient: file.urls["admin"]))
        func signUp(_ host: String) async throws -> Int {
            let call = DemoServer(host).origin.signUp(hostname: host, mail: "ops@acme.example")
            return try await door.ask(call.method, call.url, headers: call.headers, body: call.body).status
        }
        func reload(_ old: String, _ new: String) async throws -> (status: Int32?, text: String) {
            #expect(Self.text.contains(old))
            let text = Self.text.replacing(old, with: new)
            try writeFile(folder.path + "/sealbell.yaml", Array(text.utf8), replacing: true)
            let command = try Program(["reload", "--at", "state", "--wait", "600"], in: folder.path)
            return (await command.status(), command.text)
        }
        func metrics() async throws -> String { try await admin.ask("GET", "/metrics").text }
        #expect(try await signUp("one.acme.example") == 200)

        let broken = try await reload("sign_up: open", "sign_up: perhaps")
        #expect(broken.status == 78)
        #expect(broken.text.contains("instances.zulip-main.sign_up") && !broken.text.contains("perhaps"))
        #expect(try await signUp("two.acme.example") == 200)
        let raised = try await metrics()
        #expect(raised.contains("sealbell_alert{alert=\"reload_refused\",subject=\"\"} 1"))
        #expect(raised.contains("sealbell_reloads_total{outcome=\"refused\"} 1"))

        let restart = try await reload("level: info", "level: info }\nlimits: { connections: 99")
        #expect(restart.status == 78)
        #expect(restart.text.contains("limits.connections") && restart.text.contains("restart"))

        let closed = try await reload("sign_up: open", "sign_up: invite")
        #expect(closed.status == 0 && closed.text.contains("in force"))
        #expect(try await signUp("three.acme.example") == 400)
        let cleared = try await metrics()
        #expect(!cleared.contains("sealbell_alert{alert=\"reload_refused\",subject=\"\"} 1"))
        #expect(cleared.contains("sealbell_reloads_total{outcome=\"done\"} 1"))
        #expect(try runFile(folder).reload == RunFile.Reload(number: 3, faults: []))
        await program.stop()

        let late = try Program(["reload", "--at", "state"], in: folder.path)
        #expect(await late.status() == 69)
    }

    @Test("A trial that is killed takes its relay with it")
    func orphans() async throws {
        let folder = try TemporaryFolder()
        /// Relays of this trial, by the directory that their command lines name.
        func relays() throws -> [Int32] {
            try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { Int32($0) }.filter {
                pid in
                // One that has just ended has no command line any more, nor has one that nobody waited for.
                let words = FileManager.default.contents(atPath: "/proc/\(pid)/cmdline") ?? Data()
                let text = String(decoding: words, as: UTF8.self)
                return text.contains("\0serve\0") && text.contains(folder.path)
            }
        }
        let trial = try Program(
            ["chaos", "--kills", "100000", "--keep", "trial"], of: Program.bench, in: folder.path)
        // The relay is a child of another process, which tells nobody here that it has started one.
        #expect(try await watchOutside { try !relays().isEmpty })
        trial.signal(SIGKILL)
        #expect(await trial.status() == -SIGKILL)
        #expect(try await watchOutside { try relays().isEmpty })
    }

    @Test("The simulated services stand alone, say where, and end as they are told")
    func sandboxAlone() async throws {
        let folder = try TemporaryFolder()
        let sandbox = try Program(["sandbox", "--state", "own"], in: folder.path)
        #expect(await sandbox.says("authority: "))
        #expect(sandbox.text.contains("sandbox-apns: https://127.0.0.1:"))
        #expect(sandbox.text.contains("sandbox-fcm: https://127.0.0.1:"))
        let second = try Program(["sandbox", "--state", "own"], in: folder.path)
        #expect(await second.status() == 69)
        #expect(FileManager.default.fileExists(atPath: folder.path + "/own/run.json"))
        sandbox.signal(SIGTERM)
        #expect(await sandbox.status() == 0)
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/own/run.json"))
    }

    @Test("A configuration that cannot be used ends with 78, an address that this machine has not with 69")
    func refusals() async throws {
        let folder = try folder()
        let path = folder.path + "/sealbell.yaml"
        try writeFile(path, Array("apps: [".utf8), replacing: true)
        #expect(try await serve(folder).status() == 78)
        #expect(try await Program(["serve", "--config", "none.yaml"], in: folder.path).status() == 78)
        #expect(try await Program(["serve", "--nonsense"], in: folder.path).status() == 64)
        // Of a network for documentation (RFC 5737). One that is taken the sandbox leaves to who has it.
        let missing = Self.text.replacing(
            "public: { bind: \"127.0.0.1:0\"", with: "public: { bind: \"192.0.2.1:8480\"")
        try writeFile(path, Array(missing.utf8), replacing: true)
        #expect(try await serve(folder).status() == 69)
        #expect(try RunFile.find(state: folder.path + "/state") == .none)
    }
}
