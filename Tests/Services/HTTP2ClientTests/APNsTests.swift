@testable import APNs
@testable import HTTP2Client
import PushModel
import PushTesting
import Testing
import WireFormats

private let now = UnixTime(seconds: 1_800_000_000)

@Suite("What an answer of APNs means", .timeLimit(.minutes(30)))
struct APNsOutcomeTests {
    typealias Row = (status: Int, reason: String, outcome: Outcome, cure: APNsOutcomeTable.Cure)

    /// docs/push-services.md §2.5, row by row.
    static let rows: [Row] = [
        (400, "BadDeviceToken", .unregistered(since: nil), .none),
        (400, "DeviceTokenNotForTopic", .misconfigured(.target), .none),
        (400, "BadCollapseId", .rejected, .none), (400, "BadExpirationDate", .rejected, .none),
        (400, "BadMessageId", .rejected, .none), (400, "BadPriority", .rejected, .none),
        (400, "BadTopic", .rejected, .none), (400, "DuplicateHeaders", .rejected, .none),
        (400, "InvalidPushType", .rejected, .none), (400, "MissingDeviceToken", .rejected, .none),
        (400, "PayloadEmpty", .rejected, .none),
        (400, "MissingTopic", .misconfigured(.target), .none),
        (400, "TopicDisallowed", .misconfigured(.target), .none),
        (400, "IdleTimeout", .retry(after: nil), .replaceConnection),
        (403, "ExpiredProviderToken", .retry(after: nil), .renewToken),
        (403, "InvalidProviderToken", .misconfigured(.credential), .none),
        (403, "MissingProviderToken", .misconfigured(.credential), .none),
        (403, "Forbidden", .misconfigured(.credential), .none),
        (403, "BadCertificate", .misconfigured(.credential), .none),
        (403, "BadCertificateEnvironment", .misconfigured(.credential), .none),
        (403, "BadEnvironmentKeyInToken", .misconfigured(.credential), .none),
        (403, "BadEnvironmentKeyIdInToken", .misconfigured(.credential), .none),
        (403, "UnrelatedKeyIdInToken", .retry(after: nil), .replaceConnection),
        (404, "BadPath", .rejected, .none), (405, "MethodNotAllowed", .rejected, .none),
        (410, "Unregistered", .unregistered(since: UnixTime(milliseconds: 1_700_000_000_123)), .none),
        (410, "ExpiredToken", .unregistered(since: UnixTime(milliseconds: 1_700_000_000_123)), .none),
        (413, "PayloadTooLarge", .rejected, .none),
        (429, "TooManyRequests", .retry(after: nil), .none),
        (429, "TooManyProviderTokenUpdates", .retry(after: nil), .replaceConnection),
        (500, "InternalServerError", .retry(after: nil), .none),
        (503, "ServiceUnavailable", .retry(after: nil), .none),
        (503, "Shutdown", .retry(after: nil), .replaceConnection)
    ]

    private func judge(_ status: Int, _ body: String, retryAfter: String = "") -> APNsOutcomeTable.Reading {
        APNsOutcomeTable.judge(
            status: status, body: Array(body.utf8), retryAfter: Array(retryAfter.utf8), now: now)
    }

    @Test("Every documented pair of status and reason", arguments: rows)
    func documented(_ row: Row) {
        let verdict = judge(row.status, "{\"reason\":\"\(row.reason)\",\"timestamp\":1700000000123}")
        #expect(verdict.outcome == row.outcome)
        #expect(verdict.reason.rawValue == row.reason)
        #expect(verdict.cure == row.cure)
    }

    @Test("200 is accepted, whatever stands in the body")
    func accepted() {
        #expect(judge(200, "x") == judge(200, "")); #expect(judge(200, "").outcome == .accepted)
    }

    @Test(
        "A reason that nobody has told us is Apple's word all the same, and is judged by its status",
        arguments: [
            (400, Outcome.rejected), (403, .misconfigured(.credential)), (404, .rejected), (410, .rejected),
            (429, .retry(after: nil)), (500, .retry(after: nil)), (502, .retry(after: nil)),
            (301, .retry(after: nil))
        ])
    func novel(status: Int, outcome: Outcome) {
        #expect(judge(status, "{\"reason\":\"Novel\"}").outcome == outcome)
        #expect(judge(status, "{\"reason\":\"Novel\"}").reason == .unknown)
    }

    @Test(
        "Other people's pages, half bodies and empty ones are nobody's last word, and blame no credential",
        arguments: [400, 401, 403, 404, 405, 410, 413, 418, 429, 451, 500, 502, 301])
    func unreadable(status: Int) {
        for body in ["", "<html>", "{\"reason\":7}", "[]", "{\"reason\":\"BadDevice", "{\"error\":\"x\"}"] {
            #expect(judge(status, body).outcome == .retry(after: nil), "\(status) \(body)")
        }
    }

    @Test(
        "A body that is not in Apple's form is not its word about the credential, nor about a path",
        arguments: [401, 403, 404, 407])
    func foreign(status: Int) {
        for body in ["", "<html>", "{\"reason\":7}", "[]", "{}", "{\"error\":\"denied\"}"] {
            let verdict = judge(status, body, retryAfter: "7")
            #expect(verdict.outcome == .retry(after: .seconds(7)) && verdict.reason == .foreignAnswer)
            #expect(verdict.fate == .unprocessed && verdict.cure == .none)
        }
    }

    @Test("A reason with another status than its own ends no registration")
    func mismatched() {
        #expect(judge(502, "{\"reason\":\"Unregistered\"}").outcome == .retry(after: nil))
        #expect(judge(500, "{\"reason\":\"BadDeviceToken\"}").outcome == .retry(after: nil))
    }

    @Test("410 without a time counts as of now: the table invents none")
    func untimed() {
        #expect(judge(410, "{\"reason\":\"Unregistered\"}").outcome == .unregistered(since: nil))
    }

    @Test("Retry-After is a floor, in seconds or as a date")
    func retryAfter() {
        #expect(
            judge(429, "{\"reason\":\"TooManyRequests\"}", retryAfter: "7").outcome
                == .retry(after: .seconds(7)))
        // 2027-01-15T08:00:00Z is 1,800,000,000.
        let date = judge(503, "", retryAfter: "Fri, 15 Jan 2027 08:00:30 GMT")
        #expect(date.outcome == .retry(after: .seconds(30)))
    }
}

@Suite("Requests to APNs", .timeLimit(.minutes(30)))
struct APNsRequestTests {
    private func message(
        token: String = "00aaBBcc", bundle: String = "org.acme.chat", type: APNsPushType = .alert,
        priority: UInt8 = 10,
        expiration: UnixTime? = nil, collapse: String? = nil, bytes: Int = 20
    ) -> APNsMessage {
        APNsMessage(
            token: Secret(Array(token.utf8)), bundle: bundle, pushType: type, priority: priority,
            expiration: expiration, collapseID: collapse.map { Secret(Array($0.utf8)) },
            payload: Secret([UInt8](repeating: 0x7B, count: bytes)))
    }

    private let id = PushID(text: "01890a5d-ac96-774b-bcce-b302099a8057")!
    private let authorization = HTTP2Authorization(scheme: "bearer", token: Secret(Array("t".utf8)))

    private func fields(_ request: HTTP2Request) -> [String: String] {
        var fields: [String: String] = [:]
        var at = 0
        func text(_ start: UnsafeMutablePointer<UInt8>?, _ count: Int) -> String {
            String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
        }
        for slice in request.template.pseudo + request.template.fixed {
            fields[text(slice.name, slice.nameCount)] = text(slice.value, slice.valueCount)
        }
        for (position, varying) in request.template.varying.enumerated() {
            let count = Int(request.head.lengths[position])
            if count > 0 {
                fields[text(varying.name, varying.nameCount)] = text(
                    request.head.start + at, count)
            }
            at += count
        }
        return fields
    }

    @Test("All fields, in the words of the sheet")
    func fieldsOfARequest() throws {
        let request = try APNsRequest(authority: "api.push.apple.com").request(
            for: message(expiration: UnixTime(seconds: 1_800_000_060), collapse: "c-1"), id: id,
            authorization: authorization)
        #expect(
            fields(request) == [
                ":method": "POST", ":scheme": "https", ":authority": "api.push.apple.com",
                ":path": "/3/device/00aaBBcc", "apns-topic": "org.acme.chat", "apns-push-type": "alert",
                "apns-priority": "10", "apns-id": "01890a5d-ac96-774b-bcce-b302099a8057",
                "apns-expiration": "1800000060", "apns-collapse-id": "c-1"
            ])
    }

    @Test(
        "A topic that a client named goes out as it stands, whatever the push type",
        arguments: APNsPushType.allCases)
    func namedTopic(type: APNsPushType) throws {
        let requests = APNsRequest(authority: "api.push.apple.com")
        var message = message(bundle: "org.acme.chat", type: type, priority: 5)
        message.topicForm = .asNamed
        let named = try requests.request(for: message, id: id, authorization: authorization)
        #expect(fields(named)["apns-topic"] == "org.acme.chat")
        // The same app's pushes of the other form are not mixed up with it.
        message.topicForm = .suffixedByType
        let suffixed = try requests.request(for: message, id: id, authorization: authorization)
        #expect(fields(suffixed)["apns-topic"] == "org.acme.chat" + type.topicSuffix)
    }

    @Test("Neither expiration nor collapse id unless the message has one; 0 is one")
    func absent() throws {
        let requests = APNsRequest(authority: "a")
        let plain = fields(try requests.request(for: message(), id: id, authorization: authorization))
        #expect(plain["apns-expiration"] == nil && plain["apns-collapse-id"] == nil)
        let once = try requests.request(
            for: message(expiration: UnixTime(seconds: 0)), id: id, authorization: authorization)
        #expect(fields(once)["apns-expiration"] == "0")
    }

    @Test(
        "The topic is the bundle and the type's suffix",
        arguments: [
            (APNsPushType.alert, ""), (.background, ""), (.voip, ".voip"), (.complication, ".complication"),
            (.fileprovider, ".pushkit.fileprovider"), (.location, ".location-query"),
            (.liveactivity, ".push-type.liveactivity"), (.pushtotalk, ".voip-ptt"),
            (.widgets, ".push-type.widgets"),
            (.controls, ".push-type.controls")
        ])
    func topic(type: APNsPushType, suffix: String) throws {
        let request = try APNsRequest(authority: "a").request(
            for: message(type: type, priority: 5), id: id, authorization: authorization)
        #expect(fields(request)["apns-topic"] == "org.acme.chat" + suffix)
        #expect(fields(request)["apns-push-type"] == type.rawValue)
    }

    @Test(
        "Bodies up to the limit are sent, larger ones refused",
        arguments: [
            (APNsPushType.alert, 4096, true), (.alert, 4097, false), (.voip, 5120, true),
            (.voip, 5121, false),
            (.alert, 0, false)
        ])
    func sizes(type: APNsPushType, bytes: Int, fits: Bool) {
        let request = try? APNsRequest(authority: "a").request(
            for: message(type: type, bytes: bytes), id: id, authorization: authorization)
        #expect((request != nil) == fits)
    }

    @Test(
        "What Apple would refuse without doubt is not sent",
        arguments: [
            ("", "org.acme.chat", UInt8(10), APNsRequest.Refusal.badDeviceToken),
            ("0", "org.acme.chat", 10, .badDeviceToken),
            ("zz", "org.acme.chat", 10, .badDeviceToken), ("00/../00", "org.acme.chat", 10, .badDeviceToken),
            (String(repeating: "a", count: 202), "org.acme.chat", 10, .badDeviceToken),
            ("00", "", 10, .badTopic), ("00", "a\r\nb", 10, .badTopic),
            ("00", "org.acme.chat", 7, .badPriority)
        ])
    func refused(token: String, bundle: String, priority: UInt8, refusal: APNsRequest.Refusal) {
        #expect(throws: refusal) {
            try APNsRequest(authority: "a").request(
                for: message(token: token, bundle: bundle, priority: priority), id: id,
                authorization: authorization)
        }
    }

    @Test("A background push at priority 10 and a collapse id over 64 bytes are refused")
    func refusedToo() {
        let requests = APNsRequest(authority: "a")
        #expect(throws: APNsRequest.Refusal.badPriority) {
            try requests.request(for: message(type: .background), id: id, authorization: authorization)
        }
        #expect(throws: APNsRequest.Refusal.badCollapseID) {
            try requests.request(
                for: message(collapse: String(repeating: "c", count: 65)), id: id,
                authorization: authorization)
        }
    }
}

@Suite("The provider token", .timeLimit(.minutes(30)))
struct APNsCredentialTests {
    private func text(_ token: APNsToken) -> String {
        String(decoding: token.authorization.bytes, as: UTF8.self)
    }

    @Test("It is the JWT that Apple asks for, signed with the key, as openssl finds too")
    func signature() async throws {
        let key = try OpenSSL.KeyPair.p256()
        let clock = ManualClock(start: now)
        let credential = try APNsCredential(
            team: "A1B2C3D4E5", keyID: "F6G7H8I9J0", key: Secret(key.privatePEM), world: clock.world(seed: 1))
        let value = text(await credential.token())
        #expect(value.hasPrefix("bearer "))
        let token = try OpenSSL.Token(String(value.dropFirst(7)))
        #expect(token.header == ["alg": "ES256", "kid": "F6G7H8I9J0"].asJSON)
        #expect(token.claims["iss"]?.string == "A1B2C3D4E5")
        let issued = try #require(token.claims["iat"]?.int64)
        #expect((now.seconds - 60..<now.seconds).contains(issued))
        #expect(token.signature.count == 64)
        try OpenSSL.verify(OpenSSL.der(token.signature), over: token.input, by: key)
        #expect(throws: (any Error).self) {
            try OpenSSL.verify(OpenSSL.der(token.signature), over: token.input + [0], by: key)
        }
    }

    @Test("One token serves for 50 minutes, then another")
    func renewal() async throws {
        let clock = ManualClock(start: now)
        let credential = try credential(clock)
        let first = await credential.token()
        clock.advance(by: .seconds(50 * 60 - 1))
        #expect(await credential.token().serial == first.serial)
        clock.advance(by: .seconds(1))
        let second = await credential.token()
        #expect(second.serial == first.serial + 1)
        #expect(text(second) != text(first))
    }

    @Test("A hundred callers at once get one token")
    func singleFlight() async throws {
        let credential = try credential(ManualClock(start: now))
        let serials = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<100 { group.addTask { await credential.token().serial } }
            return await group.reduce(into: Set<Int>()) { $0.insert($1) }
        }
        #expect(serials == [1])
    }

    @Test("Called expired, a token of 20 minutes is replaced once; a younger one is not: our clock is wrong")
    func expired() async throws {
        let clock = ManualClock(start: now)
        let credential = try credential(clock)
        let first = await credential.token()
        clock.advance(by: .seconds(20 * 60 - 1))
        #expect(await !credential.expired(first))
        #expect(await credential.token().serial == 1)
        clock.advance(by: .seconds(1))
        #expect(await credential.expired(first))
        // Others that were sent with the old one find the new one there.
        #expect(await credential.expired(first))
        #expect(await credential.token().serial == 2)
        #expect(await !credential.expired(credential.token()))
    }

    @Test("A clock that was set, forth or back, gets a token of the right date, once a minute at most")
    func clockSet() async throws {
        let clock = ManualClock(start: now)
        let credential = try credential(clock)
        for (number, jump) in [Duration.seconds(86_400), .seconds(-90_000), .seconds(61)].enumerated() {
            #expect(await credential.token().serial == number + 1)
            clock.skewWall(by: jump)
            if number > 0 {
                clock.advance(by: .seconds(59))
                #expect(await credential.token().serial == number + 1)
                clock.advance(by: .seconds(1))
            }
            let token = try OpenSSL.Token(String(text(await credential.token()).dropFirst(7)))
            let issued = try #require(token.claims["iat"]?.int64)
            #expect((clock.now.seconds - 60..<clock.now.seconds).contains(issued))
        }
        // What a time server does all day is no setting.
        clock.skewWall(by: .seconds(30))
        clock.advance(by: .seconds(120))
        #expect(await credential.token().serial == 4)
    }

    @Test(
        "Broken keys and ids are refused without their bytes",
        arguments: ["", "A1B2C3D4E", "a1b2c3d4e5", "A1B2C3D4E5F"])
    func refused(team: String) {
        #expect(throws: APNsError(.badIdentifier)) {
            try APNsCredential(team: team, keyID: "F6G7H8I9J0", key: Secret([1]), world: .live)
        }
        let garbage = "-----BEGIN PRIVATE KEY-----\nTUlHSEFnRUFNQk1H\n-----END PRIVATE KEY-----\n"
        for text in ["", "canary", garbage, String(garbage.dropLast(30))] {
            #expect(throws: APNsError(.badSigningKey)) {
                try APNsCredential(
                    team: "A1B2C3D4E5", keyID: "F6G7H8I9J0", key: Secret(Array(text.utf8)), world: .live)
            }
        }
    }

    private func credential(_ clock: ManualClock) throws -> APNsCredential {
        let key = try OpenSSL.KeyPair.p256()
        return try APNsCredential(
            team: "A1B2C3D4E5", keyID: "F6G7H8I9J0", key: Secret(key.privatePEM), world: clock.world(seed: 1))
    }
}

extension [String: String] {
    /// The object with these text members.
    fileprivate var asJSON: JSONValue {
        var object = JSONObject()
        for (name, value) in self { object[name] = .string(value) }
        return .object(object)
    }
}
