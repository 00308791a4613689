#if canImport(Glibc)
import Glibc
#endif
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

/// A relay as a process of its own, whose push services are this process's.
struct ServedProgram {
    let program: Program
    /// What it says of itself.
    let file: RunFile
    let admin: LocalCall

    /// The configuration of a stage with credentials that the sandbox's push services take, at their
    /// addresses.
    ///
    /// - Parameters:
    ///   - text: with the tests' own app, `environment: learn` at its end.
    ///   - store: the section's value; a file beside the configuration if it is not given.
    static func configuration(
        _ text: String, at stage: RelayStage,
        store: String = "{ url: \"sqlite:relay.sqlite\", keys: storage.keys }"
    ) throws -> String {
        let sandbox = stage.sandbox
        func url(_ port: Int?) throws -> String { "\"https://127.0.0.1:\(try #require(port))\"" }
        let made = stage.state + "/sandbox"
        let ca = "ca: \(sandbox.authorityFile) }"
        let addresses =
            "url: \(try url(sandbox.production.port)), sandbox_url: \(try url(sandbox.development.port))"
        return
            text
            .replacing("apns.p8", with: "\(made)/A1B2C3D4E5-F6G7H8I9J0.p8")
            .replacing("environment: learn }", with: "environment: learn, \(addresses), \(ca)")
            .replacing(
                "service_account: fcm.json }",
                with: "service_account: \(made)/acme-fcm.json, url: \(try url(sandbox.fcm.port)), \(ca)")
            + "store: \(store)\n"
    }

    /// Runs `body` with a relay in the stage's folder. It is stopped in order, and must end well.
    ///
    /// - Parameter configuration: as ``configuration(_:at:)`` makes it.
    static func with(
        _ configuration: String, in stage: RelayStage, _ body: (ServedProgram) async throws -> Void
    ) async throws {
        let path = stage.folder.path
        try writeFile(path + "/sealbell.yaml", Array(configuration.utf8), replacing: true)
        let program = try Program(["serve", "--config", "sealbell.yaml", "--state", "own"], in: path)
        guard await program.says("\"event\":\"started\"") else {
            Issue.record("the relay does not start: \(program.text)")
            return
        }
        do {
            let file = try RunFile.running(path + "/own")
            let admin = try #require(LocalCall(patient: file.urls["admin"]))
            try await body(ServedProgram(program: program, file: file, admin: admin))
        } catch {
            program.signal(SIGKILL)
            throw error
        }
        await program.stop()
        #expect(try RunFile.find(state: path + "/own") == .none)
    }

    /// Pushes in its outbox.
    ///
    /// - Parameter token: the operator's, where the configuration names one.
    func owed(token: String? = nil) async throws -> Int64? {
        let headers = token.map { [(name: "Authorization", value: Secret("Bearer \($0)".utf8))] }
        let status = try await admin.ask("GET", "/status", headers: headers ?? [])
        return try JSONValue.parse(status.body)["outbox"]?["rows"]?.int64
    }

    /// Ends it, and reads all that it has logged.
    func log() async -> String {
        program.signal(SIGTERM)
        await program.silence()
        return program.text
    }
}

extension RunFile {
    /// What a relay that runs says of itself in its state directory.
    static func running(_ state: String) throws -> RunFile {
        guard case .running(let file) = try find(state: state) else { throw FileFault.missing }
        return file
    }
}
