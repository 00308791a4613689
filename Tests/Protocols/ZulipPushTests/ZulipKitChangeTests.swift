import PushModel
import PushTesting
import SealbellKit
import Testing
import WireFormats
import ZulipPush

/// What changes on a phone that is registered.
@Suite("Zulip device of the kit: changes", .timeLimit(.minutes(30)))
struct ZulipKitChangeTests {
    private func active(_ profile: ZulipProfile?, login: ZulipLogin? = nil) throws -> ZulipKitPhone {
        var phone = try ZulipKitPhone(profile, login: login)
        try phone.work()
        try #require(profile == nil || phone.status.state == .active)
        return phone
    }

    @Test("Another token is told; what was sealed before opens, and the former id is forgotten")
    func anotherToken() throws {
        for profile in ZulipProfile.allCases {
            var phone = try active(profile)
            let former = try phone.push()
            let id = try #require(phone.server.registrations.keys.first)
            phone.token = ZulipKitPhone.other
            try phone.device.use(token: .apns(hex: ZulipKitPhone.other))
            phone.server.instead = [("mobile_push/forget", 503, "")]
            try phone.work()
            #expect(phone.status.state == .active)
            if profile != .v12 {
                #expect(phone.server.registrations[id] != nil, "the server did not hear of it yet")
                // What is still to be forgotten is kept.
                try phone.restart()
            }
            phone.server.instead = []
            try phone.pass(.seconds(3_600))
            #expect(phone.server.registrations.count == 1)
            #expect(phone.server.registrations[id] == nil || profile == .v12)
            #expect(try phone.open(former).content != nil)
            #expect(try phone.open(phone.push()).content != nil)
            // The same one once more tells nothing.
            let told = phone.server.count("mobile_push/register")
            try phone.device.use(token: .apns(hex: ZulipKitPhone.other.uppercased()))
            try phone.work()
            #expect(phone.server.count("mobile_push/register") == told)
        }
    }

    @Test("A month later the registration is told again, in v12 with another key")
    func monthly() throws {
        for profile in ZulipProfile.allCases {
            var phone = try active(profile)
            let former = try phone.push()
            let key = phone.server.registrations.values.first?.fields["push_key_id"]
            phone.now = phone.now + .seconds(31 * 86_400)
            try phone.restart()
            try phone.work()
            #expect(phone.server.count("mobile_push/register") == 2)
            #expect(phone.status.state == .active)
            #expect(phone.server.registrations.count == 1)
            let now = phone.server.registrations.values.first?.fields["push_key_id"]
            #expect(profile != .v12 || now != key)
            #expect(try phone.open(former).content != nil)
            #expect(try phone.open(phone.push()).content != nil)
        }
    }

    @Test("With a key that its relay refuses, the app is to be updated; another build registers at once")
    func refusedKey() throws {
        for profile in ZulipProfile.allCases {
            var phone = try ZulipKitPhone(profile)
            phone.server.confirmsAtPoll = false
            try phone.work()
            phone.server.settle(code: "INVALID_BOUNCER_PUBLIC_KEY")
            try phone.pass(.seconds(60))
            #expect(phone.status.advice == .updateApp)
            #expect(phone.status.detail == "INVALID_BOUNCER_PUBLIC_KEY")
            let told = phone.server.count("mobile_push/register")
            try phone.pass(.seconds(86_400))
            try phone.restart()
            try phone.work()
            #expect(phone.server.count("mobile_push/register") == told)
            phone.login = try ZulipKitPhone.login(relay: 10)
            phone.server.confirmsAtPoll = true
            try phone.restart()
            try phone.work()
            #expect(phone.status.state == .active)
            #expect(phone.server.count("mobile_push/register") == told + 1)
        }
    }

    @Test("A server that lost the registration gets it again, at the next start")
    func lostByServer() throws {
        for profile in ZulipProfile.allCases {
            var phone = try active(profile)
            phone.server.registrations = [:]
            // A device that was made just now is not missed yet.
            phone.now = phone.now + .seconds(600)
            try phone.restart()
            try phone.pass(.seconds(600))
            #expect(phone.status.state == .active)
            #expect(phone.server.registrations.count == 1)
            #expect(try phone.open(phone.push()).content != nil)
        }
    }

    @Test("A registration is told again when the user asks for it, and a test notification asked for")
    func again() throws {
        for profile in ZulipProfile.allCases {
            var phone = try active(profile)
            for isFresh in [false, true] {
                if isFresh { try phone.restart() }
                let told = phone.server.count("mobile_push/register")
                phone.device.registerAgain()
                try phone.work()
                #expect(phone.server.count("mobile_push/register") == told + 1, "\(profile) \(isFresh)")
                #expect(phone.status.state == .active)
            }
            let asked = phone.device.testNotification()
            let test = try #require(asked)
            let kept = phone.device.kept
            phone.device.answered(phone.server.answer(test, at: phone.now), to: test, at: phone.now)
            #expect(phone.server.count("test_notification") == 1)
            #expect(phone.device.kept == kept)
        }
        var none = try ZulipKitPhone(.zap)
        #expect(none.device.testNotification() == nil)
    }

    // MARK: leaving

    @Test("A logout takes everything back, and the device is gone")
    func logout() throws {
        for profile in ZulipProfile.allCases {
            var phone = try active(profile)
            let push = try phone.push()
            #expect(!phone.device.isGone)
            try phone.device.use(token: nil)
            #expect(!phone.device.isGone)
            try phone.work()
            #expect(phone.server.registrations.isEmpty)
            #expect(phone.device.isGone)
            #expect(phone.device.nextDue == nil)
            #expect(throws: DeviceError(.foreign)) { try phone.open(push) }
            // Logged in again, it is another registration.
            try phone.device.use(token: .apns(hex: ZulipKitPhone.token))
            try phone.work()
            #expect(phone.status.state == .active && !phone.device.isGone)
            #expect(throws: DeviceError(.foreign)) { try phone.open(push) }
            #expect(try phone.open(phone.push()).content != nil)
        }
    }

    @Test("A logout without network is told later, over restarts, and given up after thirty days")
    func lateLogout() throws {
        for profile in ZulipProfile.allCases {
            var phone = try active(profile)
            phone.server.isDown = true
            try phone.device.use(token: nil)
            try phone.work()
            #expect(!phone.device.isGone)
            var random = phone.random
            phone.device = try ZulipDevice(phone.login, keeping: phone.saved, using: &random)
            #expect(!phone.device.isGone, "it is kept that it leaves")
            try phone.device.use(token: nil)
            try phone.pass(.seconds(600))
            #expect(!phone.device.isGone)
            var lost = phone
            phone.server.isDown = false
            try phone.pass(.seconds(3_600))
            #expect(phone.server.registrations.isEmpty && phone.device.isGone)
            lost.now = lost.now + .seconds(30 * 86_400)
            try lost.work()
            #expect(lost.device.isGone)
        }
        // With a login that is not good any more nobody hears it.
        var phone = try active(.zap)
        phone.server.apiKey = "another"
        try phone.device.use(token: nil)
        try phone.work()
        #expect(phone.device.isGone)
        // A device that never called anybody has nothing to take back.
        var new = try ZulipKitPhone(.zap)
        try new.device.use(token: nil)
        #expect(new.device.isGone)
        try new.work()
        #expect(new.server.heard.isEmpty && new.device.isGone)
    }

    // MARK: kept

    @Test("What was kept is cut, damaged, another user's or another server's: begin anew")
    func malformedKept() throws {
        let phone = try active(.v12)
        let kept = try #require(phone.saved)
        let bytes = kept.reveal { Array($0) }
        for length in 0..<bytes.count {
            #expect(throws: DeviceError(.malformedKept), "\(length)") {
                try ZulipDevice(phone.login, keeping: Secret(bytes[..<length]))
            }
        }
        for (place, other) in bytes.withEachChanged(0x20).enumerated() {
            #expect(throws: DeviceError(.malformedKept), "\(place)") {
                try ZulipDevice(phone.login, keeping: Secret(other))
            }
        }
        #expect(throws: DeviceError(.malformedKept)) {
            try ZulipDevice(ZulipKitPhone.login(user: 8), keeping: kept)
        }
        let account = ["account", "https://chat.example.org", "7"]
        for row in [
            ["forget", "zap", "1", "", "0", "1"], ["forget", "zap", "x", "1", "0", "1"],
            ["forget", "v13", "1", "1", "0", "1"], ["forget", "zap", "1", "1", "-1", "1"], ["leaving", "yes"],
            ["last-login"], ["later"], []
        ] {
            let rows = [account, row].map { $0.map { Secret($0.utf8) } }
            #expect(throws: DeviceError(.malformedKept), "\(row)") {
                try ZulipDevice(phone.login, keeping: KeptForm.write("zulip", rows))
            }
        }
        let good = KeptForm.write("zulip", [account.map { Secret($0.utf8) }])
        #expect(throws: Never.self) { try ZulipDevice(phone.login, keeping: good) }
    }

    @Test("Data out of another phone's backup begin anew, and leave its registration alone")
    func backup() throws {
        let first = Secret([UInt8](repeating: 1, count: 16))
        let second = Secret([UInt8](repeating: 2, count: 16))
        for profile in ZulipProfile.allCases {
            var phone = try active(profile, login: ZulipKitPhone.login(marker: first))
            let push = try phone.push()
            let ids = Set(phone.server.registrations.keys)
            try phone.restart()
            try phone.work()
            #expect(Set(phone.server.registrations.keys) == ids, "the same phone")
            phone.login = try ZulipKitPhone.login(marker: second)
            try phone.restart()
            #expect(throws: DeviceError(.foreign)) {
                try phone.device.open(Delivered(data: push), at: phone.now)
            }
            try phone.work()
            #expect(phone.status.state == .active)
            #expect(phone.server.registrations.count == 2)
            #expect(ids.isSubset(of: phone.server.registrations.keys))
        }
    }

    @Test("Neither key nor token nor name shows in any description, and the API key is not kept")
    func redacted() throws {
        let phone = try active(.zap)
        var texts = ["\(phone.device)", String(reflecting: phone.device), "\(phone.login)"]
        var dumped = ""
        dump(phone.device, to: &dumped)
        dump(phone.login, to: &dumped)
        texts.append(dumped)
        for text in texts {
            for word in ["the-api-key", "ada@example.org", ZulipKitPhone.token] {
                #expect(!text.contains(word))
            }
        }
        #expect(try !#require(phone.saved).word.contains("the-api-key"))
        #expect(try !#require(phone.saved).word.contains("ada@example.org"))
    }

    // MARK: apps and servers of another kind

    @Test("An app with an event queue of its own brings what it sees, and the device asks for none")
    func ownQueue() throws {
        for profile in ZulipProfile.allCases {
            var phone = try ZulipKitPhone(profile, login: ZulipKitPhone.login(asksForEvents: .never))
            try phone.work()
            #expect(phone.status.state == .pending)
            #expect(phone.server.count("POST /api/v1/register") == (profile == .v12 ? 1 : 0))
            #expect(phone.server.count("/api/v1/events") == 0)
            // Its own queue, as the server has it.
            phone.server.queues["own"] = []
            phone.server.settle()
            let events = phone.server.queues["own"] ?? []
            try phone.device.see(
                events: Secret(#"{"events":[\#(events.joined(separator: ","))]}"#.utf8), at: phone.now)
            #expect(phone.status.state == .active)
            #expect(throws: DeviceError(.malformedContent)) {
                try phone.device.see(events: Secret("[".utf8), at: phone.now)
            }
            #expect(throws: DeviceError(.malformedContent)) {
                try phone.device.see(state: Secret("{}".utf8), at: phone.now)
            }
        }
    }

    @Test("At a server without encrypted notifications nothing is registered, and the app is told")
    func legacy() throws {
        var phone = try active(nil)
        #expect(phone.device.route == .legacy)
        #expect(phone.status.advice == .unsupported)
        #expect(phone.server.heard.count == 1)
        phone = try active(nil, login: ZulipKitPhone.login(requireEndToEnd: true))
        #expect(phone.device.route == .refused)
        #expect(phone.status.advice == .unsupported)
        // The server is updated.
        phone.server.profile = .v12
        try phone.restart()
        try phone.work()
        #expect(phone.status.state == .active)
    }

    @Test("What opens says what to do about it, and what does not says why")
    func opening() throws {
        for profile in ZulipProfile.allCases {
            let phone = try active(profile)
            guard case .remove(let note) = try phone.open(phone.push(#""type":"remove","message_ids":[1,2]"#))
            else {
                Issue.record("messages are to be taken off the screen")
                return
            }
            #expect(note.body == .remove([1, 2]))
            guard case .ignore(.laterVersion) = try phone.open(phone.push(#""type":"paint""#)) else {
                Issue.record("of a later version")
                return
            }
            #expect(throws: DeviceError(.foreign)) { try phone.open(phone.push(user: 8)) }
            #expect(throws: DeviceError(.malformedContent)) {
                try phone.open(phone.push(#""type":"message""#))
            }
            #expect(throws: DeviceError(.foreign)) { try phone.open([:]) }
            #expect(throws: DeviceError(.foreign)) {
                try phone.open(["subject": "YQ==", "signature": "YQ=="])
            }
            var push = try phone.push()
            for name in ["encrypted_data", "encrypted_content"] {
                if let text = push[name] { push[name] = "AAAA" + text.dropFirst(4) }
            }
            #expect(throws: DeviceError(.doesNotOpen)) { try phone.open(push) }
        }
    }

    @Test("What makes no login is refused")
    func setups() throws {
        func login(
            _ url: String = "https://a.example", _ user: Int64 = 1, _ mail: String = "a@b.c",
            _ apiKey: String = "k", _ bundle: String = "b", profiles: [ZulipProfile] = [.v12],
            marker: Secret? = nil, key: RelayKey? = nil
        ) throws {
            _ = try ZulipLogin(
                realmURL: url, userID: user, email: mail, apiKey: Secret(apiKey.utf8),
                relayKey: key ?? self.key(),
                bundleID: bundle, profiles: profiles, marker: marker)
        }
        #expect(throws: Never.self) { try login() }
        for url in [
            "", "chat.example.org", "ftp://a", "https://", "https://a b", "https://u@a", "https://a?b",
            "https://ä"
        ] {
            #expect(throws: DeviceError(.malformedSetup), "\(url)") { try login(url) }
        }
        #expect(throws: DeviceError(.malformedSetup)) { try login("https://a", 0) }
        for mail in ["", "a:b", "a b", "a\n"] {
            #expect(throws: DeviceError(.malformedSetup), "\(mail)") { try login("https://a", 1, mail) }
        }
        #expect(throws: DeviceError(.malformedSetup)) { try login("https://a", 1, "a", "") }
        #expect(throws: DeviceError(.malformedSetup)) { try login("https://a", 1, "a", "k", "") }
        #expect(throws: DeviceError(.malformedSetup)) { try login(profiles: []) }
        #expect(throws: DeviceError(.malformedSetup)) { try login(marker: Secret([1])) }
        // A point to which nothing can be sealed, and a key of another protocol.
        let zero = try RelayKey(text: String(repeating: "0", count: 64))
        #expect(throws: DeviceError(.malformedSetup)) { try login(key: zero) }
        let point = try RelayKey(text: "02" + String(repeating: "1", count: 64))
        #expect(throws: DeviceError(.malformedSetup)) { try login(key: point) }
    }

    private func key() throws(DeviceError) -> RelayKey {
        try RelayKey(text: "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=")
    }
}
