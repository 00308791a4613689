import Foundation
import PushModel
import PushTesting
import Testing
import WireFormats

@testable import RelayProgram

@Suite("The log of the program", .timeLimit(.minutes(30)), .serialized)
struct LogTests {
    private func folder(_ text: String) throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        try writeFile(folder.path + "/sealbell.yaml", Array(text.utf8), replacing: true)
        return folder
    }

    private func serve(_ folder: TemporaryFolder, _ more: String...) throws -> Program {
        try Program(
            ["serve", "--sandbox", "--config", "sealbell.yaml", "--state", "state"] + more, in: folder.path)
    }

    /// Reads on to the end of the line with those words. The end of its output may be far: a program that
    /// another test starts meanwhile may have inherited the pipe.
    private func says(_ words: String, _ program: Program) async -> Bool {
        guard await program.says(words) else { return false }
        return await program.says("\n")
    }

    /// The lines, each of which must be an object.
    private func objects(_ program: Program) -> [JSONValue] {
        program.text.split(separator: "\n").map { line in
            let value = try? JSONValue.parse(Array(line.utf8))  // What is no JSON is told below.
            #expect(value?.object != nil, "no object: \(line)")
            return value ?? .null
        }
    }

    @Test(
        "As JSON every line is an object: warnings, listeners, faults of a reload, the beginning and the end")
    func json() async throws {
        // An app that nobody uses is warned of.
        let text = RelayStage.text.replacing(
            "log: { level: debug }", with: "log: { level: info, format: json }"
        )
        .replacing("apps:\n", with: "apps:\n  idle: { fcm: { service_account: idle.json } }\n")
        let folder = try folder(text)
        let program = try serve(folder)
        #expect(await program.says("\"event\":\"started\""))
        try writeFile(folder.path + "/sealbell.yaml", Array("instances: {".utf8), replacing: true)
        program.signal(SIGHUP)
        #expect(await program.says("reload refused"))
        try writeFile(folder.path + "/sealbell.yaml", Array(text.utf8), replacing: true)
        program.signal(SIGHUP)
        #expect(await program.says("configuration reloaded"))
        await program.stop()
        #expect(await says("\"event\":\"stopped\"", program))
        let lines = objects(program)
        func line(_ event: String) -> JSONValue? { lines.first { $0["event"]?.string == event } }
        #expect(line("configuration warning")?["sentence"]?.string?.contains("apps.idle") == true)
        let door = lines.first { $0["listener"]?.string == "admin" && $0["event"]?.string == "listening" }
        #expect(door?["url"]?.string?.hasPrefix("http://127.0.0.1:") == true)
        #expect(line("configuration fault")?["sentence"]?.string?.contains("sealbell.yaml") == true)
        for event in ["started", "stopped"] {
            #expect(line(event)?["version"]?.string == Release.version)
            #expect(line(event)?["store"]?.string?.hasSuffix("state/relay.sqlite") == true)
            #expect(line(event)?["configuration"]?.string?.hasSuffix("/sealbell.yaml") == true)
            #expect(line(event)?["pid"]?.int64 == Int64(program.pid))
        }
        #expect(line("stopped")?["code"]?.string == "done")
        #expect(line("stopped")?["seconds"]?.int64 != nil)
    }

    @Test("A start that fails says so in JSON too, whatever is at fault")
    func failures() async throws {
        // A folder goes with anyone who holds it.
        let spoilt = try folder("apps: [")
        let broken = try serve(spoilt)
        #expect(await broken.status() == 78)
        #expect(await says("configuration fault", broken))
        withExtendedLifetime(spoilt) {}
        #expect(objects(broken).first?["event"]?.string == "configuration fault")
        let folder = try folder(RelayStage.text.replacing("level: debug", with: "level: info"))
        let program = try serve(folder)
        #expect(await program.says("\"event\":\"started\""))
        let second = try serve(folder)
        #expect(await second.status() == 69)
        #expect(await says("not started", second))
        let told = objects(second)
        #expect(told.last?["event"]?.string == "not started")
        #expect(told.last?["sentence"]?.string?.contains("another relay serves") == true)
        await program.stop()
    }

    @Test("As text it is lines for a person")
    func text() async throws {
        let folder = try folder(
            RelayStage.text.replacing("log: { level: debug }", with: "log: { level: info, format: text }"))
        let program = try serve(folder)
        #expect(await program.says("started version=\(Release.version)"))
        #expect(
            program.text.contains("\nadmin: http://127.0.0.1:") || program.text.hasPrefix("admin: http://"))
        await program.stop()
        #expect(await program.says("stopped version=\(Release.version)"))
    }
}
