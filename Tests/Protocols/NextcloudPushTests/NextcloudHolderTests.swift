import NextcloudPush
import PushModel
import PushTesting
import Testing

/// Whose turns in a lane a Nextcloud server's pushes take (decision 0103).
@Suite("Holders of turns among Nextcloud's callers", .timeLimit(.minutes(30)))
struct NextcloudHolderTests {
    /// Each user's key is free, and all name one phone.
    private static let users = [PeerUser.alice, .bob, .stranger]

    private func entries(_ number: Int) -> [String] {
        Self.users.enumerated().map { index, user in
            user.device(index, of: "user\(index)@cloud.example.org").entry(number, type: "voip")
        }
    }

    private func register(_ rig: NextcloudRelayRig) async {
        for (index, user) in Self.users.enumerated() {
            await rig.register(user.device(index, of: "user\(index)@cloud.example.org"))
        }
    }

    /// Who held the turn of each push, call after call.
    private func holders(_ rig: NextcloudRelayRig, after count: Int) async -> [Digest16] {
        await rig.services.sent(atLeast: count)
        return rig.services.sent.map(\.origin)
    }

    @Test("Without subscription keys turns are the calling client's, however many users' keys it has")
    func clients() async throws {
        let rig = try await NextcloudRelayRig.make()
        try await rig.running { rig in
            await register(rig)
            #expect(await rig.notify(entries(1), from: 7).failed == 0)
            let first = await holders(rig, after: 3)
            #expect(first.count == 3 && Set(first).count == 1, "\(first)")
            #expect(await rig.notify(entries(2), from: 8).failed == 0)
            let both = await holders(rig, after: 6)
            #expect(both.count == 6 && Set(both).count == 2, "\(both)")
        }
    }

    @Test("With subscription keys turns are the key's, from wherever it is shown")
    func subscriptions() async throws {
        let keys = ["key-a", "key-b"]
        let policy = NextcloudPolicy(subscriptionKeys: keys.map { Secret($0.utf8) })
        let rig = try await NextcloudRelayRig.make(policy: policy)
        try await rig.running { rig in
            await register(rig)
            for (number, key, client) in [(1, "key-a", 7), (2, "key-a", 8), (3, "key-b", 8)] {
                let answer = await rig.notify(
                    entries(number), subscriptionKey: key, from: UInt64(client))
                #expect(answer.failed == 0)
                await rig.services.sent(atLeast: number * 3)
            }
            let sent = rig.services.sent.map(\.origin)
            #expect(Set(sent.prefix(6)).count == 1 && Set(sent).count == 2, "\(sent)")
        }
    }
}
