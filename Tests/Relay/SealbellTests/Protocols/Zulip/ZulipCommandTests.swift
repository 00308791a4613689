import Foundation
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

/// A person with a phone on the command line, beside an origin and the sandbox of its relay.
struct ZulipPerson {
    private let person: CommandPerson
    var folder: TemporaryFolder { person.folder }

    init() throws { person = try CommandPerson("zulip") }

    /// - Parameter key: the user's, which is put into a file.
    init(_ running: RunningOrigin, key: String) throws {
        try self.init()
        try put(key + "\n", at: "key")
        _ = try running.relay.sandboxFile()
    }

    var state: String { person.state }
    var marker: String { state + ".marker" }

    func put(_ text: String, at name: String) throws { try person.put(text, at: name) }

    func run(_ words: String..., arguments: [String] = [], input: String = "") async -> CommandRun {
        await person.run(words + arguments, input: input)
    }

    func join(_ running: RunningOrigin, _ more: String...) async throws -> CommandRun {
        await run(
            "join", try Self.url(running),
            arguments: [
                "--user", RunningOrigin.user, "--key-file", "key", "--sandbox", running.relay.stage.state
            ] + more)
    }

    static func url(_ running: RunningOrigin) throws -> String { try #require(running.origin.urls["origin"]) }

    func kept() throws -> JSONValue {
        try JSONValue.parse(Array(try Data(contentsOf: URL(fileURLWithPath: state))))
    }

    func account(_ index: Int = 0) throws -> JSONValue {
        let rows = try JSONValue.parse(Array(try #require(try kept()["accounts"]?.string).utf8))
        return try #require(rows.array?[index])
    }

    /// The one line of `status --json`.
    func status() async throws -> JSONValue {
        let run = await run("status", "--json")
        #expect(run.out.count == 1)
        return try #require(try JSONValue.parse(Array(run.out.joined().utf8))["accounts"]?.array?.first)
    }

    /// What must not be said anywhere.
    func secrets() throws -> [String] {
        let account = try account()
        let token = try #require(try kept()["token"]?.string)
        return try [token, #require(account["api_key"]?.string), #require(account["device"]?.string)]
    }
}

@Suite("A phone of Zulip on the command line", .timeLimit(.minutes(30)))
struct ZulipCommandTests {
    private static let user = RunningOrigin.user

    @Test(
        "It joins, opens what arrives, repeats, changes its token, forgets, joins again and leaves",
        arguments: ZulipProfile.allCases)
    func life(_ profile: ZulipProfile) async throws {
        // Which of v12 and v11 a client uses follows from the server's level.
        let only = profile == .v11 ? ", profiles: [v11]" : ""
        try await RunningOrigin.run(inOneProcess: true, only) { running, key in
            let person = try ZulipPerson(running, key: key)
            let service = profile == .v11 ? "fcm" : "apns"
            let joined = try await person.join(
                running, "--profile", profile.rawValue, "--require-e2ee", "--service", service)
            #expect(joined.err == [] && joined.status == .done, "\(joined)")
            #expect(joined.out.contains("joined, profile \(profile.rawValue)"), "\(joined.out)")
            #expect(joined.out.contains("active: Notifications are set up."))
            #expect(joined.out.last == "next: sealbell device zulip listen --state phone.json")
            let secrets = try person.secrets()
            let first = try await person.status()
            #expect(first["state"]?.string == "active" && first["advice"]?.string == "none")
            #expect(first["profile"]?.string == profile.rawValue)

            let id = try await running.notify("Dinner is ready")
            let heard = await person.run("listen", "--count", "1", "--for", "600")
            #expect(heard.status == .done && heard.err == [], "\(heard)")
            #expect(heard.out.contains { $0.hasSuffix(": Dinner is ready") }, "\(heard.out)")
            #expect(try await running.became(of: id) == ["accepted"])
            #expect(await person.run("open").out == ["nothing new"])

            let again = await person.run("repeat")
            #expect(again.status == .done && again.out.first == "registration: HTTP 200", "\(again)")
            #expect(try await person.status()["id"] == first["id"])

            // The account form takes a fresh id for another token; v12 keeps the device.
            let changed = await person.run("token")
            #expect(
                changed.status == .done && changed.out.contains("the phone has another token"), "\(changed)")
            let second = try await person.status()
            #expect((second["id"] == first["id"]) == (profile == .v12))
            #expect(try person.kept()["token"]?.string != secrets[0])

            let forgotten = await person.run("forget")
            #expect(forgotten.status == .done, "\(forgotten)")
            #expect(forgotten.out.dropLast() == ["forget: HTTP 200", "forgotten"])
            #expect(try await person.status()["is_registered"]?.bool == false)
            #expect(await person.run("repeat").status == .failed)
            let refused = try await running.desk(.notify, ["user": Self.user, "text": "nobody"])
            #expect(refused["devices"]?.int64 == 0)

            let back = await person.run("join", try ZulipPerson.url(running))
            #expect(
                back.status == .done && back.out.contains("joined, profile \(profile.rawValue)"), "\(back)")
            let more = try person.secrets()
            let gone = await person.run("leave")
            #expect(gone.status == .done && gone.out.last == "left")
            #expect(!FileManager.default.fileExists(atPath: person.state))
            #expect(!FileManager.default.fileExists(atPath: person.marker))
            for run in [joined, heard, again, changed, forgotten, back, gone] {
                #expect((secrets + more).allSatisfy { !run.all.contains($0) })
            }
        }
    }
}
