import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// The routine in the deployed profiles, and where a server changes its profile.
@Suite("Zulip routine by profile")
struct ProfileRoutineTests {
    private static let day: Int64 = 86_400
    private static let added = #"{"result":"success","msg":"","device_id":41}"#

    /// Columns of the phone's device, as `POST register` shows them.
    private func state(_ columns: String) -> String {
        #"{"result":"success","devices":{"40":{"push_key_id":"no"},"41":{\#(columns)}}}"#
    }

    private func update(_ columns: String) -> String {
        #"{"type":"device","op":"update","device_id":41,\#(columns)}"#
    }

    private static func tokenID(_ token: String = ZulipPlayedDevice.token) -> String {
        TokenID(token: Secret(token.utf8)).text
    }

    /// Registered and active at a server of v12.
    private func deployed() throws -> ZulipPlayedDevice {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.v12)
        #expect(try phone.begin() == ["add"])
        #expect(try phone.answer(200, Self.added) == ["register"])
        #expect(try phone.answer(200) == ["timer"])
        try phone.event(
            update(#""push_token_id":"\#(Self.tokenID())","pending_push_token_id":null"#))
        try #require(phone.status.state == .active)
        return phone
    }

    // MARK: v12

    @Test("v12: a device first, then both groups; pending, then active; then nothing to say")
    func wholeWay() throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.v12)
        #expect(try phone.begin() == ["add"])
        #expect(phone.calls[0].path == "/api/v1/register_client_device")
        #expect(phone.calls[0].fields.isEmpty)
        #expect(try phone.answer(200, Self.added) == ["register"])
        let call = phone.calls[1]
        #expect(call.path == "/api/v1/mobile_push/register")
        #expect(
            call.fields.map(\.name) == [
                "device_id", "push_key_id", "push_key", "token_kind", "token_id", "bouncer_public_key",
                "encrypted_push_registration"
            ])
        #expect(call.text("device_id") == "41")
        #expect(call.text("token_id") == Self.tokenID())
        #expect(try phone.blob().timestamp == phone.now.seconds)
        #expect(try phone.answer(200) == ["timer"])
        #expect(phone.status.state == .pending)
        #expect(phone.status.isQuiet)
        #expect(try phone.wait(300) == ["not_set_up"])
        let done = update(#""push_token_id":"\#(Self.tokenID())","pending_push_token_id":null"#)
        #expect(try phone.event(done) == ["end"])
        #expect(phone.status.state == .active)
        // The same from a fetch, after a restart.
        #expect(try phone.restart() == [])
        let key = try #require(call.text("push_key_id"))
        let columns =
            #""push_key_id":\#(key),"push_token_id":"\#(Self.tokenID())","pending_push_token_id":null,"#
            + #""push_token_last_updated_timestamp":\#(phone.now.seconds),"push_registration_error_code":null"#
        #expect(try phone.fetch(state(columns)) == [])
        #expect(phone.status.state == .active)
    }

    @Test("v12: a dead token is registered again, an unknown error too, with growing waits")
    func dead() throws {
        var phone = try deployed()
        #expect(try phone.event(update(#""push_token_id":null"#)) == ["register"])
        #expect(phone.calls.last?.text("push_key") == nil)
        #expect(phone.status.advice == .retrying)
        try phone.answer(200)
        let failed = update(#""push_registration_error_code":"REQUEST_EXPIRED""#)
        #expect(try phone.event(failed) == ["timer"])
        #expect(phone.status.state == .failed)
        #expect(phone.status.errorCode == "REQUEST_EXPIRED")
        #expect(try phone.event(failed) == [])
        #expect(try phone.waitForTimer() == ["register"])
    }

    @Test("v12: with a key that the relay refuses nothing is sent; another build sends at once")
    func refusedKey() throws {
        var phone = try deployed()
        let code = update(#""push_registration_error_code":"INVALID_BOUNCER_PUBLIC_KEY""#)
        #expect(try phone.event(code) == ["update_app"])
        #expect(phone.status.advice == .updateApp)
        #expect(try phone.wait(40 * Self.day) == [])
        #expect(try phone.event(code) == [])
        phone.bouncer = try X25519KeyPair(privateKey: Secret([UInt8](repeating: 8, count: 32)))
        #expect(try phone.take(.build(phone.build)) == ["register"])
        #expect(try phone.blob().kind == .apns)
    }

    @Test("v12: another token goes to the same device, and not while the server has one pending")
    func tokenChange() throws {
        var phone = try deployed()
        let other = ZulipPlayedDevice.apns(ZulipPlayedDevice.other)
        #expect(try phone.take(.token(other)) == ["register"])
        #expect(phone.calls.last?.text("device_id") == "41")
        #expect(phone.calls.last?.text("token_id") == Self.tokenID(ZulipPlayedDevice.other))
        try phone.answer(200)
        // A third one, while the second is pending: the server would refuse it.
        #expect(try phone.take(.token(ZulipPlayedDevice.apns("ab12"))) == [])
        let settled = update(
            #""push_token_id":"\#(Self.tokenID(ZulipPlayedDevice.other))","pending_push_token_id":null"#)
        #expect(try phone.event(settled) == ["register"])
        #expect(phone.calls.last?.text("token_id") == Self.tokenID("ab12"))
    }

    @Test("v12: what deployed servers leave pending for ever makes way for another device")
    func stuck() throws {
        var phone = try deployed()
        let first = phone.calls.last?.text("push_key_id")
        try phone.event(update(#""push_token_id":null"#))
        try phone.answer(200)
        let since = phone.now.seconds
        let pending =
            #""push_key_id":\#(first ?? "0"),"push_token_id":null,"#
            + #""pending_push_token_id":"\#(Self.tokenID())","push_token_last_updated_timestamp":\#(since)"#
        phone.now = phone.now + .seconds(Self.day)
        try phone.restart()
        #expect(try phone.fetch(state(pending)) == ["not_set_up"])
        phone.now = phone.now + .seconds(2 * 3_600)
        #expect(try phone.fetch(state(pending)) == ["add"])
        #expect(try phone.answer(200, #"{"result":"success","device_id":42}"#) == ["register"])
        #expect(phone.calls.last?.text("device_id") == "42")
        #expect(phone.calls.last?.text("push_key_id") == first)
        try phone.answer(200)
        let active =
            #"{"type":"device","op":"update","device_id":42,"push_token_id":"\#(Self.tokenID())","#
            + #""pending_push_token_id":null}"#
        #expect(try phone.event(active) == ["end", "forget 41"])
    }

    @Test("v12: a device that the server has no more is made anew, unless the news is older than it")
    func missing() throws {
        var phone = try deployed()
        let none = #"{"result":"success","devices":{}}"#
        #expect(try phone.fetch(none) == [])
        phone.now = phone.now + .seconds(300)
        #expect(try phone.fetch(none) == ["add"])
        #expect(try phone.answer(200, #"{"result":"success","device_id":43}"#) == ["register"])
        // Again, while the call is under way: less and less often.
        #expect(try phone.event(#"{"type":"device","op":"remove","device_id":43}"#) == [])
        #expect(try phone.answer(200) == ["timer"])
        #expect(try phone.waitForTimer() == ["add"])
    }

    @Test(
        "v12: a device id that is none is no answer",
        arguments: ["0", "-1", "9223372036854775808", "1.0", "1e3", #""41""#, "null", "[]", "true"])
    func deviceIDs(_ id: String) throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.v12)
        try phone.begin()
        #expect(try phone.answer(200, #"{"result":"success","device_id":\#(id)}"#) == ["timer"])
        #expect(try phone.waitForTimer() == ["add"])
        let most = #"{"result":"success","device_id":9223372036854775807}"#
        #expect(try phone.answer(200, most) == ["register"])
        #expect(phone.calls.last?.text("device_id") == "9223372036854775807")
    }

    @Test("v12: a key of thirty days is replaced at a start, and told alone")
    func keyRotation() throws {
        var phone = try deployed()
        let first = try #require(phone.device.newestKey?.id)
        phone.now = phone.now + .seconds(30 * Self.day)
        try phone.restart()
        let columns =
            #""push_key_id":\#(first),"push_token_id":"\#(Self.tokenID())","#
            + #""push_token_last_updated_timestamp":\#(phone.now.seconds - Self.day)"#
        #expect(try phone.fetch(state(columns)) == ["register"])
        #expect(phone.calls.last?.fields.map(\.name) == ["device_id", "push_key_id", "push_key"])
        #expect(phone.calls.last?.text("push_key_id") != String(first))
        #expect(try phone.answer(200) == [])
        #expect(phone.status.state == .active)
        #expect(phone.device.keys.count == 2)
    }

    @Test("v12: asked for again, the token is told once more, unless it is pending")
    func again() throws {
        var phone = try deployed()
        #expect(try phone.take(.again) == ["register"])
        #expect(phone.calls.last?.text("token_id") == Self.tokenID())
        #expect(phone.calls.last?.text("device_id") == "41")
        #expect(try phone.answer(200) == ["timer"])
        // A deployed server refuses it while it is pending (§3.3).
        #expect(try phone.take(.again) == [])
    }

    @Test("v12: at a logout the device is taken back; a restored backup gets device and keys of its own")
    func leaving() throws {
        let phone = try deployed()
        var leaving = phone
        #expect(try leaving.take(.logout) == ["forget 41"])
        #expect(
            leaving.last.contains { action in
                if case .call(let call) = action { return call.path == "/api/v1/remove_client_device" }
                return false
            })
        #expect(try leaving.begin() == [])
        #expect(leaving.device.keys.isEmpty)
        var restored = phone
        restored.marker = ZulipRoutine.newMarker(using: &restored.random)
        #expect(try restored.restart() == ["add"])
        #expect(restored.device.keys.count == 1)
        #expect(restored.device.newestKey?.id != phone.device.newestKey?.id)
    }

    // MARK: v11

    @Test("v11: the account form with a push key, states without operations, ids as text or number")
    func former() throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.v11)
        #expect(try phone.begin() == ["register"])
        let names = phone.calls[0].fields.map(\.name)
        #expect(
            names == [
                "push_account_id", "encrypted_push_registration", "bouncer_public_key", "push_key",
                "token_kind"
            ])
        _ = try PushKey(base64: #require(phone.calls[0].fields.first { $0.name == "push_key" }).value)
        try phone.answer(200)
        let pending = #"{"push_devices":{"$ID":{"status":"pending","error_code":null}}}"#
        #expect(try phone.fetch(pending) == [])
        #expect(phone.status.state == .pending)
        let active = #"{"type":"push_device","push_account_id":"$ID","status":"active"}"#
        try phone.event(active)
        #expect(phone.status.state == .active)
        let failed =
            #"{"type":"push_device","push_account_id":$ID,"status":"failed","error_code":"REQUEST_EXPIRED"}"#
        #expect(try phone.event(failed) == ["register"])
        try phone.answer(200)
        try phone.event(active)
        // 11.x has no call to forget an id, and answers 404; a server that has been updated takes the old one
        // away, whose token may be alive.
        let former = try #require(phone.id)
        #expect(try phone.take(.token(ZulipPlayedDevice.apns(ZulipPlayedDevice.other))) == ["register"])
        try phone.answer(200)
        #expect(try phone.event(active) == ["forget \(former)"])
        #expect(phone.status.state == .active)
        #expect(try phone.take(.logout) == ["forget \(try #require(phone.id))"])
    }

    @Test("v11: what 11.x leaves pending for ever makes way for another id with the same key")
    func stuckFormer() throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.v11)
        try phone.begin()
        let first = phone.calls[0]
        try phone.answer(200)
        let pending = #"{"push_devices":{"$ID":{"status":"pending"}}}"#
        phone.now = phone.now + .seconds(Self.day)
        #expect(try phone.fetch(pending) == ["not_set_up"])
        phone.now = phone.now + .seconds(2 * 3_600)
        #expect(try phone.fetch(pending) == ["register"])
        #expect(phone.calls[1].text("push_key") == first.text("push_key"))
        #expect(phone.calls[1].text("push_account_id") != first.text("push_account_id"))
    }

    // MARK: changes

    @Test("After an upgrade of the server the old registration is forgotten once the new one is active")
    func upgrade() throws {
        var phone = try ZulipPlayedDevice.active()
        let id = try #require(phone.id)
        phone.settings = ZulipPlayedDevice.v12
        #expect(try phone.restart() == ["add"])
        try phone.answer(200, Self.added)
        try phone.answer(200)
        let active = update(#""push_token_id":"\#(Self.tokenID())","pending_push_token_id":null"#)
        #expect(try phone.event(active) == ["forget \(id)"])
        // And back: the keys of v12 stay for what is under way.
        phone.settings = ZulipPlayedDevice.zap
        #expect(try phone.restart() == ["register"])
        #expect(phone.id != id)
        #expect(phone.device.keys.count == 1)
        try phone.answer(200)
        let back = #"{"type":"push_account","op":"update","push_account_id":$ID,"status":"active"}"#
        #expect(try phone.event(back) == ["forget 41"])
        phone.now = phone.now + .seconds(31 * Self.day)
        try phone.restart()
        #expect(phone.device.keys.isEmpty)
    }

    @Test("The legacy registration goes when the encrypted one is active, or when the user forbids it")
    func legacy() throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.old)
        #expect(try phone.begin() == ["legacy"])
        #expect(try phone.restart() == ["legacy"])
        #expect(try phone.take(.token(ZulipPlayedDevice.apns(ZulipPlayedDevice.other))) == ["legacy"])
        #expect(phone.status.advice == .unsupported)
        #expect(phone.device.nextDeadline == nil)
        phone.settings = ZulipPlayedDevice.zap
        #expect(try phone.restart() == ["register"])
        try phone.answer(200)
        let active = #"{"type":"push_account","op":"update","push_account_id":$ID,"status":"active"}"#
        #expect(try phone.event(active) == ["end legacy"])
        #expect(try phone.event(active) == [])
        // A server that cannot any more: the setting decides.
        phone.settings = ZulipPlayedDevice.old
        var other = phone
        #expect(try phone.begin() == ["legacy"])
        #expect(try phone.take(.logout) == ["forget \(try #require(phone.id))", "end legacy"])
        #expect(try other.begin(require: true) == ["cannot_encrypt"])
        #expect(other.status.advice == .unsupported)
    }

    // MARK: several accounts, several tokens

    @Test("An old id is forgotten where the server had it, also when its answer came late")
    func lateAnswer() throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.zap)
        try phone.begin()
        let first = try #require(phone.calls.last)
        #expect(try phone.take(.token(ZulipPlayedDevice.apns(ZulipPlayedDevice.other))) == ["register"])
        #expect(try phone.answer(200, to: first.number) == [])
        try phone.answer(200)
        let active = #"{"type":"push_account","op":"update","push_account_id":$ID,"status":"active"}"#
        #expect(try phone.event(active) == ["forget \(try #require(first.text("push_account_id")))"])
    }

    @Test("A logout forgets what the server may have, the former id too")
    func logout() throws {
        var phone = try ZulipPlayedDevice.active()
        let first = try #require(phone.id)
        try phone.take(.token(ZulipPlayedDevice.apns(ZulipPlayedDevice.other)))
        let second = try #require(phone.id)
        #expect(try phone.take(.logout) == ["forget \(first)", "forget \(second)"])
        for event in [ZulipDeviceEvent.tick, .apiKey, .logout, .token(ZulipPlayedDevice.apns())] {
            #expect(try phone.take(event) == [])
        }
        #expect(try phone.restart() == [])
        #expect(phone.device.nextDeadline == nil)
    }

    @Test("No two accounts of a phone have one id, even where the random source repeats itself")
    func unique() throws {
        let first = try ZulipPlayedDevice.active(seed: 3)
        var second = try ZulipPlayedDevice(ZulipPlayedDevice.zap, seed: 3, user: 8)
        try second.begin(beside: [first.device])
        #expect(second.id != first.id)
        var alone = try ZulipPlayedDevice(ZulipPlayedDevice.zap, seed: 3, user: 8)
        try alone.begin()
        #expect(alone.id == first.id)
    }

    @Test("Of many tokens the latest thirty-two ids are remembered")
    func manyTokens() throws {
        var phone = try ZulipPlayedDevice.active()
        for number in 0..<100 {
            let words = try phone.take(.token(ZulipPlayedDevice.apns(String(1_000 + number))))
            #expect(words == ["register"])
            try phone.answer(200)
        }
        let active = #"{"type":"push_account","op":"update","push_account_id":$ID,"status":"active"}"#
        #expect(try phone.event(active).count == 32)
        #expect(phone.device.encoded().count < 64 << 10)
    }
}
