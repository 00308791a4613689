import PushTesting
import Testing
import WireFormats

@testable import RelayProgram

@Suite("What a relay with many of Status's people costs", .timeLimit(.minutes(30)), .serialized)
struct StatusFollowedBenchTests {
    /// `sealbell-bench status` is the same for a hundred thousand.
    @Test("A relay answers about people of its store with the keys of their rows, and messages leave nothing")
    func followed() async throws {
        let folder = try TemporaryFolder()
        let bench = try Program(
            [
                "status", "--rounds", "3", "--requests", "10", "--people", "220", "--messages", "200",
                "--json"
            ], of: Program.bench, in: folder.path)
        await bench.silence()
        // Whether its goal of speed is met a busy machine decides. What fails otherwise prints no report.
        let line = try #require(bench.text.split(separator: "\n").last { $0.hasPrefix("{") }, "\(bench.text)")
        let report = try JSONValue.parse(Array(line.utf8))
        func figure(_ name: String) throws -> Double { try #require(report["followed_\(name)"]?.double) }
        #expect(try figure("people") == 220 && figure("topics") == 440 && figure("messages") == 200)
        #expect(try figure("kept_cpu_microseconds_a_message") > 0)
        #expect(try figure("read_cpu_microseconds_a_message") > 0)
        // A message once left 190 KB behind.
        for kind in ["kept", "read"] {
            #expect(try figure("\(kind)_resident_bytes_added") < 0x200_0000)
        }
    }
}
