import NextcloudPush
import PushModel
import PushTesting
import Testing

/// The device as an app has it: tokens in, calls out, pushes opened.
@Suite("Nextcloud device in an app", .timeLimit(.minutes(30)))
struct NextcloudDeviceKitTests {
    private let ends: Ends
    private var phone: NextcloudKitPhone

    init() throws {
        ends = try Ends()
        phone = try NextcloudKitPhone(ends)
    }

    @Test("From nothing to a notification opened: three calls, one at a time")
    mutating func life() throws {
        #expect(phone.isIdle() && phone.device.nextDue == nil)
        #expect(phone.device.status(at: phone.now).advice == .giveToken)
        try phone.tell()
        let asked = try phone.due()
        #expect(asked.path.hasSuffix("/ocs/v2.php/cloud/capabilities?format=json"))
        #expect(asked.patience == .seconds(30) && !asked.isStanding)
        #expect(phone.isIdle() && phone.device.nextDue == phone.now + .seconds(120))
        phone.answer(200, NextcloudKitPhone.capabilities, to: asked)
        let atServer = try phone.due()
        #expect(atServer.path.hasPrefix("POST https://cloud.example.org/"))
        #expect(!atServer.text.contains(NextcloudKitPhone.alert))
        phone.answer(201, try ends.serverAnswer(), to: atServer)
        let atRelay = try phone.due()
        #expect(atRelay.path == "POST https://push.example.com/devices")
        #expect(atRelay.text.contains("pushToken=\(NextcloudKitPhone.alert)+\(NextcloudKitPhone.calls)&"))
        let pending = phone.device.status(at: phone.now)
        #expect(pending.state == .pending && pending.isQuiet)
        // A clock that was set back does not silence it for as long.
        #expect(!phone.device.status(at: phone.now - .seconds(86_400)).isQuiet)
        phone.answer(200, to: atRelay)
        #expect(phone.isIdle() && phone.device.nextDue == phone.now + .seconds(86_400))
        let status = phone.device.status(at: phone.now)
        #expect(status.state == .active && status.advice == .none && status.since == phone.now)
        phone.now = phone.now + .seconds(86_400)
        // Once more each day, and the server is not asked again what it can do.
        #expect(try phone.peek().path.hasPrefix("POST https://cloud.example.org/"))
    }

    @Test(
        "What is whole is shown, what is cut or without an id fetched, withdrawals are removed",
        arguments: [
            (#"{"nid":5,"app":"spreed","subject":"hi","type":"chat","id":"t"}"#, "show"),
            (#"{"nid":5,"app":"spreed","subject":"hi…","type":"chat","id":"t"}"#, "fetch"),
            (#"{"app":"spreed","subject":"hi","type":"chat","id":"t"}"#, "fetch"),
            (#"{"nid":5,"delete":true}"#, "remove"), (#"{"delete-all":true}"#, "remove"),
            (#"{"something":"new"}"#, "ignore")
        ])
    mutating func opens(_ plain: String, _ kind: String) throws {
        let sealed = try ends.delivered(try ends.sealed(Array(plain.utf8)))
        try phone.tell()
        #expect(throws: DeviceError(.foreign)) { try phone.device.open(sealed, at: phone.now) }
        try phone.register()
        // In the extension, which has what was kept and nothing else.
        let extended = try NextcloudDevice(ends.login, keeping: phone.device.kept)
        switch try extended.open(sealed, at: phone.now) {
        case .show(.alert(let alert)): #expect(kind == "show" && alert.subject == "hi")
        case .fetch(.alert(let alert)):
            #expect(kind == "fetch")
            #expect(extended.details(of: alert).path.contains("/api/v2/notifications"))
        case .remove(let content): #expect(kind == "remove" && content != .withdrawal([]))
        case .ignore(let reason): #expect(kind.hasPrefix("ignore") && reason == .laterVersion)
        default: Issue.record("none of these")
        }
    }

    @Test("A push is found as APNs and FCM hand it over; what is none is foreign, and a forged one too")
    mutating func delivered() throws {
        try phone.tell()
        try phone.register()
        let sealed = try ends.sealed(Array(#"{"nid":5,"delete":true}"#.utf8))
        let text = { (secret: Secret) in secret.reveal { String(decoding: $0, as: UTF8.self) } }
        let (subject, signature) = (text(sealed.subject), text(sealed.signature))
        let aps: [AnyHashable: Any] = [
            "aps": ["alert": ["title": "x"]], "subject": subject, "signature": signature
        ]
        let forms = [
            try Delivered(userInfo: aps), try Delivered(data: ["subject": subject, "signature": signature]),
            try Delivered(
                json: Secret(
                    #"{"message":{"data":{"subject":"\#(subject)","signature":"\#(signature)"}}}"#.utf8))
        ]
        for form in forms {
            #expect(try phone.device.open(form, at: phone.now).content == .withdrawal([5]))
        }
        for data in [[:], ["subject": subject], ["subject": "", "signature": ""], ["signature": signature]] {
            #expect(throws: DeviceError(.foreign)) {
                try phone.device.open(Delivered(data: data), at: phone.now)
            }
        }
        let forged = try ends.sealed(Array(#"{"delete-all":true}"#.utf8), by: ends.otherKey)
        #expect(throws: DeviceError(.foreign)) {
            try phone.device.open(ends.delivered(forged), at: phone.now)
        }
    }

    @Test("An answer that comes twice, late, or to a call of another device changes nothing")
    mutating func foreignAnswers() throws {
        try phone.tell()
        let asked = try phone.due()
        var other = try NextcloudKitPhone(ends)
        other.random = SeededRandom(seed: 22)
        try other.tell()
        let foreign = try other.due()
        let before = phone.device.kept
        phone.answer(401, to: foreign)
        #expect(phone.isIdle() && phone.device.kept == before)
        phone.answer(200, NextcloudKitPhone.capabilities, to: asked)
        let atServer = try phone.due()
        phone.answer(401, to: asked)
        phone.answer(201, try ends.serverAnswer(), to: atServer)
        phone.answer(401, to: atServer)
        // Two minutes later the relay's answer counts as lost, and the server is told again.
        let lost = try phone.due()
        phone.now = phone.now + .seconds(120)
        let again = try phone.due()
        #expect(again.path.hasPrefix("POST https://cloud.example.org/"))
        phone.answer(403, to: lost)
        #expect(phone.device.status(at: phone.now).state == .pending)
        phone.answer(201, try ends.serverAnswer(), to: again)
        phone.answer(200, to: try phone.due())
        phone.answer(403, to: lost)
        #expect(phone.device.status(at: phone.now).state == .active)
        // The answers to the app's own calls are the app's.
        phone.answer(401, to: phone.device.selfTest())
        #expect(phone.device.status(at: phone.now).detail == nil)
        // Of another kind than the call's it is none.
        phone.device.registerAgain()
        let call = try phone.due()
        phone.device.answered(.taken, to: call, at: phone.now, using: &phone.random)
        #expect(phone.isIdle() && phone.device.status(at: phone.now).advice == .retrying)
    }

    @Test(
        "Without network it tries again, later each time, and no restart forgets how late", arguments: 0..<3)
    mutating func offline(_ step: Int) throws {
        try phone.tell()
        for round in 0..<10 {
            let answers = [(200, NextcloudKitPhone.capabilities), (201, try ends.serverAnswer())]
            let known = round == 0 ? 0 : min(step, 1)
            for (status, body) in answers[known..<step] { phone.answer(status, body, to: try phone.due()) }
            phone.answer(nil, to: try phone.due())
            let next = try #require(phone.device.nextDue)
            let whole = min(Duration.seconds(300), .seconds(1 << round))
            #expect(next.since(phone.now) <= whole && next.since(phone.now) >= whole / 2, "round \(round)")
            #expect(phone.isIdle())
            let kept = phone.device.kept
            #expect(try NextcloudDevice(ends.login, keeping: kept).kept == kept)
            phone.now = next
        }
        try phone.register(from: min(step, 1))
        #expect(phone.device.status(at: phone.now).state == .active)
        // A clock that was set back by years does not put it off.
        phone.device.registerAgain()
        phone.answer(503, after: "7200", to: try phone.due())
        phone.now = phone.now - .seconds(90_000)
        #expect(!phone.isIdle())
    }

    @Test(
        "What is refused is said with one advice, and tried again the next day or at the next start",
        arguments: [
            (0, 401, "", "notLoggedIn", DeviceStatus.Advice.logInAgain),
            (0, 404, "", "refusedByServer", .tellAdmin),
            (0, 200, "{}", "malformedAnswer", .tellAdmin),
            (0, 200, #"{"ocs":{"data":{"capabilities":{}}}}"#, "unsupportedServer", .unsupported),
            (1, 401, "", "notLoggedIn", .logInAgain), (1, 404, "", "refusedByServer", .tellAdmin),
            (1, 201, "{}", "malformedAnswer", .tellAdmin), (2, 404, "", "refusedByProxy", .tellAdmin),
            (2, 403, "", "identityRefused", .tellAdmin)
        ])
    mutating func refused(
        _ step: Int, _ status: Int, _ body: String, _ detail: String, _ advice: DeviceStatus.Advice
    ) throws {
        try phone.tell()
        let answers = [(200, NextcloudKitPhone.capabilities), (201, try ends.serverAnswer())]
        for (status, body) in answers[..<step] { phone.answer(status, body, to: try phone.due()) }
        phone.answer(status, body, to: try phone.due())
        let said = phone.device.status(at: phone.now)
        #expect(said.state == .failed && said.detail == detail && said.advice == advice && !said.isQuiet)
        #expect(phone.isIdle() && phone.device.nextDue == phone.now + .seconds(86_400))
        var started = phone
        try started.restart()
        #expect(started.device.status(at: phone.now).detail == detail)
        try started.register()
        phone.now = phone.now + .seconds(86_400)
        // What asks for patience then is waited for, though the day of the refusal is over.
        var away = phone
        away.answer(503, after: "3600", to: try away.due())
        #expect(away.isIdle() && away.device.nextDue == away.now + .seconds(3_600))
        try phone.register()
        #expect(phone.device.status(at: phone.now).detail == nil)
    }

    @Test("A conflict at the relay is answered once with the cloud id, and then waits in silence")
    mutating func conflict() throws {
        try phone.tell()
        phone.answer(200, NextcloudKitPhone.capabilities, to: try phone.due())
        phone.answer(201, try ends.serverAnswer(), to: try phone.due())
        phone.answer(409, to: try phone.due())
        let proof = try phone.due()
        #expect(proof.text.contains("cloudId=alice%40cloud.example.org"))
        phone.answer(409, to: proof)
        let status = phone.device.status(at: phone.now)
        #expect(status.state == .pending && status.advice == .retrying && status.isQuiet)
        #expect(status.detail == "instanceUnreachable")
    }

    @Test("Another token, relay, key or server is told; the same is not")
    mutating func changes() throws {
        phone = try NextcloudKitPhone.registered(ends)
        try phone.tell()
        #expect(phone.isIdle())
        try phone.restart()
        #expect(phone.isIdle())
        // Another token, in the middle of nothing.
        var changed = phone
        try changed.device.use(
            token: .apns(hex: NextcloudKitPhone.calls), calls: .apns(hex: NextcloudKitPhone.alert))
        #expect(changed.device.nextDue == .distantPast)
        try changed.register()
        // Another relay.
        var moved = phone
        let app = NextcloudAppBuild(
            proxyServer: "https://other.example", userAgent: Ends.app.userAgent, voip: .strict)
        try moved.restart(NextcloudLogin(ends.account, app))
        moved.answer(200, NextcloudKitPhone.capabilities, to: try moved.due())
        moved.answer(201, try ends.serverAnswer(), to: try moved.due())
        #expect(try moved.peek().path == "POST https://other.example/devices")
        // Another server: what the one before has signed opens until the new one has answered.
        var other = phone
        let account = NextcloudAccount(
            serverURL: "https://new.example", userID: "alice", loginName: "alice",
            appPassword: Secret("p".utf8))
        try other.restart(NextcloudLogin(account, Ends.app))
        #expect(try other.peek().path.hasPrefix("GET https://new.example/"))
        let sealed = try ends.delivered(try ends.sealed(Array(#"{"nid":5,"delete":true}"#.utf8)))
        #expect(try other.device.open(sealed, at: phone.now).content == .withdrawal([5]))
        // Another key opens nothing.
        let stranger = try NextcloudDevice(
            ends.login, try ends.device(key: ends.otherKey))
        #expect(throws: DeviceError(.doesNotOpen)) { try stranger.open(sealed, at: phone.now) }
    }

    @Test("Tokens and setups that no relay takes are refused, and change nothing")
    mutating func refusedSetups() throws {
        phone = try NextcloudKitPhone.registered(ends)
        let fcm = try DeviceToken.fcm("f:token")
        let apns = try DeviceToken.apns(hex: NextcloudKitPhone.alert)
        #expect(throws: DeviceError(.wrongService)) { try phone.device.use(token: fcm, calls: apns) }
        #expect(throws: DeviceError(.wrongService)) { try phone.device.use(token: apns, calls: fcm) }
        #expect(throws: DeviceError(.wrongService)) { try phone.device.use(token: nil, calls: apns) }
        #expect(phone.isIdle() && !phone.device.isGone)
        func login(
            _ server: String = "https://a.example", user: String = "a", name: String = "a",
            proxy: String = "https://b.example", agent: String = "A"
        ) -> NextcloudLogin {
            NextcloudLogin(
                serverURL: server, userID: user, loginName: name, appPassword: Secret("secret".utf8),
                proxyServer: proxy, userAgent: agent)
        }
        _ = try NextcloudDevice(login(), key: ends.deviceKey)
        let wrong = [
            login(""), login("cloud.example.org"), login("https://"), login("https:///x"),
            login("https://a.example/?x"), login("https://a b"), login("https://u@a.example"),
            login("https://" + String(repeating: "a", count: 250)), login(user: ""),
            login(user: String(repeating: "a", count: 600)), login(name: "a:b"), login(name: "a\r\nb"),
            login(name: String(repeating: "a", count: 1_024)), login(proxy: "ftp://b.example"),
            login(agent: "A\r\nX: y"), login(agent: String(repeating: "A", count: 499))
        ]
        for one in wrong {
            #expect(throws: DeviceError(.malformedSetup)) {
                try NextcloudDevice(one, key: ends.deviceKey)
            }
        }
        for text in ["\(login())", String(reflecting: login()), "\(phone.device)"] {
            #expect(!text.contains("secret") && !text.contains("example"))
        }
    }
}
