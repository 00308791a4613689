import PushTesting
import Testing

@testable import RelayProgram

@Suite("A siege", .timeLimit(.minutes(30)), .serialized)
struct SiegeTests {
    /// `make siege` is the same for ten seconds each.
    @Test("While the listeners are attacked, an origin, a newcomer and an operator are served")
    func siege() async throws {
        let folder = try TemporaryFolder()
        let trial = try Program(
            ["siege", "--seconds", "0.3", "--callers", "2", "--keep", "trial"], of: Program.bench,
            in: folder.path)
        await trial.silence()
        #expect(await trial.status() == 0, "\(trial.text)")
        for row in [
            "quiet", "bodies without credentials", "connections of a crowd", "failed calls",
            "large bodies of strangers", "realms of the admitted", "ids that nobody has",
            "tokens that are none", "quota of one phone"
        ] {
            #expect(trial.text.contains("\(row): "))
        }
    }
}
