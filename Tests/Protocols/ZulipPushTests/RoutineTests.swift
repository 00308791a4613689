import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// The routine where something goes wrong (docs/conformance/zulip.md, the specification's own profile).
@Suite("Zulip routine")
struct RoutineTests {
    private static let day: Int64 = 86_400
    private static let gone = #"{"type":"push_account","op":"remove","push_account_id":$ID}"#
    private static let empty = #"{"result":"success","push_account_ids":{}}"#

    // MARK: answers

    @Test(
        "What is no success of the protocol is not acknowledged: it is tried again",
        arguments: [
            (200, "<html>Sign in to the hotel's network</html>"), (200, ""), (200, "[]"), (200, "{}"),
            (200, #"{"result":"error"}"#), (200, #"{"result":5}"#), (200, #"{"result":"success""#),
            (204, #"{"result":"success"}"#), (302, ""), (100, ""), (500, ""), (502, ""), (599, ""),
            (600, ""), (408, ""), (425, ""), (429, ""), (-1, "")
        ])
    func noSuccess(_ status: Int, _ body: String) throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.zap)
        #expect(try phone.begin() == ["register"])
        #expect(try phone.answer(status, body) == ["timer"])
        let pause = try #require(phone.pause)
        #expect((.milliseconds(2_500) ... .seconds(5)).contains(pause))
        #expect(phone.status.state == .none)
        #expect(try phone.waitForTimer() == ["register"])
    }

    @Test("An endless answer is none")
    func endless() throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.zap)
        try phone.begin()
        let filler = String(repeating: " ", count: 1 << 20)
        #expect(try phone.answer(200, #"{"result":"success"}"# + filler) == ["timer"])
    }

    @Test(
        "A server that asks for patience gets at least that, and a server that asks for none gets some",
        arguments: [
            ("120", "", 120...180), (nil, #"{"code":"RATE_LIMIT_HIT","retry-after":90.5}"#, 90...136),
            ("0", "", 2...5), ("-5", "", 2...5), ("soon", "", 2...5),
            ("99999999999999999999", "", 86_400...129_600),
            (nil, #"{"retry-after":1e300}"#, 86_400...129_600),
            (nil, #"{"retry-after":-1e300}"#, 2...5), (nil, #"{"retry-after":"90"}"#, 2...5)
        ] as [(String?, String, ClosedRange<Int64>)])
    func patience(_ header: String?, _ body: String, _ range: ClosedRange<Int64>) throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.zap)
        try phone.begin()
        try phone.answer(429, body, retryAfter: header)
        let pause = try #require(phone.pause)
        #expect((Duration.seconds(range.lowerBound) ... .seconds(range.upperBound)).contains(pause))
        // A server in trouble may ask for it, too.
        try phone.waitForTimer()
        try phone.answer(503, body, retryAfter: header)
        #expect(try #require(phone.pause) >= .seconds(range.lowerBound))
    }

    @Test("Without an API key nothing is called; with another one the call is made")
    func loggedOut() throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.zap)
        try phone.begin()
        #expect(try phone.answer(401, #"{"result":"error","code":"UNAUTHORIZED"}"#) == ["log_in_again"])
        #expect(phone.status.advice == .logInAgain)
        #expect(phone.device.nextDeadline == nil)
        for _ in 0..<3 {
            #expect(try phone.wait(Self.day) == [])
            #expect(try phone.restart() == [])
            #expect(try phone.fetch(Self.empty) == [])
        }
        #expect(phone.status.errorCode == "UNAUTHORIZED")
        #expect(try phone.take(.apiKey) == ["end", "register"])
        #expect(phone.status.advice == .none)
        #expect(phone.status.isQuiet)
    }

    @Test("An app whose own call is refused for its key says so of an active account too")
    func keyRefused() throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.zap)
        try phone.begin()
        try phone.answer(200)
        #expect(phone.status.advice == .none)
        #expect(try phone.take(.keyRefused) == ["log_in_again"])
        #expect(phone.status.advice == .logInAgain)
        // The monthly repeat is due, and waits for a key.
        let (waited, started) = (try phone.wait(40 * Self.day), try phone.restart())
        #expect(!(waited + started).contains("register"), "\(waited) \(started)")
        let again = try phone.take(.apiKey)
        #expect(again.contains("register"), "\(again)")
        #expect(phone.status.advice != .logInAgain)
    }

    @Test("A refused call is made again at a start after a day, or with another token")
    func refused() throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.zap)
        try phone.begin()
        #expect(try phone.answer(400, #"{"code":"BAD_REQUEST"}"#) == ["server_refuses"])
        let first = phone.id
        #expect(try phone.wait(2 * Self.day) == [])
        #expect(phone.device.nextDeadline == nil)
        var another = phone
        #expect(try another.take(.token(ZulipPlayedDevice.apns(ZulipPlayedDevice.other))) == ["register"])
        #expect(another.id != first)
        #expect(try phone.restart() == ["register"])
        #expect(phone.id == first)
        #expect(try phone.answer(200) == ["end", "timer"])
        #expect(phone.status.errorCode == nil)
    }

    @Test("Asked for again, it registers with the same id, also where it was refused; never without a key")
    func again() throws {
        var phone = try ZulipPlayedDevice.active()
        let id = phone.id
        #expect(try phone.take(.again) == ["register"])
        #expect(phone.id == id && phone.status.state == .active)
        // One call is under way.
        #expect(try phone.take(.again) == [])
        #expect(try phone.answer(400, #"{"code":"BAD_REQUEST"}"#) == ["server_refuses"])
        #expect(try phone.take(.again) == ["register"])
        #expect(try phone.answer(401) == ["log_in_again"])
        #expect(try phone.take(.again) == [])
        var fresh = try ZulipPlayedDevice(ZulipPlayedDevice.zap)
        #expect(try fresh.take(.again) == [], "it was never started")
    }

    @Test("A word that is no error code is not shown")
    func words() throws {
        let long = String(repeating: "A", count: 65)
        for word in [#""<script>""#, #""a b""#, #""""#, "5", "null", #""\#(long)""#] {
            var phone = try ZulipPlayedDevice(ZulipPlayedDevice.zap)
            try phone.begin()
            try phone.answer(400, #"{"code":\#(word)}"#)
            #expect(phone.status.errorCode == nil, "\(word)")
            #expect(phone.status.advice == .tellAdmin)
        }
    }

    @Test("An answer that nobody asked for changes nothing")
    func strayAnswers() throws {
        var phone = try ZulipPlayedDevice.active()
        let before = phone.device.encoded()
        for number in [0, 1, 2, 99, UInt64.max] {
            #expect(try phone.answer(200, to: number) == [])
            #expect(try phone.answer(401, to: number) == [])
            #expect(try phone.answer(nil, to: number) == [])
        }
        #expect(phone.device.encoded() == before)
    }

    // MARK: the server forgets

    @Test("A server that forgets again and again is told less and less often, once a day at most")
    func forgetful() throws {
        var phone = try ZulipPlayedDevice.active()
        var waits: [Duration] = []
        for _ in 0..<20 {
            let words = try phone.fetch(Self.empty)
            if words == ["timer"] {
                waits.append(try #require(phone.pause))
                #expect(phone.status.advice == .retrying)
                // Meanwhile nothing more comes of the same news.
                #expect(try phone.fetch(Self.empty) == [])
                #expect(try phone.waitForTimer() == ["register"])
            } else {
                #expect(words == ["register"])
            }
            try phone.answer(200)
        }
        #expect(waits.count == 19)
        for (count, wait) in waits.enumerated() {
            let whole = min(86_400, 60 << Int64(min(count, 12)))
            #expect((Duration.seconds(whole) / 2 ... .seconds(whole)).contains(wait), "\(count)")
        }
        // Active once: then the first loss is told at once.
        try phone.event(#"{"type":"push_account","op":"update","push_account_id":$ID,"status":"active"}"#)
        #expect(try phone.event(Self.gone) == ["register"])
    }

    @Test("A dead token while a repeat is under way is pending again, and told where it stays so")
    func pendingAgain() throws {
        var phone = try ZulipPlayedDevice.active()
        phone.now = phone.now + .seconds(3_600)
        let pending = #"{"type":"push_account","op":"update","push_account_id":$ID,"status":"pending"}"#
        #expect(try phone.event(pending) == ["timer"])
        #expect(phone.status.state == .pending)
        #expect(try phone.waitForTimer() == ["not_set_up"])
        #expect(phone.status.advice == .wait)
    }

    @Test("A notice is given once in each run of the app")
    func notices() throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.zap)
        try phone.begin()
        try phone.answer(200)
        phone.now = phone.now + .seconds(301)
        let pending = #"{"push_account_ids":{"$ID":{"status":"pending"}}}"#
        #expect(try phone.fetch(pending) == ["not_set_up"])
        #expect(try phone.fetch(pending) == [])
        try phone.restart()
        #expect(try phone.fetch(pending) == ["not_set_up"])
        #expect(try phone.fetch(#"{"push_account_ids":{"$ID":{"status":"active"}}}"#) == ["end"])
        #expect(phone.status.age == .zero)
        phone.now = phone.now + .seconds(60)
        #expect(phone.status.age == .seconds(60))
    }

    // MARK: the app

    @Test("A call whose answer the app did not live to see is made again, with the same id and key")
    func killed() throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.zap)
        try phone.begin()
        let first = try #require(phone.calls.last)
        phone.now = phone.now + .seconds(3)
        #expect(try phone.restart() == ["register"])
        let second = try #require(phone.calls.last)
        #expect(second.number > first.number)
        for name in ["push_account_id", "push_public_key"] { #expect(second.text(name) == first.text(name)) }
        #expect(try phone.blob().timestamp == phone.now.seconds)
        #expect(second.text("encrypted_push_registration") != first.text("encrypted_push_registration"))
        // In the same process it is waited for, two minutes at most.
        #expect(try phone.begin() == [])
        phone.now = phone.now + .seconds(120)
        #expect(try phone.begin() == ["register"])
    }

    @Test("A wait is kept over a restart, and its timer asked for again")
    func waitKept() throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.zap)
        try phone.begin()
        for _ in 0..<6 {
            try phone.answer(503)
            try phone.waitForTimer()
        }
        try phone.answer(503)
        let deadline = phone.device.nextDeadline
        #expect(try phone.restart() == ["timer"])
        #expect(phone.device.nextDeadline == deadline)
        phone.now = phone.now + .seconds(Self.day)
        #expect(try phone.restart() == ["register"])
    }

    @Test("Without a token nothing is called until the system gives one")
    func noToken() throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.zap)
        #expect(try phone.begin(nil) == [])
        #expect(phone.device.nextDeadline == nil)
        #expect(try phone.wait(60) == [])
        #expect(try phone.take(.token(ZulipPlayedDevice.apns())) == ["register"])
    }

    @Test("A start without the server's settings goes by those of the last one")
    func offline() throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.zap)
        phone.settings = nil
        #expect(try phone.begin() == [])
        #expect(phone.device.nextDeadline == nil)
        phone.settings = ZulipPlayedDevice.zap
        #expect(try phone.begin() == ["register"])
        try phone.answer(nil)
        phone.settings = nil
        phone.now = phone.now + .seconds(60)
        #expect(try phone.restart() == ["register"])
    }

    @Test("The token goes to the relay exactly as given, and what was acknowledged is kept that way")
    func exactly() throws {
        let mixed = "b529DD6f50cf7819418C554CB767B4AEF9111BEDEB842BC6D25312469E01E03D"
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.zap)
        try phone.begin(mixed)
        #expect(try phone.blob().token == Secret(mixed.utf8))
        try phone.answer(200)
        #expect(phone.device.lastAcknowledgedToken.map { $0 == Secret(mixed.utf8) } == true)
        // In another case it is the same token, and no call.
        #expect(try phone.restart(ZulipPlayedDevice.token) == ["timer"])
        #expect(phone.device.lastAcknowledgedToken.map { $0 == Secret(mixed.utf8) } == true)
        phone.now = phone.now + .seconds(30 * Self.day)
        #expect(try phone.restart(ZulipPlayedDevice.token) == ["register"])
        #expect(try phone.blob().token == Secret(ZulipPlayedDevice.token.utf8))
    }

    @Test("A clock that was set back neither puts the monthly repeat off nor keeps a phone quiet")
    func clock() throws {
        var phone = try ZulipPlayedDevice.active()
        phone.now = phone.now - .seconds(400 * Self.day)
        #expect(try phone.restart() == ["register"])
        try phone.answer(nil)
        try phone.event(Self.gone)
        #expect(!phone.status.isQuiet)
        #expect(phone.status.age >= .zero)
    }

    @Test("A wait that a clock put far ahead is not waited for when the clock is right again")
    func clockAhead() throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.zap)
        phone.now = phone.now + .seconds(400 * Self.day)
        try phone.begin()
        try phone.answer(503)
        var pending = phone
        try pending.waitForTimer()
        try pending.answer(200)
        phone.now = ZulipPlayedDevice.start
        pending.now = ZulipPlayedDevice.start
        #expect(try phone.restart() == ["register"])
        #expect(try pending.restart() == ["register"])
        #expect(try pending.answer(nil) == ["timer"])
        #expect(try #require(pending.device.nextDeadline) <= pending.now + .seconds(300))
    }

    @Test("A call that the app forgot to answer does not keep a lost registration waiting")
    func forgottenAnswer() throws {
        var phone = try ZulipPlayedDevice.active()
        phone.now = phone.now + .seconds(30 * Self.day)
        #expect(try phone.begin() == ["register"])
        #expect(try phone.event(Self.gone) == [])
        phone.now = phone.now + .seconds(120)
        #expect(try phone.fetch(Self.empty) == ["register"])
    }

    @Test("A test notification is asked for once something is registered")
    func testNotification() throws {
        var phone = try ZulipPlayedDevice(ZulipPlayedDevice.zap)
        #expect(phone.device.testNotification().map(\.number) == nil)
        try phone.begin()
        #expect(phone.device.testNotification().map(\.number) == nil)
        try phone.answer(200)
        let asked = phone.device.testNotification()
        let call = try #require(asked)
        #expect(call.path == "/api/v1/mobile_push/e2ee/test_notification")
        #expect(call.text("push_account_id") == phone.id)
        #expect(call.body == Secret("push_account_id=\(try #require(phone.id))".utf8))
        #expect(try phone.answer(400, to: call.number) == [])
    }

    @Test("A token that no relay takes, or a marker that is none, is refused and changes nothing")
    func badInput() throws {
        var phone = try ZulipPlayedDevice.active()
        let before = phone.device.encoded()
        let tokens = ["", "xyz", "abc", String(repeating: "a", count: 4_098)]
        for token in tokens {
            #expect(throws: ZulipError(.invalidRegistration)) {
                try phone.take(.token(ZulipPlayedDevice.apns(token)))
            }
            #expect(throws: ZulipError(.invalidRegistration)) { try phone.begin(token) }
        }
        #expect(throws: ZulipError(.invalidRegistration)) {
            try phone.take(
                .token(DevicePushToken(kind: .apns, token: Secret("ab".utf8), appID: nil)))
        }
        for count in [0, 15, 65] {
            phone.marker = Secret([UInt8](repeating: 1, count: count))
            #expect(throws: ZulipError(.invalidRequest)) { try phone.begin() }
        }
        #expect(phone.device.encoded() == before)
        let weak = Base64.text([UInt8](repeating: 0, count: 32))
        for key in ["", "AAAA", weak, Base64.text(phone.bouncer.publicKey) + " "] {
            #expect(throws: ZulipError(.unknownBouncerKey)) { try ZulipAppBuild(bouncerKey: key) }
        }
    }
}
