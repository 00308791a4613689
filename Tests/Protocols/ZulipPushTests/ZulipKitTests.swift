import PushModel
import SealbellKit
import Testing
import WireFormats
import ZulipPush

/// The device as an app has it: from nothing to a notification opened, with a server that answers.
@Suite("Zulip device of the kit", .timeLimit(.minutes(30)))
struct ZulipKitTests {
    private static let message =
        #""type":"message","message_id":5,"time":5,"content":"see you at nine","sender_id":8,"#
        + #""sender_full_name":"Iago","sender_avatar_url":"https://chat.example.org/a.png","#
        + #""recipient_type":"direct","recipient_user_ids":[7,8]"#

    @Test("From nothing to a message opened, in every profile", arguments: ZulipProfile.allCases)
    func wholeWay(_ profile: ZulipProfile) throws {
        var phone = try ZulipKitPhone(profile)
        #expect(phone.status.state == .none)
        #expect(phone.device.route == nil)
        try phone.work()
        #expect(phone.device.route == .encrypted(profile))
        #expect(phone.status.state == .active)
        #expect(phone.status.advice == .none && !phone.status.isQuiet)
        #expect(phone.server.count("server_settings") == 1)
        #expect(phone.server.count("mobile_push/register") == 1)
        // One queue, one look at it, and it is closed.
        #expect(phone.server.count("POST /api/v1/register") == (profile == .v12 ? 2 : 1))
        #expect(phone.server.count("GET /api/v1/events") == 1)
        #expect(phone.server.queues.isEmpty)

        let push = try phone.push(Self.message)
        guard case .show(let note) = try phone.open(push), case .message(let message) = note.body else {
            Issue.record("the message is for the screen")
            return
        }
        #expect(message.content == "see you at nine")
        #expect(message.senderName == "Iago")
        // As Apple hands it over.
        let apns = try Delivered(userInfo: ZulipKitPhone.userInfo(push))
        #expect(try phone.device.open(apns, at: phone.now).content == note)
        let found = try ZulipDevice.open(
            apns, among: [try ZulipKitPhone(profile, seed: 2).device, phone.device], at: phone.now)
        #expect(found.place == 1)
    }

    @Test("Restarted at any point, it comes to the same end", arguments: ZulipProfile.allCases)
    func restarts(_ profile: ZulipProfile) throws {
        for step in ZulipKitPhone.Step.allCases {
            for cut in 0..<10 {
                var phone = try ZulipKitPhone(profile, seed: UInt64(cut))
                var count = 0
                try phone.work { phone, at in
                    guard at == step else { return true }
                    count += 1
                    guard count == cut + 1 else { return true }
                    try phone.restart()
                    return false
                }
                // What a call of the last run waits for is over by then.
                try phone.pass(.seconds(600))
                #expect(phone.status.state == .active, "\(step), \(cut)")
                // An id is the phone's own and stays; a device's is the server's, whose answer may be lost.
                #expect(phone.server.registrations.count <= (profile == .v12 ? 2 : 1), "\(step), \(cut)")
                let id = phone.server.registrations.first { $0.value.status == "active" }?.key
                #expect(try phone.open(phone.push(to: id)).content != nil, "\(step), \(cut)")
                let kept = try #require(phone.saved)
                try phone.restart()
                #expect(phone.device.kept == kept)
            }
        }
    }

    @Test("An answer that comes twice, late or to another device's call changes nothing")
    func strayAnswers() throws {
        for profile in ZulipProfile.allCases {
            var phone = try ZulipKitPhone(profile)
            var random = phone.random
            var other = try ZulipDevice(phone.login, keeping: nil, using: &random)
            try other.use(token: .apns(hex: ZulipKitPhone.other))
            let foreign = other.due(at: phone.now, using: &random)
            #expect(foreign.count == 1)
            var earlier: [Call] = []
            for _ in 0..<20 {
                let calls = phone.device.due(at: phone.now, using: &phone.random)
                if calls.isEmpty { break }
                #expect(Set(calls.map(\.id)).count == calls.count)
                for call in calls {
                    let answer = phone.server.answer(call, at: phone.now)
                    phone.device.answered(answer, to: call, at: phone.now, using: &phone.random)
                    let (kept, next) = (phone.device.kept, phone.device.nextDue)
                    let nothing = CallAnswer.http(status: 401, body: Secret([]))
                    for stray in earlier + foreign + [call] {
                        for answer in [answer, nothing, .none, .taken] {
                            phone.device.answered(answer, to: stray, at: phone.now, using: &phone.random)
                        }
                    }
                    #expect(phone.device.kept == kept)
                    #expect(phone.device.nextDue == next)
                    earlier.append(call)
                }
            }
            #expect(phone.status.state == .active)
            // Of the last run: a new one has given none of them.
            phone.saved = phone.device.kept
            try phone.restart()
            let kept = phone.device.kept
            for call in earlier {
                phone.device.answered(
                    .http(status: 401, body: Secret([])), to: call, at: phone.now, using: &phone.random)
            }
            #expect(phone.device.kept == kept)
        }
    }

    @Test("Before a token nothing is called, and the user is told to allow it")
    func noToken() throws {
        var random = SystemRandomNumberGenerator()
        var device = try ZulipDevice(ZulipKitPhone.login(), keeping: nil, using: &random)
        #expect(device.due(at: UnixTime(seconds: 1), using: &random).isEmpty)
        #expect(device.nextDue == nil)
        #expect(device.status(at: UnixTime(seconds: 1)).advice == .giveToken)
        var phone = try ZulipKitPhone(.zap)
        phone.server.confirmsAtPoll = false
        try phone.work()
        device = try ZulipDevice(phone.login, keeping: phone.saved, using: &random)
        #expect(device.status(at: phone.now).advice == .giveToken)
        #expect(device.due(at: phone.now, using: &random).isEmpty)
        // Longer than a relay takes.
        let long = String(repeating: "a", count: 200)
        #expect(throws: Never.self) { try device.use(token: .apns(hex: long)) }
        #expect(throws: Never.self) { try device.use(token: .fcm(String(repeating: "a", count: 4_096))) }
    }

    // MARK: servers that do not

    @Test("Without a network it tries less and less often, and registers once there is one")
    func noNetwork() throws {
        for profile in ZulipProfile.allCases {
            var phone = try ZulipKitPhone(profile)
            phone.server.isDown = true
            try phone.work()
            try phone.pass(.seconds(3_600))
            #expect((2...20).contains(phone.server.heard.count), "\(phone.server.heard.count)")
            phone.server.isDown = false
            try phone.pass(.seconds(1_800))
            #expect(phone.status.state == .active)
            // With what is known of the server, a start without network is one all the same.
            phone.server.isDown = true
            try phone.restart()
            try phone.pass(.seconds(60))
            #expect(phone.device.route == .encrypted(profile))
            #expect(try phone.open(phone.push()).content != nil)
            phone.server.isDown = false
            try phone.pass(.seconds(1_800))
            #expect(phone.status.state == .active)
        }
    }

    @Test("With an API key that is not good any more nothing is called; a new login goes on")
    func loggedOut() throws {
        for profile in ZulipProfile.allCases {
            var phone = try ZulipKitPhone(profile)
            phone.server.apiKey = "another-api-key"
            try phone.work()
            #expect(phone.status.advice == .logInAgain)
            let heard = phone.server.heard.count
            try phone.pass(.seconds(86_400))
            #expect(phone.server.heard.count == heard)
            // The same login once more is no other one.
            try phone.restart()
            try phone.pass(.seconds(600))
            #expect(phone.server.heard.count == heard + 1, "the settings alone, which need no key")
            #expect(phone.status.advice == .logInAgain)
            phone.login = try ZulipKitPhone.login(apiKey: "another-api-key")
            try phone.restart()
            try phone.work()
            #expect(phone.status.state == .active)
            #expect(try phone.open(phone.push()).content != nil)
        }
    }

    @Test("A key that ends while the device waits for events ends that, too")
    func loggedOutWhilePolling() throws {
        var phone = try ZulipKitPhone(.zap)
        phone.server.confirmsAtPoll = false
        phone.server.instead = [("/api/v1/events", 401, #"{"result":"error","code":"UNAUTHORIZED"}"#)]
        try phone.work()
        #expect(phone.status.advice == .logInAgain)
        try phone.pass(.seconds(3_600))
        #expect(phone.server.count("GET /api/v1/events") == 1)
    }

    @Test("A lost event queue is opened anew, with the state beside it")
    func lostQueue() throws {
        for profile in ZulipProfile.allCases {
            var phone = try ZulipKitPhone(profile)
            var hasLost = false
            try phone.work { phone, step in
                if step == .answered, !hasLost, phone.status.state == .pending, !phone.server.queues.isEmpty {
                    hasLost = true
                    phone.server.queues = [:]
                    phone.server.settle()
                }
                return true
            }
            #expect(hasLost)
            #expect(phone.status.state == .active)
            #expect(phone.server.queues.isEmpty)
        }
    }

    @Test("A server that confirms nothing is waited for five minutes, and looked at by the hour")
    func unconfirmed() throws {
        for profile in ZulipProfile.allCases {
            var phone = try ZulipKitPhone(profile)
            phone.server.confirmsAtPoll = false
            try phone.work()
            #expect(phone.status.isQuiet && phone.status.state == .pending)
            try phone.pass(.seconds(400))
            #expect(phone.status.advice == .wait && !phone.status.isQuiet)
            #expect(phone.server.queues.isEmpty, "the queue is closed")
            let heard = phone.server.heard.count
            try phone.pass(.seconds(3_000))
            #expect(phone.server.heard.count == heard)
            phone.server.settle()
            try phone.pass(.seconds(3_600))
            #expect(phone.status.state == .active)
        }
    }

    @Test(
        "A server that answers nonsense is called a few times in ten minutes",
        arguments: ["", "{}", "[]", #"{"result":"success"}"#, #"{"result":"error","code":"X"}"#, "<html>"])
    func nonsense(_ body: String) throws {
        for profile in ZulipProfile.allCases {
            for path in [
                "/api/v1/register", "/api/v1/events", "/api/v1/mobile_push", "/api/v1/", "client_device"
            ] {
                for status in [200, 400, 500] {
                    var phone = try ZulipKitPhone(profile)
                    phone.server.instead = [(path, status, body)]
                    try phone.work()
                    try phone.pass(.seconds(600))
                    #expect(phone.server.heard.count <= 60, "\(path) \(status) \(phone.server.heard.count)")
                }
            }
        }
    }

    @Test("Answers that are cut off at any length are no answers")
    func truncated() throws {
        for profile in ZulipProfile.allCases {
            var phone = try ZulipKitPhone(profile)
            for _ in 0..<20 {
                let calls = phone.device.due(at: phone.now, using: &phone.random)
                if calls.isEmpty { break }
                for call in calls {
                    let answer = phone.server.answer(call, at: phone.now)
                    if case .http(let status, _, let body) = answer {
                        let bytes = body.reveal { Array($0) }
                        for length in bytes.indices {
                            var other = phone.device
                            var random = phone.random
                            let cut = CallAnswer.http(status: status, body: Secret(bytes[..<length]))
                            other.answered(cut, to: call, at: phone.now, using: &random)
                            _ = other.due(at: phone.now, using: &random)
                            #expect(other.status(at: phone.now).state != .failed)
                        }
                    }
                    phone.device.answered(answer, to: call, at: phone.now, using: &phone.random)
                }
            }
            #expect(phone.status.state == .active)
        }
    }
}
