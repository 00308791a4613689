import PushTesting
import Testing

@testable import RelayProgram

@Suite("Restarts under load", .timeLimit(.minutes(30)), .serialized)
struct RestartTests {
    /// `make restarts` is the same two hundred times.
    @Test("No call is refused, reset or left without an answer while the socket is handed on")
    func restarts() async throws {
        let folder = try TemporaryFolder()
        let trial = try Program(
            ["restarts", "--restarts", "3", "--kept", "4", "--fresh", "4", "--keep", "trial"],
            of: Program.bench, in: folder.path)
        await trial.silence()
        #expect(await trial.status() == 0, "\(trial.text)")
    }

    @Test("A socket that fits no listener ends the start, for who connects to it would wait for ever")
    func foreignSocket() async throws {
        let folder = try TemporaryFolder()
        try writeFile(folder.path + "/sealbell.yaml", Array(RelayStage.text.utf8), replacing: true)
        // Descriptor 3 is a file: no socket at all.
        let program = try Program(
            ["serve", "--sandbox", "--config", "sealbell.yaml", "--state", "state"], in: folder.path,
            before: "exec 3<sealbell.yaml; export LISTEN_PID=$$ LISTEN_FDS=1;")
        await program.silence()
        #expect(await program.status() == 78)
        #expect(program.text.contains("LISTEN_FDS: descriptor 3"))
    }
}
