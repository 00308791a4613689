import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

/// What a push service says of a push that has waited while its phone subscribed again.
@Suite("Late words at a Session relay", .timeLimit(.minutes(30)))
struct SessionLateWordTests {
    @Test("A push waits, the phone subscribes again, and the retry is refused: the subscription lives")
    func renewed() async throws {
        let alice = try PeerAccount(seed: 1)
        let rig = try await SessionRig()
        let isRenewed = AwaitedCount()
        try await rig.running { rig in
            var call = PeerCall(alice)
            _ = try await rig.ask("/subscribe", call.subscribe)
            rig.services.answer(call.token) { _ in
                isRenewed.count > 0
                    ? Answer(.unregistered(since: nil), .unregisteredAPNs, sentAt: rig.world.now())
                    : Answer(.retry(after: nil), .serviceUnavailable, sentAt: rig.world.now())
            }
            try await rig.notify(.sample(alice))
            await rig.services.sent(atLeast: 1)
            rig.pass(.seconds(1))
            call.at += 1
            #expect(try await rig.ask("/subscribe", call.subscribe)["updated"]?.bool == true)
            isRenewed.add()
            rig.pass(.seconds(2))
            await rig.store.ends(atLeast: 1)
            #expect(try await rig.subscriptions().count == 1)
        }
    }
}
