#if canImport(Glibc)
import Glibc
import PushTesting
#elseif canImport(Darwin)
import Darwin
#endif
import PushModel
import Testing
import WebClient

@testable import RelayProgram

@Suite("Secrets in files that others may open", .timeLimit(.minutes(30)))
struct OpenSecretsTests {
    private static let text = RelayStage.text.replacing(
        "admin: { bind: \"127.0.0.1:0\" }", with: "admin: { bind: \"127.0.0.1:0\", token_file: admin.token }")

    /// A stage whose admin token stands in a file, and that file's path.
    private func with(_ body: (RelayStage, String) async throws -> Void) async throws {
        func prepare(_ folder: String) throws {
            try writeFile(folder + "/admin.token", Array("open-sesame-open-sesame\n".utf8), replacing: true)
        }
        try await RelayStage.with(Self.text, prepare: prepare) { stage in
            try await body(stage, stage.folder.path + "/admin.token")
        }
    }

    @Test("A relay does not start with one, as the check says, and does with one closed to others")
    func start() async throws {
        try await with { stage, token in
            for mode: mode_t in [0o604, 0o644, 0o666] {
                #expect(chmod(token, mode) == 0)
                let checked = try FileChecks(World.live.now).check(stage.configuration())
                #expect(checked.contains { $0.severity == .fault && $0.sentence.contains("chmod 600") })
                let failure = await #expect(throws: CommandFailure.self) { try await stage.run { _ in } }
                #expect(failure?.status == .configuration)
                #expect(failure?.lines.count == 1)
                #expect(failure?.lines.first?.contains("listeners.admin.token_file") == true)
            }
            // A group may be a service manager's own.
            for mode: mode_t in [0o640, 0o600] {
                #expect(chmod(token, mode) == 0)
                try await stage.run { _ in }
            }
        }
    }

    @Test("Nor with the keys of its store, and a reload that meets one changes nothing")
    func reload() async throws {
        try await with { stage, token in
            try await stage.run { relay in
                #expect(chmod(token, 0o644) == 0)
                #expect(throws: CommandFailure.self) { try relay.relay.reload(stage.configuration()) }
                #expect(try await relay.admin("/health/live").status == 200)
                #expect(chmod(token, 0o600) == 0)
                try relay.relay.reload(stage.configuration())
            }
            let keys = try stage.configuration().store.keysFile
            #expect(chmod(keys, 0o644) == 0)
            let failure = await #expect(throws: CommandFailure.self) { try await stage.run { _ in } }
            #expect(failure?.lines.first?.contains("chmod 600") == true)
        }
    }
}
