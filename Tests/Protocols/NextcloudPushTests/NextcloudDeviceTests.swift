import NextcloudPush
import PushModel
import PushTesting
import RSAKeys
import Testing
import WireFormats

/// How a device registers at server and proxy (§3), and what it makes of their answers.
@Suite("Nextcloud device", .timeLimit(.minutes(30)))
struct NextcloudDeviceTests {
    private static let capabilities = Secret(
        (#"{"ocs":{"meta":{},"data":{"capabilities":{"notifications":{"ocs-endpoints":["list","test-push"],"#
            + #""push":["devices","object-data","delete"]}}}}}"#).utf8)

    private let ends: Ends
    private let server: NextcloudCapabilities
    private let token: NextcloudPushToken
    private var random = SeededRandom(seed: 4)

    init() throws {
        ends = try Ends()
        server = try NextcloudCapabilities(Self.capabilities)
        token = try NextcloudPushToken(Secret(Ends.token.utf8))
    }

    private func fresh() -> NextcloudRoutine {
        NextcloudRoutine(account: ends.account, app: Ends.app, key: ends.deviceKey)
    }

    /// What a server says to a registration.
    private func answer(_ status: Int = 201, key: RSAPrivateKey? = nil) throws -> CallAnswer {
        let user = NextcloudUser(cloudID: ends.user.cloudID, key: key ?? ends.user.key)
        let rows = status == 201 ? [] : [try #require(try register(user, rows: []).row)]
        let body = try register(user, rows: rows).answer.body(.v2, .json)
        return CallAnswer(status: status, body: body)
    }

    private func register(_ user: NextcloudUser, rows: [RegisteredDevice]) throws -> RegistrationVerdict {
        try NextcloudOrigin().register(
            ends.registration(), by: NextcloudSession(user: user, tokenID: 41), userAgent: "", rows: rows)
    }

    private func call(_ step: NextcloudRoutine.Step) throws -> HTTPCall {
        guard case .call(let call) = step else {
            Issue.record("a call, not \(step)")
            throw NextcloudError(.malformedAnswer)
        }
        return call
    }

    private func fault(_ step: NextcloudRoutine.Step) -> NextcloudError.Code? {
        if case .failed(let error) = step { error.code } else { nil }
    }

    /// A device that has heard from its server.
    private mutating func atProxy() throws -> NextcloudRoutine {
        var device = fresh()
        _ = try device.register(token, at: server, now: Ends.now)
        _ = device.settle(try answer(), now: Ends.now, using: &random)
        return device
    }

    // MARK: capabilities

    @Test("A device reads what the server can do before it registers")
    func reads() throws {
        #expect(server.takesDevices && server.withdraws && server.hasSelfTest)
        let call = fresh().capabilities()
        #expect(call.method == "GET")
        #expect(call.url == "https://cloud.example.org/ocs/v2.php/cloud/capabilities?format=json")
        #expect(fresh().selfTest().url.hasSuffix("/api/v3/test/self?format=json"))
        for text in [
            #"{"ocs":{"data":{"capabilities":{}}}}"#,
            #"{"ocs":{"data":{"capabilities":{"notifications":{"push":["webpush"]}}}}}"#,
            #"{"ocs":{"data":{"capabilities":{"notifications":{"push":"devices"}}}}}"#
        ] {
            let poor = try NextcloudCapabilities(Secret(text.utf8))
            #expect(!poor.takesDevices && !poor.hasSelfTest)
            var device = fresh()
            #expect(throws: NextcloudError(.unsupportedServer)) {
                try device.register(token, at: poor, now: Ends.now)
            }
        }
    }

    @Test("Capabilities that are cut at any length are none")
    func cutCapabilities() {
        for length in 0..<Self.capabilities.count {
            let cut = Self.capabilities.reveal { Secret($0[..<length]) }
            #expect(throws: NextcloudError(.malformedAnswer), "length \(length)") {
                try NextcloudCapabilities(cut)
            }
        }
    }

    @Test("A token that no proxy takes is refused on the phone")
    func tokens() throws {
        for text in ["", "a\n", "a\u{7F}", "ü", String(repeating: "a", count: 4_097)] {
            #expect(throws: NextcloudError(.invalidPushToken)) { try NextcloudPushToken(Secret(text.utf8)) }
        }
        _ = try NextcloudPushToken(Secret(String(repeating: "a", count: 4_096).utf8))
    }

    // MARK: registering

    @Test("The server is told hash, key and proxy with the app password, as a form or as JSON")
    func atServer() throws {
        var device = fresh()
        let form = try call(device.register(token, at: server, now: Ends.now))
        #expect(form.method == "POST")
        #expect(
            form.url
                == "https://cloud.example.org/ocs/v2.php/apps/notifications/api/v2/push?format=json")
        #expect(form.header("OCS-APIRequest") == "true")
        #expect(form.header("Accept") == "application/json")
        #expect(form.header("User-Agent") == "Mozilla/5.0 (iOS) Nextcloud-Talk v20.1.0")
        let basic = Base64.text(Array("alice@example.org:aaaaa-bbbbb".utf8))
        #expect(form.header("Authorization") == "Basic " + basic)
        #expect(form.header("Content-Type") == "application/x-www-form-urlencoded")
        let fields = try form.form
        #expect(fields.fields.map(\.name) == ["pushTokenHash", "devicePublicKey", "proxyServer"])
        #expect(fields.text("pushTokenHash") == token.hash)
        #expect(fields.text("devicePublicKey") == ends.deviceKey.publicKey.pem)
        #expect(fields.text("proxyServer") == "https://push.example.com/")
        let json = try call(device.register(token, at: server, format: .json, now: Ends.now))
        #expect(json.header("Content-Type") == "application/json")
        let members = try json.body.reveal { try JSONValue.parse($0) }
        #expect(members["devicePublicKey"]?.string == ends.deviceKey.publicKey.pem)
        #expect(members.object?.count == 3)
        // The token itself stays with the phone and the proxy.
        #expect(!form.text.contains(Ends.token.prefix(20)) && !json.text.contains(Ends.token.prefix(20)))
    }

    @Test(
        "After 200 as after 201 the proxy is told, with the very words of the server", arguments: [200, 201])
    mutating func atProxy(_ status: Int) throws {
        var device = fresh()
        _ = try device.register(token, at: server, now: Ends.now)
        let proxy = try call(device.settle(try answer(status), now: Ends.now, using: &random))
        #expect(proxy.method == "POST" && proxy.url == "https://push.example.com/devices")
        #expect(proxy.header("User-Agent") == "Mozilla/5.0 (iOS) Nextcloud-Talk v20.1.0 (Strict VoIP)")
        #expect(proxy.header("Authorization") == nil)
        let fields = try proxy.form
        #expect(
            fields.fields.map(\.name) == [
                "pushToken", "deviceIdentifier", "deviceIdentifierSignature", "userPublicKey"
            ])
        let identity = ends.user.identity(tokenID: 41)
        #expect(fields.text("pushToken") == Ends.token)
        #expect(fields.text("deviceIdentifier") == identity.deviceIdentifier)
        #expect(fields.text("deviceIdentifierSignature") == (try identity.signature(by: ends.user.key)))
        #expect(fields.text("userPublicKey") == ends.user.key.publicKey.pem)
        #expect(device.registration?.completedAt == nil)
        guard case .done = device.settle(CallAnswer(200), now: Ends.now, using: &random) else {
            Issue.record("done")
            return
        }
        #expect(device.registration?.completedAt == Ends.now)
    }

    @Test("A conflict is answered once with the cloud id; a second one waits, and a refused proof ends it")
    mutating func conflict() throws {
        var device = try atProxy()
        let again = try call(device.settle(CallAnswer(409), now: Ends.now, using: &random))
        #expect(try again.form.text("cloudId") == "alice@cloud.example.org")
        #expect(try again.form.fields.count == 5)
        var other = device
        #expect(fault(other.settle(CallAnswer(403), now: Ends.now, using: &random)) == .identityRefused)
        guard case .later(let time) = device.settle(CallAnswer(409), now: Ends.now, using: &random)
        else {
            Issue.record("later")
            return
        }
        #expect(time > Ends.now)
        #expect(device.trouble == NextcloudError(.instanceUnreachable))
        #expect(device.registration?.completedAt == nil)
        // The whole way again, from the server on.
        #expect(try call(device.register(token, at: server, now: time)).url.contains("/ocs/v2.php/"))
    }

    @Test(
        "A proof that does not come is asked for less and less often, up to once a day, and the cause is said"
    )
    mutating func unproven() throws {
        var device = fresh()
        var now = Ends.now
        for round in 0..<12 {
            _ = try device.register(token, at: server, now: now)
            _ = device.settle(try answer(), now: now, using: &random)
            _ = device.settle(CallAnswer(409), now: now, using: &random)
            guard case .later(let time) = device.settle(CallAnswer(409), now: now, using: &random)
            else {
                Issue.record("later")
                return
            }
            let whole = min(Duration.seconds(86_400), .seconds(300 << round))
            #expect(time.since(now) <= whole && time.since(now) >= whole / 2, "round \(round)")
            #expect(device.trouble == NextcloudError(.instanceUnreachable))
            now = time
        }
        _ = try device.register(token, at: server, now: now)
        _ = device.settle(try answer(), now: now, using: &random)
        guard case .done = device.settle(CallAnswer(200), now: now, using: &random) else {
            Issue.record("done")
            return
        }
        #expect(device.trouble == nil)
    }

    @Test(
        "Which 403 it is, the relay says by its code",
        arguments: [NextcloudError.Code.instanceUnfit, .instanceNotAdmitted, .identityRefused])
    mutating func refusedProof(_ code: NextcloudError.Code) throws {
        var device = try atProxy()
        _ = try call(device.settle(CallAnswer(409), now: Ends.now, using: &random))
        let body = String(decoding: NextcloudErrorAnswer(NextcloudError(code)).body, as: UTF8.self)
        #expect(fault(device.settle(CallAnswer(403, body), now: Ends.now, using: &random)) == code)
        #expect(device.trouble == NextcloudError(code))
    }

    @Test(
        "What a server refuses is told by its word, and is not tried again",
        arguments: [
            (401, "", NextcloudError.Code.notLoggedIn), (400, "INVALID_PUSHTOKEN_HASH", .invalidTokenHash),
            (400, "INVALID_DEVICE_KEY", .invalidDeviceKey),
            (400, "INVALID_PROXY_SERVER", .invalidProxyServer),
            (400, "INVALID_SESSION_TOKEN", .invalidSessionToken), (400, "NEW_WORD", .refusedByServer),
            (404, "", .refusedByServer), (302, "", .refusedByServer), (200, "", .malformedAnswer)
        ])
    mutating func refusals(_ status: Int, _ word: String, _ code: NextcloudError.Code) throws {
        var device = fresh()
        _ = try device.register(token, at: server, now: Ends.now)
        let body = word.isEmpty ? "" : #"{"ocs":{"data":{"message":"\#(word)"}}}"#
        #expect(fault(device.settle(CallAnswer(status, body), now: Ends.now, using: &random)) == code)
        #expect(device.registration == nil)
        // Nothing is under way any more.
        #expect(
            fault(device.settle(CallAnswer(200), now: Ends.now, using: &random)) == .malformedAnswer)
    }

    @Test("A proxy that refuses ends it; one that is away is asked again, later each time")
    mutating func proxyRefuses() throws {
        for status in [400, 404, 413, 301] {
            var device = try atProxy()
            let step = device.settle(CallAnswer(status), now: Ends.now, using: &random)
            #expect(fault(step) == .refusedByProxy, "\(status)")
        }
        var device = fresh()
        var now = Ends.now
        for round in 0..<11 {
            _ = try device.register(token, at: server, now: now)
            let answer =
                round == 10
                ? CallAnswer(503, "", retryAfter: "7200") : round == 4 ? CallAnswer(500) : .none
            guard case .later(let time) = device.settle(answer, now: now, using: &random) else {
                Issue.record("later")
                return
            }
            let whole = min(Duration.seconds(300), .seconds(1 << round))
            if round < 10 { #expect(time.since(now) <= whole && time.since(now) >= whole / 2) }
            if round == 10 { #expect(time.since(now) == .seconds(7_200)) }
            now = time
        }
    }

    @Test("An answer of the server that is cut at any length, or proves nothing, is not passed on")
    mutating func malformed() throws {
        let whole = try answer().body
        for length in 0..<whole.count {
            var device = fresh()
            _ = try device.register(token, at: server, now: Ends.now)
            let cut = CallAnswer(status: 201, body: whole.reveal { Secret($0[..<length]) })
            #expect(
                fault(device.settle(cut, now: Ends.now, using: &random)) == .malformedAnswer,
                "length \(length)")
        }
        // Another key than the one that has signed.
        let text = whole.reveal { String(decoding: $0, as: UTF8.self) }
        let escaped = { (pem: String) in pem.replacing("/", with: "\\/").replacing("\n", with: "\\n") }
        let forged = text.replacing(
            escaped(ends.user.key.publicKey.pem), with: escaped(ends.otherKey.publicKey.pem))
        #expect(forged != text)
        var device = fresh()
        _ = try device.register(token, at: server, now: Ends.now)
        #expect(
            fault(device.settle(CallAnswer(201, forged), now: Ends.now, using: &random))
                == .malformedAnswer)
    }

    // MARK: registering again

    @Test("Nothing is sent for a day where nothing has changed, and everything where something has")
    func due() throws {
        let day = Duration.seconds(86_400)
        func isSent(
            _ device: NextcloudRoutine, _ text: String = Ends.token,
            _ occasion: NextcloudRoutine.Occasion = .start, after span: Duration = .seconds(60)
        ) throws -> Bool {
            var device = device
            let token = try NextcloudPushToken(Secret(text.utf8))
            let step = try device.register(token, at: server, occasion, now: Ends.now + span)
            if case .call = step { return true }
            return false
        }
        let settled = try ends.device()
        #expect(try !isSent(settled))
        #expect(try !isSent(settled, after: day - .seconds(1)))
        #expect(try isSent(settled, after: day))
        #expect(try isSent(settled, Ends.token, .repair))
        #expect(try isSent(settled, "another token"))
        // With another key of the device nothing that arrives would open.
        #expect(try isSent(try ends.device(key: ends.otherKey)))
        // A clock that was set back must not put it off for years.
        #expect(try isSent(settled, after: .zero - day))
        let moved = NextcloudAppBuild(proxyServer: "https://new.example.com", userAgent: "")
        #expect(try isSent(try ends.device(app: moved)))
        #expect(try isSent(try ends.device(completedAt: nil)))
    }

    // MARK: receiving

    @Test("A push is opened by the account whose user has signed it")
    func accounts() throws {
        let devices = [
            try ends.device(userKey: ends.otherKey), fresh(), try ends.device(),
            try ends.device(key: ends.otherKey)
        ]
        let sealed = try ends.sealed(Array(#"{"nid":5,"delete":true}"#.utf8))
        let delivered = try ends.delivered(sealed)
        let kits = try devices.map { try NextcloudDevice(ends.login, $0) }
        let opened = try NextcloudDevice.open(delivered, among: kits, at: Ends.now)
        #expect(opened.place == 2 && opened.opened.content == .withdrawal([5]))
        // Another phone's key first: the search goes on.
        let found = try NextcloudDevice.open(delivered, among: kits.reversed(), at: Ends.now)
        #expect(found.place == 1)
        #expect(throws: DeviceError(.foreign)) {
            try NextcloudDevice.open(delivered, among: Array(kits[..<2]), at: Ends.now)
        }
        #expect(throws: DeviceError(.doesNotOpen)) {
            try NextcloudDevice.open(delivered, among: [kits[0], kits[3]], at: Ends.now)
        }
        #expect(throws: DeviceError(.foreign)) {
            try NextcloudDevice.open(delivered, among: [], at: Ends.now)
        }
    }
}
