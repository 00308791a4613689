import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// Single turns of a user's registrations that the vectors do not have (docs/conformance/zulip.md).
@Suite("Zulip registrations")
struct RegistrationTests {
    private static let realm = "0ec3eedd-6233-4c5e-a000-b9942be3494e"
    private static let day = Duration.seconds(86_400)
    private let start = UnixTime(seconds: 1_800_000_000)

    // MARK: the specification's own

    @Test("What a relay says of a device in answer to an older call does not end it")
    func olderAnswer() throws {
        var bench = OriginBench(realm: Self.realm)
        var seen = OriginBench.Seen()
        try bench.ask(.register, zap(7), of: "a", start, &seen)
        try bench.answer(Self.success(5), start + .seconds(10), &seen)
        let earlier = bench["a"].end(devices: [5], realm: Self.realm, askedAt: start + .seconds(9))
        #expect(earlier.isEmpty)
        #expect(bench["a"].end(devices: [5], realm: "another", askedAt: start + .seconds(20)).isEmpty)
        let later = bench["a"].end(devices: [5], realm: Self.realm, askedAt: start + .seconds(11))
        #expect(later.events == [.accountRemoved(7, code: nil)])
    }

    @Test("One user's devices of all profiles are targets once the relay has confirmed them")
    func targets() throws {
        var bench = OriginBench(realm: Self.realm)
        var seen = OriginBench.Seen()
        try bench.ask(.register, zap(7), of: "a", start, &seen)
        try bench.ask(.register, v11(8), of: "a", start, &seen)
        try bench.ask(.addDevice, [], of: "a", start, &seen)
        let device = try #require(seen.deviceID)
        try bench.ask(.register, v12(device, TokenID(3)), of: "a", start, &seen)
        #expect(bench["a"].targets.isEmpty)
        #expect(throws: OriginRefusal.self) { try bench["a"].targets(of: nil) }
        var test = OriginBench.Seen()
        try bench.ask(.test, [("push_account_id", "7")], of: "a", start, &test)
        #expect(test.answer?.body["code"]?.string == "NO_ACTIVE_PUSH_DEVICE")
        for id in 1...3 { try bench.answer(Self.success(Int64(id)), start, &seen) }
        #expect(Set(bench["a"].targets.map(\.profile)) == Set(ZulipProfile.allCases))
        #expect(try bench["a"].targets(of: .account(7)).map(\.profile) == [.zap])
        #expect(try bench["a"].targets(of: .device(device)).map(\.profile) == [.v12])
        #expect(throws: OriginRefusal.self) { try bench["a"].targets(of: .account(9)) }
    }

    @Test("One account id has one record, of the profile that registered last")
    func oneNameSpace() throws {
        var bench = OriginBench(realm: Self.realm)
        var seen = OriginBench.Seen()
        try bench.ask(.register, zap(7), of: "a", start, &seen)
        try bench.answer(Self.success(5), start, &seen)
        seen = OriginBench.Seen()
        try bench.ask(.register, v11(7), of: "a", start, &seen)
        #expect(
            seen.events.map(\.event) == [
                try JSONValue.parse(
                    Array(#"{"type":"push_account","op":"remove","push_account_id":7}"#.utf8)),
                try JSONValue.parse(
                    Array(#"{"type":"push_device","push_account_id":7,"status":"pending"}"#.utf8))
            ])
        #expect(try bench.state(.zap, of: "a") == .object([:]))
        try bench.answer(Self.success(6), start, &seen)
        seen = OriginBench.Seen()
        try bench.ask(.register, zap(7), of: "a", start, &seen)
        #expect(try bench.state(.v11, of: "a") == .object([:]))
        #expect(bench["a"].accounts.count == 1 && bench["a"].accounts[7]?.deviceID == nil)
        #expect(bench["a"].queue.count == 1)
    }

    @Test("A user has a hundred records and as many notes, however many ids a client makes up")
    func hostileClient() throws {
        var bench = OriginBench(realm: Self.realm)
        var refused = 0
        for id in 0..<1_000 {
            var seen = OriginBench.Seen()
            try bench.ask(.register, zap(Int64(id)), of: "a", start, &seen)
            refused += seen.answer?.status == 400 ? 1 : 0
        }
        #expect(refused == 900 && bench["a"].accounts.count == 100 && bench["a"].queue.count == 100)
        // Every one of them is refused by the relay, and room is made for others.
        var folded = try FoldedState(bench["a"])
        for id in 1_000..<1_300 {
            var seen = OriginBench.Seen()
            let key = CallAnswer(
                status: 400, body: Secret(#"{"code":"INVALID_BOUNCER_PUBLIC_KEY"}"#.utf8))
            try bench.answer(key, start + .seconds(Int64(id)), &seen)
            try bench.ask(.register, zap(Int64(id)), of: "a", start, &seen)
            for (_, event) in seen.events { folded.apply(event) }
        }
        #expect(bench["a"].notes.count == 100 && bench["a"].accounts.count == 100)
        #expect(try FoldedState(bench["a"]) == folded)
    }

    @Test("A user who leaves takes everything along, and clients are told")
    func leaving() throws {
        var bench = OriginBench(realm: Self.realm)
        var seen = OriginBench.Seen()
        for id in 1...3 { try bench.ask(.register, zap(Int64(id)), of: "a", start, &seen) }
        try bench.answer(
            CallAnswer(status: 400, body: Secret(#"{"code":"REQUEST_EXPIRED"}"#.utf8)), start, &seen)
        try bench.ask(.register, v11(9), of: "a", start, &seen)
        try bench.ask(.addDevice, [], of: "a", start, &seen)
        var folded = try FoldedState(bench["a"])
        let step = bench["a"].leave()
        for event in step.events { folded.apply(try JSONValue.parse(event.json())) }
        #expect(folded.zap.isEmpty && folded.v12.isEmpty)
        let left = bench["a"]
        #expect(left.accounts.isEmpty && left.devices.isEmpty && left.notes.isEmpty && left.queue.isEmpty)
    }

    @Test("A clock that was set back holds up no try for longer than a relay may ask for")
    func clockSetBack() throws {
        var bench = OriginBench(realm: Self.realm)
        var seen = OriginBench.Seen()
        let future = start + Self.day * 400
        try bench.ask(.register, zap(7), of: "a", future, &seen)
        try bench.answer(.none, future, &seen)
        #expect(try bench.tick(start).calls.count == 1)
    }

    @Test("Rows of a store that was mended by hand do not wait for ever")
    func stranded() throws {
        let recipient = try PushPublicKey(base64: Self.point())
        let item = ZulipQueueItem(
            id: 9, subject: .account(1),
            registration: SealedRegistration(
                .account(1), kind: .fcm, bouncerKey: "k", sealed: Secret("b".utf8)),
            calledAt: start, nextTry: start)
        var device = ZulipDeviceRow(id: 3)
        device.pendingTokenID = TokenID(1)
        var value = ZulipRegistrations(
            realm: Self.realm,
            accounts: [
                ZulipAccountRow(id: 1, kind: .fcm, key: .zap(recipient), deviceID: 5),
                ZulipAccountRow(id: 2, kind: .fcm, key: .zap(recipient), registration: 77)
            ], devices: [device], queue: [item])
        let step = value.tick(now: start)
        #expect(step.calls.isEmpty && value.queue.isEmpty && value.accounts[1]?.deviceID == 5)
        #expect(value.notes[2]?.code == "REQUEST_EXPIRED")
        #expect(value.devices[3]?.errorCode == "REQUEST_EXPIRED")
        #expect(value.tick(now: start).isEmpty)
    }

    @Test("Rows are read as they were written, and cut or changed they are none or others, without a trap")
    func bodies() throws {
        let recipient = try PushPublicKey(base64: Self.point())
        let key = try PushKey(base64: Secret(Self.key.utf8))
        var device = ZulipDeviceRow(id: .min)
        let empty = device
        (device.keyID, device.key, device.kind) = (.max, key, .apns)
        (device.tokenID, device.pendingTokenID, device.updatedAt) = (TokenID(.max), TokenID(0), .min)
        (device.errorCode, device.confirmedAt, device.registration) = ("E", start, .max)
        let account = ZulipAccountRow(
            id: .max, kind: .fcm, key: .v11(key), deviceID: .max, confirmedAt: start, errorCode: "E",
            registration: .max)
        let bare = ZulipAccountRow(id: -1, kind: .apns, key: .zap(recipient))
        let note = ZulipRegistrationFailure(id: .min, code: "REQUEST_EXPIRED", at: start)
        let item = ZulipQueueItem(
            id: .max, subject: .device(.min),
            registration: SealedRegistration(
                .token(TokenID(.max)), kind: .fcm, bouncerKey: "é", sealed: Secret([])),
            calledAt: start, tries: .max, nextTry: start, hasTold: true)
        #expect(ZulipDeviceRow(body: device.body).map { "\($0)" } == "\(device)")
        #expect(ZulipDeviceRow(body: device.body)?.key.map { $0.base64 == key.base64 } == true)
        #expect(ZulipDeviceRow(body: empty.body).map { "\($0)" } == "\(empty)")
        #expect(ZulipAccountRow(body: account.body).map { "\($0)" } == "\(account)")
        #expect(ZulipAccountRow(body: bare.body).map { "\($0)" } == "\(bare)")
        #expect(ZulipRegistrationFailure(body: note.body) == note)
        #expect(ZulipQueueItem(body: item.body).map { "\($0)" } == "\(item)")
        for body in [device.body, empty.body, account.body, bare.body, note.body, item.body] {
            let bytes = body.reveal { Array($0) }
            for length in 0..<bytes.count {
                let cut = Secret(bytes[..<length])
                #expect(ZulipDeviceRow(body: cut) == nil && ZulipAccountRow(body: cut) == nil)
                #expect(ZulipRegistrationFailure(body: cut) == nil && ZulipQueueItem(body: cut) == nil)
                var changed = bytes
                changed[length] ^= 0xFF
                // Whether it is one is not the question.
                let other = Secret(changed)
                _ = (ZulipDeviceRow(body: other), ZulipAccountRow(body: other))
                _ = (ZulipRegistrationFailure(body: other), ZulipQueueItem(body: other))
            }
        }
    }

    // MARK: a restored backup

    /// The replay clause of the specification ("Registering a client device"), with a relay that keeps what
    /// it was told and refuses what is older than a day.
    @Test("A backup that is restored beside the original changes nothing of the original's")
    func backup() throws {
        var original = OriginBench(realm: Self.realm, seed: 1)
        var seen = OriginBench.Seen()
        try original.ask(.register, zap(7), of: "a", start, &seen)
        // The backup is made while the request is in the queue.
        var restored = original
        try original.answer(Self.success(5), start + .seconds(1), &seen)
        let confirmed = RegistrationStore.text(of: original["a"])

        let later = start + Self.day + .seconds(60)
        seen = try restored.tick(later)
        try restored.answer(
            CallAnswer(status: 400, body: Secret(#"{"code":"REQUEST_EXPIRED"}"#.utf8)), later, &seen)
        #expect(restored["a"].accounts.isEmpty && seen.alerts == ["registration-expired"])
        #expect(RegistrationStore.text(of: original["a"]) == confirmed)
        #expect(try original.tick(later).calls.isEmpty)
        #expect(
            try original.state(.zap, of: "a") == JSONValue.parse(Array(#"{"7":{"status":"active"}}"#.utf8)))
    }

    // MARK: v12

    @Test("In v12 a registration that is under way is replaced, and only its newest answer counts")
    func pendingIsReplaced() throws {
        var (bench, device) = try device()
        var seen = OriginBench.Seen()
        try bench.ask(.register, v12(device, TokenID(1)), of: "a", start, &seen)
        seen = OriginBench.Seen()
        try bench.ask(.register, token(device, TokenID(2)), of: "a", start + .seconds(5), &seen)
        #expect(seen.answer?.status == 200 && seen.calls.count == 1 && bench["a"].queue.count == 1)
        seen = OriginBench.Seen()
        try bench.answer(call: 0, Self.success(), start + .seconds(6), &seen)
        #expect(seen.events.isEmpty && bench["a"].devices[device]?.tokenID == nil)
        try bench.answer(Self.success(), start + .seconds(7), &seen)
        #expect(bench["a"].devices[device]?.tokenID == TokenID(2))
        #expect(bench["a"].devices[device]?.pendingTokenID == nil && bench["a"].queue.isEmpty)
    }

    @Test("In v12 the same token again is a repeat after a day, and stays in use while the relay is asked")
    func repeated() throws {
        var (bench, device) = try device()
        var seen = OriginBench.Seen()
        try bench.ask(.register, v12(device, TokenID(1)), of: "a", start, &seen)
        try bench.answer(Self.success(), start, &seen)
        seen = OriginBench.Seen()
        try bench.ask(.register, token(device, TokenID(1)), of: "a", start + .seconds(86_399), &seen)
        #expect(seen.calls.isEmpty && seen.events.isEmpty && seen.answer?.status == 200)
        try bench.ask(.register, token(device, TokenID(1)), of: "a", start + Self.day, &seen)
        #expect(seen.calls.count == 1 && bench["a"].targets.count == 1)
        // A relay that cannot be reached for a day ends the repeat, not the device.
        try bench.answer(.none, start + Self.day, &seen)
        seen = try bench.tick(start + Self.day * 2 + .seconds(1))
        #expect(seen.alerts == ["registration-expired"])
        #expect(bench["a"].devices[device]?.errorCode == "REQUEST_EXPIRED")
        #expect(bench["a"].targets.count == 1)
        // The client is told, and what it sends then is no repeat.
        seen = OriginBench.Seen()
        try bench.ask(.register, token(device, TokenID(1)), of: "a", start + Self.day * 2, &seen)
        #expect(seen.calls.count == 1)
    }

    @Test("In v12 a dead token goes, and its device stays")
    func deadToken() throws {
        var (bench, device) = try device()
        var seen = OriginBench.Seen()
        try bench.ask(.register, v12(device, TokenID(1)), of: "a", start, &seen)
        try bench.answer(Self.success(), start + .seconds(5), &seen)
        #expect(bench["a"].end(tokens: [TokenID(1)], realm: Self.realm, askedAt: start).isEmpty)
        #expect(bench["a"].end(tokens: [TokenID(2)], realm: Self.realm, askedAt: start + Self.day).isEmpty)
        let step = bench["a"].end(tokens: [TokenID(1)], realm: Self.realm, askedAt: start + Self.day)
        #expect(
            step.events.map { $0.json() } == [
                Array(#"{"type":"device","op":"update","device_id":\#(device),"push_token_id":null}"#.utf8)
            ])
        #expect(bench["a"].targets.isEmpty && bench["a"].devices.count == 1)
        #expect(bench["a"].devices[device]?.key != nil)
    }

    @Test("Devices of v12 are removed with what is under way for them")
    func removed() throws {
        var (bench, device) = try device()
        var seen = OriginBench.Seen()
        try bench.ask(.register, v12(device, TokenID(1)), of: "a", start, &seen)
        seen = OriginBench.Seen()
        try bench.ask(.removeDevice, [("device_id", "\(device)")], of: "a", start, &seen)
        #expect(seen.answer?.status == 200 && bench["a"].queue.isEmpty && bench["a"].devices.isEmpty)
        try bench.answer(call: 0, Self.success(), start, &seen)
        #expect(bench["a"].devices.isEmpty)
        seen = OriginBench.Seen()
        try bench.ask(.removeDevice, [("device_id", "\(device)")], of: "a", start, &seen)
        #expect(seen.answer?.body["msg"]?.string == "Invalid `device_id`")
        for _ in 0..<100 { try bench.ask(.addDevice, [], of: "a", start, &seen) }
        #expect(seen.answer?.status == 200)
        try bench.ask(.addDevice, [], of: "a", start, &seen)
        #expect(seen.answer?.status == 400 && bench["a"].devices.count == 100)
    }

    // MARK: v11

    @Test("In v11 a refused record stays as failed, also at its end after a day")
    func v11End() throws {
        var bench = OriginBench(realm: Self.realm)
        var seen = OriginBench.Seen()
        try bench.ask(.register, v11(7), of: "a", start, &seen)
        #expect(try bench.tick(start + Self.day).events.isEmpty)
        seen = try bench.tick(start + Self.day + .milliseconds(1))
        #expect(seen.alerts == ["registration-expired"])
        #expect(
            try bench.state(.v11, of: "a")
                == JSONValue.parse(
                    Array(#"{"7":{"status":"failed","error_code":"REQUEST_EXPIRED"}}"#.utf8)))
        #expect(try bench.state(.zap, of: "a") == .object([:]))
    }

    // MARK: parts

    private func device() throws -> (OriginBench, Int64) {
        var bench = OriginBench(realm: Self.realm)
        var seen = OriginBench.Seen()
        try bench.ask(.addDevice, [], of: "a", start, &seen)
        return (bench, try #require(seen.deviceID))
    }

    private static let blob = Base64.text([UInt8](repeating: 7, count: 60))
    private static let key = Base64.text([0x31] + [UInt8](repeating: 7, count: 32))

    private static func point() throws -> String {
        Base64.text(try X25519KeyPair(privateKey: Secret([UInt8](repeating: 7, count: 32))).publicKey)
    }

    private func zap(_ id: Int64) throws -> [(String, String)] {
        [
            ("push_account_id", String(id)), ("encrypted_push_registration", Self.blob),
            ("bouncer_public_key", "k"), ("push_public_key", try Self.point()), ("token_kind", "fcm")
        ]
    }

    private func v11(_ id: Int64) -> [(String, String)] {
        [
            ("push_account_id", String(id)), ("push_key", Self.key), ("token_kind", "fcm"),
            ("bouncer_public_key", "k"), ("encrypted_push_registration", Self.blob)
        ]
    }

    private func token(_ device: Int64, _ token: TokenID) -> [(String, String)] {
        [
            ("device_id", String(device)), ("token_kind", "fcm"), ("token_id", token.text),
            ("bouncer_public_key", "k"), ("encrypted_push_registration", Self.blob)
        ]
    }

    private func v12(_ device: Int64, _ token: TokenID) -> [(String, String)] {
        self.token(device, token) + [("push_key_id", "1"), ("push_key", Self.key)]
    }

    private static func success(_ device: Int64? = nil) -> CallAnswer {
        let id = device.map { #","device_id":\#($0)"# } ?? ""
        return CallAnswer(status: 200, body: Secret((#"{"result":"success","msg":""\#(id)}"#).utf8))
    }
}
