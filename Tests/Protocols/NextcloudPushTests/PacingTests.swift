import Delivery
import NextcloudPush
import PushModel
import PushTesting
import Testing

/// Deployed servers send a batch once: a user above the pace must not cost the others theirs.
@Suite("Nextcloud batches with a user above the pace", .timeLimit(.minutes(30)))
struct PacingTests {
    private static let perMinute = 4
    private let loud = PeerUser.alice.device(1)
    private let quiet = PeerUser.bob.device(2)

    /// Brings one user beyond the bound, by a call that may be larger than it.
    private func begin(_ rig: NextcloudRelayRig) async {
        for device in [loud, quiet] { await rig.register(device) }
        #expect(await rig.notify((1...60).map { loud.entry($0) }).failed == 0)
        await rig.services.sent(atLeast: Self.perMinute)
    }

    @Test("That user's entries are counted as failed and never named; the others are sent")
    func withheld() async throws {
        let rig = try await NextcloudRelayRig.make(pushesPerMinute: Self.perMinute)
        try await rig.running { rig in
            await begin(rig)
            let stranger = PeerUser.stranger.device(3)
            let answer = await rig.notify([
                loud.entry(101), quiet.entry(102), "no entry", loud.entry(103), stranger.entry(104),
                quiet.entry(105)
            ])
            #expect(answer.status == 200 && answer.retryAfter == nil)
            #expect(answer.unknown == [stranger.id], "a user above the pace is registered all the same")
            #expect(answer.failed == 4)
            await rig.services.sent(atLeast: Self.perMinute + 2)
            #expect(rig.services.sent.count == Self.perMinute + 2)
            #expect(Set(rig.services.sent.suffix(2).map(\.record)).count == 1, "both are of one device")
        }
    }

    @Test("A user whose messages are withheld is called all the same")
    func call() async throws {
        let rig = try await NextcloudRelayRig.make(pushesPerMinute: Self.perMinute)
        try await rig.running { rig in
            await begin(rig)
            let answer = await rig.notify([loud.entry(101), loud.entry(102, type: "voip")])
            #expect(answer.status == 200 && answer.failed == 1 && answer.unknown == [])
            await rig.services.sent(atLeast: Self.perMinute + 1)
            #expect(rig.services.sent.last?.pushClass == .urgent)
        }
    }

    @Test("Where nothing of a call can be sent it is a 429 with Retry-After, and no word of entries")
    func refused() async throws {
        let rig = try await NextcloudRelayRig.make(pushesPerMinute: Self.perMinute)
        try await rig.running { rig in
            await begin(rig)
            let answer = await rig.notify([loud.entry(101), "no entry", loud.entry(102)])
            #expect(answer.status == 429 && answer.retryAfter == "240")
            #expect(answer.unknown == nil && answer.failed == nil)
            #expect(await rig.notify([quiet.entry(103)]).failed == 0)
        }
    }

    @Test("A dead device's rows go with the answer, though another user's entries are withheld")
    func changes() async throws {
        let rig = try await NextcloudRelayRig.make(pushesPerMinute: Self.perMinute)
        try await rig.running { rig in
            await begin(rig)
            let dead = PeerUser.stranger.device(3)
            let token = String(repeating: "D4", count: 32)
            await rig.register(dead, token: token)
            rig.end(token)
            #expect(await rig.notify([dead.entry(1, token: token)]).failed == 0)
            await rig.store.ends(atLeast: 1)
            let answer = await rig.notify([
                loud.entry(101), dead.entry(2, token: token), quiet.entry(102)
            ])
            #expect(answer.status == 200 && answer.unknown == [dead.id] && answer.failed == 2)
            let (gone, kept) = (
                try await rig.pin(dead.identifier), try await rig.pin(loud.identifier)
            )
            #expect(gone == nil && kept != nil)
        }
    }
}
