import NextcloudPush
import PushModel
import PushTesting
import RSAKeys
import Testing
import WireFormats

/// What an origin answers its devices, whom it pushes to, and what it asks a proxy (§4).
@Suite("Nextcloud origin", .timeLimit(.minutes(30)))
struct NextcloudOriginTests {
    private let origin = NextcloudOrigin()
    private static let agent = "Mozilla/5.0 (Android) Nextcloud-Talk v20.1.0"

    private func register(
        _ registration: PushRegistration, _ rows: [RegisteredDevice] = [], tokenID: Int64? = 41,
        agent: String = NextcloudOriginTests.agent
    ) throws -> RegistrationVerdict {
        try origin.register(
            registration, by: try Ends().session(tokenID), userAgent: agent, rows: rows)
    }

    // MARK: registrations

    @Test("A device that is new or changed hears 201, one that is as it was 200, and both the same values")
    func statuses() throws {
        let ends = try Ends()
        let first = try register(try ends.registration())
        let row = try #require(first.row)
        #expect(first.answer.status == 201 && first.deletes.isEmpty && row.group == .talk)
        let again = try register(try ends.registration(), [row])
        #expect(again.answer.status == 200 && again.row == nil && again.deletes.isEmpty)
        #expect(
            again.answer.body(.v2, .json).reveal { Array($0) } == JSONProbe.with(first.answer, statusOf: 200))
        for changed in [
            try ends.registration(token: "other"), try ends.registration(proxy: "https://other.example.com"),
            try ends.registration(key: ends.otherKey.publicKey.pem)
        ] {
            let verdict = try register(changed, [row])
            #expect(verdict.answer.status == 201 && verdict.deletes.isEmpty)
            #expect(verdict.row?.deviceIdentifier == row.deviceIdentifier)
        }
        #expect(try register(try ends.registration(), [row], agent: "curl").row?.group == .unknown)
    }

    @Test("A phone that logs in anew takes the place of its old row; other phones stay")
    func newAppPassword() throws {
        let ends = try Ends()
        let old = try #require(try register(try ends.registration()).row)
        let other = try #require(
            try register(try ends.registration(token: "another"), tokenID: 42).row)
        let verdict = try register(try ends.registration(), [old, other], tokenID: 43)
        #expect(verdict.deletes == [41])
        #expect(verdict.row?.tokenID == 43)
        #expect(verdict.row?.deviceIdentifier != old.deviceIdentifier)
    }

    @Test("A missing field is the fault of that field")
    func missing() throws {
        var registration = try Ends().registration()
        registration.proxyServer = nil
        #expect(try register(registration).answer.word == .invalidProxyServer)
        registration.devicePublicKey = nil
        #expect(try register(registration).answer.word == .invalidDeviceKey)
        registration.pushTokenHash = nil
        #expect(try register(registration).answer.word == .invalidTokenHash)
    }

    @Test("A key that is cut, or of one changed character that matters, is refused")
    func keys() throws {
        let pem = try Ends().deviceKey.publicKey.pem
        for length in 0..<pem.utf8.count - 1 {
            let text = String(pem.prefix(length))
            let verdict = try register(try Ends().registration(key: text))
            #expect(verdict.answer.word == .invalidDeviceKey, "length \(length)")
        }
        for text in [pem + "\n", "\n" + pem, pem.replacing("\n", with: "\r\n"), pem + " "] {
            #expect(try register(try Ends().registration(key: text)).answer.word == .invalidDeviceKey)
        }
        #expect(try register(try Ends().registration(key: String(pem.dropLast()))).answer.status == 201)
    }

    @Test(
        "A proxy in a private network is refused, by whatever name",
        arguments: [
            "https://127.0.0.1/", "https://localhost/", "https://10.0.0.1:8443/x", "https://[::1]/",
            "https://[fe80::1]/", "https://[::ffff:192.168.0.1]/", "https://169.254.169.254/",
            "https://push.internal/", "https://push.local", "https://a.localhost/", "http://localhost/",
            "http://push.internal/", "https://user:pass@10.0.0.1/"
        ])
    func localProxies(_ url: String) throws {
        let registration = try Ends().registration(proxy: url)
        #expect(try register(registration).answer.word == .invalidProxyServer)
        let open = NextcloudOrigin(NextcloudOrigin.Settings(localProxies: .allowed))
        let verdict = try open.register(
            registration, by: try Ends().session(), userAgent: "", rows: [])
        #expect(verdict.answer.status == 201)
    }

    @Test(
        "A text that is no URL of a proxy is refused, even where local ones are allowed",
        arguments: [
            "https://", "https:///x", "https://a b/", "https://a\n/", "https://exämple.org/",
            "https://-a.org/",
            "https://a..b/", "https://a:70000/", "https://a:/", "https://a:x/", "https://[1.2.3.4]/",
            "https://[::1", "https://a\\b/", "HTTP://localhost", "http://localhost", "http://localhost.org/",
            "//a.org/", "https:a.org"
        ])
    func notURLs(_ url: String) throws {
        let open = NextcloudOrigin(NextcloudOrigin.Settings(localProxies: .allowed))
        let verdict = try open.register(
            try Ends().registration(proxy: url), by: try Ends().session(), userAgent: "", rows: [])
        #expect(verdict.answer.word == .invalidProxyServer)
    }

    @Test("Statuses and bodies follow the version and the format that the caller chose")
    func wording() throws {
        let refused = try register(try Ends().registration(key: "x")).answer
        #expect(refused.httpStatus(.v2) == 400 && refused.httpStatus(.v1) == 200)
        func text(_ answer: OCSAnswer, _ version: OCSAnswer.Version, _ format: OCSAnswer.Format) -> String {
            answer.body(version, format).reveal { String(decoding: $0, as: UTF8.self) }
        }
        // As a deployed server was seen to answer.
        #expect(
            text(refused, .v2, .json)
                == #"{"ocs":{"meta":{"status":"failure","statuscode":400,"message":""},"#
                + #""data":{"message":"INVALID_DEVICE_KEY"}}}"#)
        #expect(text(refused, .v1, .json).contains(#""statuscode":400,"message":"","totalitems":"""#))
        #expect(text(refused, .v2, .xml).contains("<message>INVALID_DEVICE_KEY</message>"))
        let none = origin.unregister(by: try Ends().session(), rows: []).answer
        #expect(none.httpStatus(.v1) == 200 && none.status == 200)
        #expect(text(none, .v1, .json).contains(#""status":"ok","statuscode":100,"message":"OK""#))
        #expect(text(none, .v2, .json).hasSuffix(#""data":[]}}"#))
        #expect(text(none, .v2, .xml).contains(" <data/>\n"))
        let stranger = origin.unregister(by: nil, rows: []).answer
        #expect(OCSAnswer.Version.allCases.map { stranger.httpStatus($0) } == [401, 401])
        #expect(text(stranger, .v2, .json).contains(#""statuscode":997"#))
        let taken = try register(try Ends().registration()).answer
        #expect(text(taken, .v2, .xml).contains("<publicKey>-----BEGIN PUBLIC KEY-----\n"))
        #expect(taken.contentType(.xml) == "application/xml; charset=utf-8")
    }

    // MARK: who gets a push

    @Test("The User-Agent alone says which group a device is of")
    func groups() {
        let talk = ["(iOS) Nextcloud-Talk v20", "(Android) Nextcloud-Talk v20.1.0"]
        let files = ["(iOS) Nextcloud-iOS/6", "(Android) Nextcloud-android/3", "(Android) ownCloud-android"]
        for agent in talk { #expect(DeviceGroup(userAgent: "Mozilla/5.0 " + agent) == .talk) }
        for agent in files { #expect(DeviceGroup(userAgent: "Mozilla/5.0 " + agent) == .nextcloud) }
        for agent in ["", "Mozilla/5.0", "x Mozilla/5.0 (iOS) Nextcloud-Talk v2", "Mozilla/5.0 (iOS) Acme"] {
            #expect(DeviceGroup(userAgent: agent) == .unknown)
        }
    }

    @Test("Talk's notifications go to Talk devices, or where there are none to all; others never to Talk's")
    func audienceByGroup() throws {
        let ends = try Ends()
        let rows = [ends.row(1, group: .talk), ends.row(2, group: .nextcloud), ends.row(3, group: .unknown)]
        var share = Ends.chat()
        share.app = "files_sharing"
        let all = conditions([1, 2, 3])
        #expect(all.audience(for: Ends.chat(), of: rows, now: Ends.now).devices.map(\.tokenID) == [1])
        #expect(all.audience(for: share, of: rows, now: Ends.now).devices.map(\.tokenID) == [2, 3])
        #expect(
            all.audience(for: Ends.chat(), of: Array(rows[1...]), now: Ends.now).devices.map(\.tokenID)
                == [2, 3])
        #expect(
            all.audience(forWithdrawalsOf: "talk", of: rows, now: Ends.now).devices.map(\.tokenID) == [1])
        #expect(all.everybody(of: rows, now: Ends.now).devices.count == 3)
    }

    @Test(
        "Nobody is pushed to without internet or fair use, or when not to be disturbed but for what is urgent"
    )
    func conditions() throws {
        let ends = try Ends()
        let rows = [ends.row(1)]
        func count(_ conditions: PushConditions, _ notification: NextcloudNotification = Ends.chat()) -> Int {
            conditions.audience(for: notification, of: rows, now: Ends.now).devices.count
        }
        var some = conditions([1])
        #expect(count(some) == 1)
        some.hasInternet = false
        #expect(count(some) == 0)
        some = conditions([1])
        some.isWithinFairUse = false
        #expect(count(some) == 0)
        some = conditions([1])
        some.isDoNotDisturb = true
        #expect(count(some) == 0)
        var urgent = Ends.chat()
        urgent.isPriority = true
        #expect(count(some, urgent) == 1)
        #expect(some.audience(forWithdrawalsOf: "spreed", of: rows, now: Ends.now).devices.count == 1)
    }

    @Test(
        "An app password idle for 60 days or to be wiped gets nothing; one that is gone takes its row along"
    )
    func appPasswords() throws {
        let ends = try Ends()
        let rows = (1...4).map { ends.row($0) }
        let day = Duration.seconds(86_400)
        let states = PushConditions(appPasswords: [
            1: AppPasswordState(lastUsedAt: Ends.now - day * 60),
            2: AppPasswordState(lastUsedAt: Ends.now - day * 60 - .seconds(1)),
            3: AppPasswordState(lastUsedAt: Ends.now, isMarkedForWipe: true)
        ])
        let audience = states.audience(for: Ends.chat(), of: rows, now: Ends.now)
        #expect(audience.devices.map(\.tokenID) == [1])
        #expect(audience.orphans == [4])
        // A Talk app that is idle does not keep calls from the others.
        let mixed = [ends.row(2, group: .talk), ends.row(1, group: .nextcloud)]
        #expect(
            states.audience(for: Ends.chat(), of: mixed, now: Ends.now).devices.map(\.tokenID) == [1])
    }

    private func conditions(_ ids: [Int64]) -> PushConditions {
        PushConditions(
            appPasswords: Dictionary(
                uniqueKeysWithValues: ids.map { ($0, AppPasswordState(lastUsedAt: Ends.now)) }))
    }

    // MARK: what is sent

    @Test("A device whose key is none is named, and the others get the push all the same")
    func deaf() throws {
        let ends = try Ends()
        let rows = [ends.row(1, key: "no key"), ends.row(2)]
        let sealing = try origin.notify(Ends.chat(), to: ends.everybody(rows), of: ends.user)
        #expect(sealing.deaf == [1])
        #expect(sealing.entries.map(\.deviceIdentifier) == [rows[1].deviceIdentifier])
    }

    @Test("A notification that has no room is for nobody, and no device is to blame")
    func tooLong() throws {
        let ends = try Ends()
        let audience = ends.everybody([ends.row()])
        var long = Ends.chat("a subject")
        long.objectID = String(repeating: "x", count: 220)
        #expect(throws: NextcloudError(.plaintextTooLong)) {
            try origin.notify(long, to: audience, of: ends.user)
        }
        // With less padding it passes, without a subject but for the sign that it was cut.
        long.objectID = String(repeating: "x", count: 160)
        let old = NextcloudOrigin(NextcloudOrigin.Settings(padding: .pkcs1v15))
        let sealing = try old.notify(long, to: audience, of: ends.user)
        guard case .alert(let alert)? = try ends.device().open(Ends.subject(of: sealing.entries[0])) else {
            Issue.record("an alert")
            return
        }
        #expect(alert.subject == "\u{2026}" && alert.needsDetails)
    }

    @Test("A call to a proxy is a form of JSON texts, as a deployed server writes it")
    func callBody() throws {
        let ends = try Ends()
        let hashes = ["a", "b"].map { String(repeating: $0, count: 128) }
        let rows = [ends.row(1, hash: hashes[0]), ends.row(2, proxy: Ends.proxy + "//", hash: hashes[1])]
        let sealing = try origin.notify(Ends.chat(), to: ends.everybody(rows), of: ends.user)
        let call = origin.call(sealing.entries)
        #expect(call.method == "POST" && call.url == Ends.proxy + "/notifications")
        #expect(call.header("Content-Type") == "application/x-www-form-urlencoded")
        #expect(call.header("User-Agent") == "Nextcloud Server Crawler")
        #expect(call.text.hasPrefix("notifications%5B0%5D=%7B%22deviceIdentifier%22%3A%22"))
        #expect(call.text.contains("%22%7D&notifications%5B1%5D=%7B%22"))
        #expect(!call.text.contains("/") && !call.text.contains(" "))
        let form = try call.form
        #expect(form.fields.map(\.name) == ["notifications[0]", "notifications[1]"])
        for (index, row) in rows.enumerated() {
            let text = String(decoding: form.fields[index].value, as: UTF8.self)
            let json = try JSONValue.parse(Array(text.utf8))
            #expect(
                json.object?.names == [
                    "deviceIdentifier", "pushTokenHash", "subject", "signature", "priority", "type"
                ])
            #expect(json["deviceIdentifier"]?.string == row.deviceIdentifier)
            #expect(json["pushTokenHash"]?.string == row.pushTokenHash)
            #expect(json["priority"]?.string == "high" && json["type"]?.string == "alert")
            #expect(text.replacing("\\/", with: "").contains("/") == false)
        }
        #expect((1_100...1_300).contains(call.body.count / 2))
    }

    @Test("A proxy that wants a subscription key gets it, and no other proxy does")
    func subscriptionKeys() throws {
        let ends = try Ends()
        var random = SeededRandom(seed: 3)
        let key = NextcloudOrigin.inventSubscriptionKey(using: &random)
        let text = key.reveal { String(decoding: $0, as: UTF8.self) }
        #expect(text.wholeMatch(of: #/([A-Z0-9]{5}-){4}[A-Z0-9]{5}/#) != nil)
        let origin = NextcloudOrigin(NextcloudOrigin.Settings(subscriptionKeys: [Ends.proxy: key]))
        #expect(origin.call([ends.entry("a")]).header("X-Nextcloud-Subscription-Key") == text)
        let other = ends.entry("a", proxy: "https://other.example.com")
        #expect(origin.call([other]).header("X-Nextcloud-Subscription-Key") == nil)
    }

    // MARK: what comes back

    @Test("A proxy's unknown devices are deleted only if they are its own and have not registered anew")
    func unknown() throws {
        let ends = try Ends()
        let rows = [
            ends.row(1, hash: "h1"), ends.row(2, hash: "h2"), ends.row(3, proxy: "https://other.example.com"),
            ends.row(4, hash: "h4")
        ]
        let sent = try origin.notify(
            Ends.chat(), to: ends.everybody([rows[0], rows[1]]), of: ends.user
        ).entries
        let names = rows.map { #""\#($0.deviceIdentifier.replacing("/", with: "\\/"))""# }
        let body = #"{"unknown":[\#(names.joined(separator: ","))],"failed":2}"#
        var now = rows
        now[1].pushTokenHash = "newer"
        let verdict = ProxyVerdict(CallAnswer(200, body), to: sent, rows: now)
        #expect(verdict.outcome == .partlyFailed)
        // The last was not in this call: a proxy tells late which tokens a push service has refused.
        #expect(verdict.deletes == [1, 4])
        #expect(ProxyVerdict(CallAnswer(503, body), to: sent, rows: rows).deletes.isEmpty)
        #expect(ProxyVerdict(.none, to: sent, rows: rows).outcome == .unreachable)
        for length in 0..<body.utf8.count {
            let cut = ProxyVerdict(CallAnswer(200, String(body.prefix(length))), to: sent, rows: rows)
            #expect(cut.outcome == .outdatedProxy && cut.deletes.isEmpty, "length \(length)")
        }
    }

    @Test("Of lists that a proxy gives twice the last counts, and what is no identifier is passed over")
    func oddLists() throws {
        let row = try Ends().row()
        let sent = [
            SealedEntry(
                row, SealedSubject(subject: Secret([]), signature: Secret([])), .withdrawal)
        ]
        let id = row.deviceIdentifier
        let rows: [(list: String, deletes: [Int64])] = [
            (#""unknown":["\#(id)"],"unknown":null"#, []), (#""unknown":null,"unknown":["\#(id)"]"#, [41]),
            (#""unknown":[0,null,[["\#(id)"]],{"\#(id)":1},"","\#(id)"]"#, [41]),
            (#""unknown":["\#(id.replacing("=", with: #"\u003d"#))"]"#, [41]), (#""unknown":"\#(id)""#, []),
            (#""unknown":["\#(id)\#(id)"]"#, [])
        ]
        for (list, deletes) in rows {
            let answer = CallAnswer(200, "{\(list),\"failed\":1}")
            let verdict = ProxyVerdict(answer, to: sent, rows: [row])
            #expect(verdict.outcome == .partlyFailed && verdict.deletes == deletes, "\(list)")
        }
        let deep = String(repeating: "[", count: 200_000)
        #expect(
            ProxyVerdict(CallAnswer(200, #"{"unknown":\#(deep)"#), to: sent, rows: [row]).outcome
                == .outdatedProxy)
    }

    @Test("Only the integer 0 means that nothing failed")
    func failed() throws {
        let sent = [try Ends().entry("a")]
        for (text, outcome) in [
            ("0", ProxyVerdict.Outcome.sent), ("1", .partlyFailed), (#""0""#, .partlyFailed),
            ("null", .partlyFailed), ("0.0", .partlyFailed)
        ] {
            let answer = CallAnswer(200, #"{"unknown":null,"failed":\#(text)}"#)
            #expect(ProxyVerdict(answer, to: sent, rows: []).outcome == outcome, "\(text)")
        }
        #expect(
            ProxyVerdict(CallAnswer(200, #"{"unknown":[]}"#), to: sent, rows: []).outcome
                == .outdatedProxy)
    }
}

/// The same answer with another status.
private enum JSONProbe {
    static func with(_ answer: OCSAnswer, statusOf status: Int) -> [UInt8] {
        let text = answer.body(.v2, .json).reveal { String(decoding: $0, as: UTF8.self) }
        return Array(text.replacing(#""statuscode":201"#, with: #""statuscode":\#(status)"#).utf8)
    }
}
