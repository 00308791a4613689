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

    @Test(
        "A row that an earlier version named by capital letters is renewed, and ended",
        arguments: [true, false])
    func former(isRenewed: Bool) async throws {
        let rig = try await SessionRig()
        var call = PeerCall(try PeerAccount(seed: 1))
        let (account, capital) = (call.account, Secret(call.token.uppercased().utf8))
        _ = try await rig.ask("/subscribe", call.subscribe)
        let row = try #require(try await rig.records().first)
        let known = try #require(SessionSubscription(row))
        // The token stands last.
        let body = row.body.reveal { Array($0.dropLast(capital.count)) } + capital.reveal { Array($0) }
        let former = Record(
            key: rig.keys.former(known.account, known.service, capital),
            owner: rig.keys.owner(known.account), version: row.version, touchedAt: row.touchedAt,
            expiresAt: row.expiresAt, body: Secret(body))
        #expect(
            try await rig.store.apply([.delete(row.key, if: .any), .put(former, if: .any)]) == .committed)
        #expect(try await rig.subscriptions().map { $0.token == capital } == [true])
        call.at += 1
        try await rig.running { [call] rig in
            if isRenewed {
                #expect(try await rig.ask("/subscribe", call.subscribe)["updated"]?.bool == true)
                #expect(try await rig.subscriptions().map { $0.token == Secret(call.token.utf8) } == [true])
                try await rig.notify(.sample(account))
                await rig.services.sent(atLeast: 1)
                #expect(rig.services.sent.count == 1)
            } else {
                #expect(try await rig.ask("/unsubscribe", call.unsubscribe)["removed"]?.bool == true)
                #expect(try await rig.subscriptions().isEmpty)
            }
        }
    }
}
