import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// What an app keeps of an account between runs.
@Suite("Zulip keeping")
struct ZulipKeepingTests {
    /// A phone with something of everything: keys of three profiles, former ids, a wait, a notice.
    private func full() throws -> ZulipPlayedDevice {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.v11)
        try phone.begin()
        try phone.answer(200)
        phone.settings = ZulipPlayedDevice.v12
        try phone.begin()
        try phone.answer(200, #"{"result":"success","device_id":41}"#)
        try phone.answer(200)
        phone.settings = ZulipPlayedDevice.zap
        try phone.begin()
        try phone.answer(200)
        try phone.take(.token(ZulipPlayedDevice.apns(ZulipPlayedDevice.other)))
        try phone.answer(400, #"{"code":"BAD_REQUEST"}"#)
        return phone
    }

    private func expectMalformed(_ kept: Secret, _ what: String) {
        #expect(throws: ZulipError(.malformedRow), "\(what)") { try ZulipRoutine(keeping: kept) }
    }

    @Test("What was kept is the same account: it reads back, and goes on")
    func readsBack() throws {
        var phone = try full()
        let kept = phone.device.encoded()
        let again = try ZulipRoutine(keeping: kept)
        #expect(again.encoded() == kept)
        #expect(again.account == phone.device.account)
        #expect(ZulipRoutine.status(of: again, now: phone.now) == phone.status)
        phone.device = again
        phone.now = phone.now + .seconds(86_400)
        #expect(try phone.begin(ZulipPlayedDevice.other) == ["register"])
        let fresh = ZulipRoutine(account: phone.device.account)
        #expect(try ZulipRoutine(keeping: fresh.encoded()).encoded() == fresh.encoded())
    }

    @Test("What is damaged in any byte, cut or longer is refused with one error")
    func damaged() throws {
        let kept = try full().device.encoded().reveal { Array($0) }
        for length in 0..<kept.count { expectMalformed(Secret(kept[..<length]), "length \(length)") }
        for (place, changed) in kept.withEachChanged().enumerated() {
            expectMalformed(Secret(changed), "byte \(place)")
        }
        expectMalformed(Secret(kept + kept), "twice")
        expectMalformed(Secret([UInt8](repeating: 0x20, count: 300 << 10) + kept), "too long")
    }

    @Test("A row that no version writes is refused, even with the right digest")
    func foreignRows() throws {
        let account = KeptPhone.row("account", "https://chat.example.org", "7")
        let key = String(repeating: "01", count: 32)
        #expect(throws: Never.self) { try ZulipRoutine(keeping: KeptPhone.kept([account])) }
        for row in [
            [], [""], ["later", "1"], ["account", "https://chat.example.org", "7"], ["marker", "zz"],
            ["marker", "01"], ["login", ""], ["login", "1.5"], ["route", "v13"],
            ["current", "zap", "", "", key, "yes"], ["current", "zap", "x", "", key, "yes"],
            ["current", "zap", "1", "", "01", "yes"], ["current", "zap", "1", "", key, "true"],
            ["current", "v12", "1", "", key, "yes"], ["current", "v11", "1", "", key, "yes"],
            ["told", "apns", "ab", "k", "1"], ["former", "zap", "1", key, "1", "no", "x"],
            ["former", "zap", "9223372036854775808", key, "1", "no", ""], ["acknowledged", "1", "gcm", "ab"],
            ["shown", "lost", "", "", "no"], ["shown", "active", "", "", ""],
            ["work", "", "", "-1", "0", "0"], ["work", "", "", "0", "0", "-1"],
            ["work", "", "", "0", "0", "18446744073709551615"], ["refused", "X", ""], ["notice", "hello"],
            ["key", "4294967296", key, "1", ""], ["key", "1", key, "1", ""], ["legacy", "yes"], ["over", ""]
        ] {
            expectMalformed(
                KeptPhone.kept([account, row.map { KeptPhone.text($0) }]), row.joined(separator: " "))
        }
        expectMalformed(KeptPhone.kept([account], version: "2"), "version")
        expectMalformed(KeptPhone.kept([]), "no account")
        let former = KeptPhone.row("former", "zap", "1", key, "1", "no", "")
        expectMalformed(KeptPhone.kept([account] + Array(repeating: former, count: 33)), "too many")
    }

    @Test("Nothing of what is kept shows in a description")
    func redacted() throws {
        let phone = try full()
        for text in ["\(phone.device.encoded())", String(reflecting: phone.device), "\(phone.last)"] {
            #expect(!text.contains(ZulipPlayedDevice.token))
            #expect(!text.contains(ZulipPlayedDevice.other))
            // Bytes of a key would stand there as numbers or as digits.
            for call in phone.calls { #expect(!text.contains(call.text("push_key") ?? "no key")) }
        }
    }

    @Test("A backup beside the phone that it is of: both go on, each with its own registration")
    func twoPhones() throws {
        let first = try ZulipPlayedDevice.active()
        var second = first
        second.marker = ZulipRoutine.newMarker(using: &second.random)
        // Even the same token is no sign that it is the same phone.
        #expect(try second.restart() == ["register"])
        #expect(second.id != first.id)
        #expect(second.calls.last?.text("push_public_key") != first.calls.last?.text("push_public_key"))
        #expect(second.status.isQuiet)
        try second.answer(200)
        let active = #"{"type":"push_account","op":"update","push_account_id":$ID,"status":"active"}"#
        #expect(try second.event(active) == [])
        var back = first
        #expect(try back.restart() == [])
        #expect(back.status.state == .active)
    }
}
