import Foundation
import PushTesting
import Testing

/// systemd starts a unit five times in ten seconds at most, and then never again. A relay that fails at once,
/// because its address or its database is not there yet, must not use that up.
@Suite("Unit files")
struct UnitFileTests {
    private static let limit = (starts: 5, seconds: 10)

    @Test(
        "A relay that fails at once is started again for as long as it takes",
        arguments: ["packaging/systemd/sealbell.service", "docs/guides/zulip.md"])
    func restarts(name: String) throws {
        let text = try String(contentsOf: repositoryRoot().appending(path: name), encoding: .utf8)
        #expect(text.contains("\nRestart=on-failure\n"))
        #expect(!text.contains("StartLimit"), "the numbers here are systemd's own")
        let pause = try #require(text.firstMatch(of: #/\nRestartSec=([0-9]+)\n/#).flatMap { Int($0.1) })
        #expect(pause * Self.limit.starts > Self.limit.seconds)
    }
}
