import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// What a push service says of a push that has waited while its phone registered again.
@Suite("Late words at a Zulip relay", .timeLimit(.minutes(30)))
struct ZulipLateWordTests {
    @Test("A push waits, the phone registers again, and the retry is refused: the registration lives")
    func renewed() async throws {
        let bench = try await RealmRig()
        let isRenewed = AwaitedCount()
        try await bench.relay.running { relay in
            let id = try await bench.register("ab12", timestamp: bench.now.seconds)
            relay.services.answer("ab12") { _ in
                isRenewed.count > 0
                    ? Answer(.unregistered(since: nil), .unregisteredAPNs, sentAt: relay.world.now())
                    : Answer(.retry(after: nil), .serviceUnavailable, sentAt: relay.world.now())
            }
            #expect(await bench.notify([id]).json["apple_successfully_sent_count"]?.int64 == 0)
            relay.advance(by: .seconds(1))
            _ = try await bench.register("ab12", timestamp: bench.now.seconds + 1)
            isRenewed.add()
            relay.advance(by: .seconds(2))
            await relay.store.ends(atLeast: 1)
            let key = try await relay.deviceKey(try #require(UUIDText(RealmRig.realm)), id)
            #expect(try await relay.record(key)?.state == .live)
        }
    }
}
