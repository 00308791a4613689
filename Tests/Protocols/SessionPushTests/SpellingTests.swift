import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

/// A phone may spell the digits of its device token in capital or in small letters.
@Suite("Spellings of a device token at a Session relay", .timeLimit(.minutes(30)))
struct SpellingTests {
    @Test("A phone that spells its token in both ways has one subscription, and ends it with either")
    func one() async throws {
        let rig = try await SessionRig()
        try await rig.running { rig in
            var call = PeerCall(try PeerAccount(seed: 1))
            let small = call.token
            _ = try await rig.ask("/subscribe", call.subscribe)
            call.token = small.uppercased()
            call.at += 1
            #expect(try await rig.ask("/subscribe", call.subscribe)["updated"]?.bool == true)
            #expect(try await rig.subscriptions().count == 1)
            try await rig.notify(.sample(call.account))
            await rig.services.sent(atLeast: 1)
            #expect(
                rig.services.sent.map { $0.message.apns?.token.reveal { Array($0) } } == [Array(small.utf8)])
            call.at += 1
            #expect(try await rig.ask("/unsubscribe", call.unsubscribe)["removed"]?.bool == true)
            #expect(try await rig.subscriptions().isEmpty)
        }
    }
}
