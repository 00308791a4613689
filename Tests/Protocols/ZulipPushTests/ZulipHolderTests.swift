import PushModel
import PushTesting
import Testing
import ZulipPush

/// Whose turns in a lane a Zulip server's pushes take (decision 0103).
@Suite("Holders of turns among Zulip servers", .timeLimit(.minutes(30)))
struct ZulipHolderTests {
    private static let host = "chat.example.org"

    /// Who held the turns of a call's two pushes.
    private func holders(_ admission: ZulipAdmission) async throws -> [Digest16] {
        let bench = try await RealmRig(admission: admission)
        if admission != .open {
            try #require(await bench.signUp(RealmRig.server, host: Self.host).status == 200)
            try #require(await bench.reportRealm(RealmRig.realm, by: RealmRig.server).status == 200)
        }
        let tokens = ["a1", "b2"].map { String(repeating: $0, count: 32) }
        return try await bench.relay.running { relay in
            var ids: [TokenID] = []
            for token in tokens { ids.append(try await bench.register(token, timestamp: bench.now.seconds)) }
            #expect(await bench.notify(ids).status == 200)
            await relay.services.sent(atLeast: 2)
            return relay.services.sent.map(\.origin)
        }
    }

    @Test("A server that an operator has let in holds the turns of all its pushes")
    func admitted() async throws {
        #expect(Set(try await holders(.allowList([Self.host]))).count == 1)
    }

    @Test("Where anybody may sign up, no server does: here, where no client is known, each phone has its own")
    func open() async throws {
        #expect(Set(try await holders(.open)).count == 2)
    }
}
