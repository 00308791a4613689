import NextcloudPush
import PushModel
import PushTesting
import Testing

/// Apps tell their server of a new token first and the relay after, so the server's first word about it says
/// nothing yet: what it reads as unknown it deletes.
@Suite("A token that the server knows before the relay", .timeLimit(.minutes(30)))
struct TokenChangeTests {
    private let alice = PeerUser.alice
    private let other = String(repeating: "C3", count: 32)

    @Test("Another hash is failed for ten minutes from its first sight on, however old the registration is")
    func firstSight() async throws {
        let rig = try await NextcloudRelayRig.make()
        let device = alice.device(1)
        await rig.register(device)
        // A year later the phone gets another token.
        rig.pass(.seconds(31_536_000))
        #expect(await rig.notify([device.entry(1, token: other)]).unknown == [], "at its first sight")
        rig.pass(.seconds(599))
        #expect(await rig.notify([device.entry(2, token: other)]).unknown == [])
        rig.pass(.seconds(1))
        let later = await rig.notify([device.entry(3, token: other)])
        #expect(later.unknown == [device.id] && later.failed == 1)
        let third = await rig.notify([device.entry(4, token: "a third token")])
        #expect(third.unknown == [] && third.failed == 1, "each new hash has its own first sight")
        #expect(try await rig.revisions().count == 3, "told, and nothing deleted")
    }

    @Test("It is the same where the token before has ended, and the registration that follows lives")
    func ended() async throws {
        try await NextcloudRelayRig.registered { rig, device in
            rig.end(PeerDevice.alertToken)
            await rig.notify([device.entry(1)])
            await rig.store.ends(atLeast: 1)
            let before = try await rig.revisions()
            let answer = await rig.notify([device.entry(2, token: other)])
            #expect(answer.unknown == [] && answer.failed == 1)
            let after = try await rig.revisions()
            #expect(after == before, "nothing goes before it is told")
            rig.pass(.seconds(1))
            #expect(await rig.register(device, token: other).status == 200)
            #expect(await rig.notify([device.entry(3, token: other)]).failed == 0)
            rig.pass(.seconds(600))
            // The one before it comes back: an old backup of the server's.
            #expect(await rig.notify([device.entry(4)]).unknown == [])
            rig.pass(.seconds(600))
            #expect(await rig.notify([device.entry(5)]).unknown == [device.id])
        }
    }

    @Test("An ended token whose new one never comes is told after ten minutes, and its rows go")
    func neverCame() async throws {
        try await NextcloudRelayRig.registered { rig, device in
            rig.end(PeerDevice.alertToken)
            await rig.notify([device.entry(1)])
            await rig.store.ends(atLeast: 1)
            #expect(await rig.notify([device.entry(2, token: other)]).unknown == [])
            rig.pass(.seconds(600))
            #expect(await rig.notify([device.entry(3, token: other)]).unknown == [device.id])
            let rows = try await rig.revisions()
            #expect(rows.isEmpty)
        }
    }

    @Test("Whoever cannot sign for the user says nothing of a token, at any time")
    func unsigned() async throws {
        let rig = try await NextcloudRelayRig.make()
        let device = alice.device(1)
        await rig.register(device)
        let forged = await rig.notify([device.entry(1, token: other, signedBy: .stranger)])
        #expect(forged.unknown == [] && forged.failed == 1)
        rig.pass(.seconds(601))
        #expect(await rig.notify([device.entry(1, token: other, signedBy: .stranger)]).unknown == [])
        #expect(await rig.notify([device.entry(2, token: other)]).unknown == [], "the server's first word")
    }
}
