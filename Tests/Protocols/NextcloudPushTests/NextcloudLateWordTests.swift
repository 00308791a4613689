import NextcloudPush
import PushModel
import PushTesting
import Testing

/// What a push service says of a push that has waited while its phone registered again.
@Suite("Late words at a Nextcloud relay", .timeLimit(.minutes(30)))
struct NextcloudLateWordTests {
    private let alice = PeerUser.alice

    @Test(
        "A push waits, the phone registers again, and the retry is refused: the registration lives",
        arguments: ["alert", "voip"])
    func renewed(_ type: String) async throws {
        let rig = try await NextcloudRelayRig.make()
        let device = alice.device(1)
        let token = type == "voip" ? PeerDevice.voipToken : PeerDevice.alertToken
        let isRenewed = AwaitedCount()
        try await rig.running { rig in
            await rig.register(device)
            rig.services.answer(token) { _ in
                isRenewed.count > 0
                    ? Answer(.unregistered(since: nil), .unregisteredAPNs, sentAt: rig.world.now())
                    : Answer(.retry(after: nil), .serviceUnavailable, sentAt: rig.world.now())
            }
            await rig.notify([device.entry(1, type: type)])
            await rig.services.sent(atLeast: 1)
            rig.pass(.milliseconds(1))
            await rig.register(device)
            isRenewed.add()
            rig.pass(.seconds(2))
            await rig.store.ends(atLeast: 1)
            let key =
                type == "voip" ? rig.keys.voip(device.identifier) : rig.keys.alert(device.identifier)
            let state = try await rig.record(key)?.state
            #expect(state == .live)
            rig.services.answer(token, by: nil)
            #expect(await rig.notify([device.entry(2, type: type)]).unknown == [])
        }
    }
}
