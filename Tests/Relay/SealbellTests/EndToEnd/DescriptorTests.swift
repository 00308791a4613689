#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import PushModel
import PushTesting
import Testing
import WebClient

@testable import RelayProgram

/// A relay that may open few files and sockets.
@Suite("A relay short of descriptors", .timeLimit(.minutes(30)), .serialized)
struct DescriptorTests {
    private static let text = RelayStage.text.replacing("level: debug", with: "level: info")

    private func serve(_ folder: TemporaryFolder, before: String = "") async throws -> (Program, RunFile) {
        try writeFile(folder.path + "/sealbell.yaml", Array(Self.text.utf8), replacing: true)
        let program = try Program(
            ["serve", "--sandbox", "--config", "sealbell.yaml", "--state", "state"], in: folder.path,
            before: before)
        #expect(await program.says(#""event":"started""#))
        let file = try RunFile.running(folder.path + "/state")
        return (program, file)
    }

    @Test("A crowd at the public listener leaves the admin listener and the push services their descriptors")
    func crowd() async throws {
        let folder = try TemporaryFolder()
        let (program, file) = try await serve(folder, before: "ulimit -n 400;")
        #expect(program.text.contains("limits.connections: This process may open 400 files"))
        let port = try #require(LocalCall(patient: file.urls["public"])).port
        var crowd: [Stranger] = []
        for _ in 0..<500 { crowd.append(try await Stranger.connect(to: port)) }
        let admin = try #require(LocalCall(patient: file.urls["admin"]))
        #expect(try await admin.ask("GET", "/health/live").status == 200)
        // Some of the crowd were turned away, and none of them holds a descriptor for it.
        try await asked(for: "an alert") {
            try await admin.ask("GET", "/status").text.contains("places for connections")
        }
        #expect(!program.text.contains("descriptors"))
        for stranger in crowd { stranger.close() }
        await program.stop()
    }

    @Test("What is kept for the rest is not the crowd's, and what is missing is said")
    func plan() throws {
        let folder = try TemporaryFolder()
        var configuration = try ConfigurationLoader.read(
            Self.text, file: folder.path + "/sealbell.yaml",
            ConfigurationRequest(state: folder.path + "/state", isSandbox: true), facts(home: folder.path))
        let (door, admin) = (
            try #require(configuration.listeners.first { !$0.isAdmin }),
            try #require(configuration.listeners.first { $0.isAdmin })
        )
        func plan(_ limit: Int?) -> DescriptorBudget { DescriptorBudget(configuration, limit: limit) }
        #expect(plan(nil).connections(of: door) == 20_000 && plan(nil).shortage == nil)
        #expect(plan(1 << 20).connections(of: door) == 20_000 && plan(1 << 20).shortage == nil)
        #expect(plan(1 << 20).connections(of: admin) == DescriptorBudget.adminConnections)
        #expect(plan(20_000).connections(of: door) < 20_000 && plan(20_000).shortage == nil)
        #expect(plan(15_000).shortage != nil)
        // Three lanes of one app: Apple's two worlds, and Google.
        #expect(plan(1_024).connections(of: door) == 1_024 - (96 + 32 + 80 + 64 + 3 * 16))
        #expect(plan(400).connections(of: door) == 100, "a quarter at least")
        #expect(plan(20).connections(of: door) == 16)
        #expect(plan(1_024).shortage?.contains("LimitNOFILE") == true)
        configuration.limits.connections = 50
        #expect(plan(1_024).connections(of: door) == 50 && plan(1_024).shortage == nil)
        #expect(plan(1_024).connections(of: admin) == 50)
        let findings = DescriptorChecks(configuration, limit: 100).check()
        #expect(findings.map(\.severity) == [.warning])
        #expect(DescriptorChecks(configuration, limit: 1_024).check().map(\.severity) == [.good])
        #expect(try #require(DescriptorChecks.limit(of: getpid())) > 16)
        #expect(DescriptorChecks.limit(of: -1) == nil)
    }
}
