import PushTesting
import Testing

@testable import RelayProgram

@Suite("A siege", .timeLimit(.minutes(30)), .serialized)
struct SiegeTests {
    /// Those that cost little beforehand, unlike hundreds of keys and bodies that have to stand still first,
    /// and of which none depends on how soon a phone is answered.
    private static let rows = [
        "quiet", "bodies_without_credentials", "bodies_with_made_up_credentials",
        "connections_of_one_client", "connections_of_a_crowd", "failed_calls", "sign_ups_and_transfers",
        "challenges", "large_bodies_of_strangers", "realms_of_the_admitted", "ids_that_nobody_has",
        "tokens_that_are_none", "quota_of_one_phone", "wrong_subscription_keys", "made_up_tokens_of_a_member"
    ]

    /// `make siege` is the same for ten seconds each, and has some rows more.
    @Test("While the listeners are attacked, an origin, a newcomer and an operator are served")
    func siege() async throws {
        let folder = try TemporaryFolder()
        let chosen = Self.rows.flatMap { ["--attack", $0] }
        let trial = try Program(
            ["siege", "--seconds", "0.3", "--callers", "2", "--keep", "trial"] + chosen, of: Program.bench,
            in: folder.path)
        await trial.silence()
        #expect(await trial.status() == 0, "\(trial.text)")
        for row in Self.rows { #expect(trial.text.contains("\(row.replacing("_", with: " ")): ")) }
    }
}
