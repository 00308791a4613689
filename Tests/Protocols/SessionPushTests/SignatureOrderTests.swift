import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

/// The order of signatures decides, and clocks of phones may be wrong.
@Suite("Times of phones at a Session relay", .timeLimit(.minutes(30)))
struct SignatureOrderTests {
    private let alice: PeerAccount
    private static let ahead: Int64 = 23 * 3_600

    init() throws { alice = try PeerAccount(seed: 1) }

    private func error(_ answer: JSONValue) -> Int64? { answer["error"]?.int64 }

    @Test("An end that was signed before a living subscription does not end it, and is told so")
    func earlierEnd() async throws {
        let rig = try await SessionRig()
        var call = PeerCall(alice)
        let end = call.unsubscribe
        rig.advance(by: .seconds(5))
        call.at += 5
        _ = try await rig.ask("/subscribe", call.subscribe)
        #expect(error(try await rig.ask("/unsubscribe", end)) == 4)
        #expect(try await rig.subscriptions().count == 1)
        #expect(try await rig.ask("/unsubscribe", call.unsubscribe)["removed"]?.bool == true)
    }

    @Test("A subscription of a phone that is a day ahead is renewed, with its new key, by a right clock")
    func ahead() async throws {
        let rig = try await SessionRig()
        var call = PeerCall(alice)
        call.at += Self.ahead
        _ = try await rig.ask("/subscribe", call.subscribe)
        rig.advance(by: .seconds(60))
        for seconds in [Int64(60), 61, Self.ahead - 600] {
            call.at = SessionRig.now.seconds + seconds
            call.key = Hex.encode([UInt8](repeating: UInt8(truncatingIfNeeded: seconds), count: 32))
            #expect(try await rig.ask("/subscribe", call.subscribe)["updated"]?.bool == true, "\(seconds)")
            let known = try await rig.subscriptions()
            #expect(known.map { PeerAccount.hex($0.encryptionKey) } == [call.key], "\(seconds)")
        }
        // What was signed before it came is older all the same.
        call.at = SessionRig.now.seconds - 1
        #expect(error(try await rig.ask("/subscribe", call.subscribe)) == 4)
    }

    @Test("The end of a phone that is a day ahead locks nobody out, and a repeat of what it ended stays out")
    func aheadEnd() async throws {
        let rig = try await SessionRig()
        var call = PeerCall(alice)
        call.at += Self.ahead
        let repeated = call.subscribe
        _ = try await rig.ask("/subscribe", repeated)
        rig.advance(by: .seconds(30))
        call.at += 30
        #expect(try await rig.ask("/unsubscribe", call.unsubscribe)["removed"]?.bool == true)
        rig.advance(by: .seconds(30))
        #expect(error(try await rig.ask("/subscribe", repeated)) == 4)
        call.at = SessionRig.now.seconds + 60
        #expect(try await rig.ask("/subscribe", call.subscribe)["added"]?.bool == true)
        // A clock that is right ends it too.
        call.at += 1
        rig.advance(by: .seconds(1))
        #expect(try await rig.ask("/unsubscribe", call.unsubscribe)["removed"]?.bool == true)
    }

    @Test("A clock that is right ends the subscription of one that is a day ahead")
    func rightEnd() async throws {
        let rig = try await SessionRig()
        var call = PeerCall(alice)
        call.at += Self.ahead
        let repeated = call.subscribe
        _ = try await rig.ask("/subscribe", repeated)
        rig.advance(by: .seconds(10))
        call.at = SessionRig.now.seconds + 10
        #expect(try await rig.ask("/unsubscribe", call.unsubscribe)["removed"]?.bool == true)
        #expect(error(try await rig.ask("/subscribe", repeated)) == 4)
        #expect(try await rig.subscriptions().isEmpty)
    }

    @Test("Off and on within a second is on, and the same call a minute later is a repeat")
    func sameSecond() async throws {
        let rig = try await SessionRig()
        let call = PeerCall(alice)
        _ = try await rig.ask("/subscribe", call.subscribe)
        #expect(try await rig.ask("/unsubscribe", call.unsubscribe)["removed"]?.bool == true)
        #expect(try await rig.ask("/subscribe", call.subscribe)["added"]?.bool == true)
        #expect(try await rig.ask("/unsubscribe", call.unsubscribe)["removed"]?.bool == true)
        rig.advance(by: SessionLimits.sameSecond + .seconds(1))
        #expect(error(try await rig.ask("/subscribe", call.subscribe)) == 4)
        #expect(try await rig.subscriptions().isEmpty)
    }

    @Test("What changed nothing is no success, but for a repeat of what stands")
    func unchanged() async throws {
        let rig = try await SessionRig()
        var call = PeerCall(alice)
        _ = try await rig.ask("/subscribe", call.subscribe)
        #expect(try await rig.ask("/subscribe", call.subscribe)["updated"]?.bool == true)
        call.at -= 1
        #expect(error(try await rig.ask("/subscribe", call.subscribe)) == 4)
    }
}
