import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// Keys, calls and opening on the device (docs/conformance/zulip.md).
@Suite("Zulip device")
struct ZulipDeviceTests {
    private static let start = UnixTime(seconds: 1_800_000_000)
    private static let account = ZulipAccount(realmURL: "https://chat.example.org", userID: 7)
    private static let day = Duration.seconds(86_400)
    /// The base point of Curve25519, which is a public key.
    private static let bouncer = Base64.text([9] + [UInt8](repeating: 0, count: 31))

    private func phone(_ token: String = "tok") -> DevicePushToken {
        DevicePushToken(kind: .fcm, token: Secret(token.utf8), appID: nil)
    }

    @Test("A key lives 30 days, is superseded when its successor is 15 days old, and goes 30 days later")
    func rotation() {
        var random = SeededRandom(seed: 1)
        var device = ZulipRoutine(account: Self.account)
        device.tendKeys(now: Self.start, using: &random)
        device.tendKeys(now: Self.start + Self.day * 29, using: &random)
        #expect(device.keys.count == 1)
        device.tendKeys(now: Self.start + Self.day * 30, using: &random)
        #expect(device.keys.count == 2)
        #expect(device.keys[0].supersededAt == nil)
        device.tendKeys(now: Self.start + Self.day * 45, using: &random)
        #expect(device.keys[0].supersededAt == Self.start + Self.day * 45)
        device.tendKeys(now: Self.start + Self.day * 59, using: &random)
        #expect(device.keys.count == 2)
        let first = device.keys[0].id
        device.tendKeys(now: Self.start + Self.day * 75, using: &random)
        #expect(!device.keys.contains { $0.id == first })
    }

    @Test("A key that the server shows supersedes the older ones at once")
    func observed() throws {
        var random = SeededRandom(seed: 2)
        var device = ZulipRoutine(account: Self.account)
        device.tendKeys(now: Self.start, using: &random)
        device.tendKeys(now: Self.start + Self.day * 30, using: &random)
        device.observe(ZulipDeviceState(pushKeyID: device.keys[1].id), now: Self.start + Self.day * 31)
        #expect(device.keys[0].supersededAt == Self.start + Self.day * 31)
        #expect(device.keys[1].supersededAt == nil)
    }

    @Test("The device tells the server what differs, and nothing when nothing does")
    func calls() throws {
        var random = SeededRandom(seed: 3)
        var device = ZulipRoutine(account: Self.account)
        device.tendKeys(now: Self.start, using: &random)
        let key = try #require(device.newestKey?.id)
        let id = TokenID(token: Secret("tok".utf8))
        func call(_ state: ZulipDeviceState, at now: UnixTime = ZulipDeviceTests.start) throws
            -> DeviceRegistrationCall?
        {
            try device.register(state, token: phone(), bouncerKey: Self.bouncer, now: now, using: &random)
        }
        let settled = ZulipDeviceState(pushKeyID: key, tokenID: id, tokenUpdatedAt: Self.start.seconds)
        #expect(try call(settled) == nil)
        let fresh = try #require(try call(ZulipDeviceState()))
        #expect(fresh.fields.map(\.name).count == 6)
        var state = settled
        state.pushKeyID = key &+ 1
        let rotated = try #require(try call(state))
        #expect(rotated.key != nil && rotated.token == nil)
        state = settled
        state.errorCode = "REQUEST_EXPIRED"
        #expect(try call(state)?.token != nil)
        state = settled
        state.pendingTokenID = TokenID(1)
        #expect(try call(state)?.token != nil)
        #expect(try call(settled, at: Self.start + Self.day * 29) == nil)
        #expect(try call(settled, at: Self.start + Self.day * 30)?.token != nil)
    }

    @Test("A token or a relay key that no relay takes is refused on the phone")
    func refused() {
        var random = SeededRandom(seed: 4)
        var device = ZulipRoutine(account: Self.account)
        #expect(throws: ZulipError(.unknownPushKey)) {
            try device.register(
                ZulipDeviceState(), token: phone(), bouncerKey: Self.bouncer, now: Self.start, using: &random)
        }
        device.tendKeys(now: Self.start, using: &random)
        #expect(throws: ZulipError(.invalidRegistration)) {
            try device.register(
                ZulipDeviceState(), token: phone(""), bouncerKey: Self.bouncer, now: Self.start,
                using: &random)
        }
        #expect(throws: ZulipError(.unknownBouncerKey)) {
            try device.register(
                ZulipDeviceState(), token: phone(), bouncerKey: "AAAA", now: Self.start, using: &random)
        }
        #expect(throws: ZulipError(.unknownPushKey)) {
            try device.open(pushKeyID: 1, encryptedData: Secret("QUJD".utf8))
        }
    }
}
