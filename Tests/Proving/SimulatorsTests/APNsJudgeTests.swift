import PushModel
import Testing

@testable import Simulators

/// One request in doubt: what differs from a good one, and what APNs says to it.
struct JudgeRow: Sendable, CustomTestStringConvertible {
    var name: String
    var reason: APNsReason?
    var set: [(String, String)] = []
    var drop: [String] = []
    var add: [(String, String)] = []
    var body: [UInt8]?
    var testDescription: String { name }

    init(
        _ name: String, _ reason: APNsReason?, set: [(String, String)] = [], drop: [String] = [],
        add: [(String, String)] = [], body: [UInt8]? = nil
    ) {
        self.name = name
        self.reason = reason
        self.set = set
        self.drop = drop
        self.add = add
        self.body = body
    }
}

@Suite("The judgement of the simulated APNs")
struct APNsJudgeTests {
    static let now = UnixTime(seconds: 1_800_000_000)
    static let key = APNsKey()
    static let live = String(repeating: "0a", count: 32)
    static let removed = String(repeating: "0b", count: 32)
    static let expired = String(repeating: "0c", count: 32)
    static let foreign = String(repeating: "0d", count: 32)

    static func judge(_ keys: [APNsKeyRegistration] = [key.registration(bundles: ["org.acme.chat"])]) throws
        -> APNsJudge
    {
        var tokens = ProviderTokens(environment: .production)
        for key in keys { try tokens.register(key) }
        var devices = APNsDevices(learns: false)
        devices[live] = APNsDevice(topics: ["org.acme.chat"])
        devices[removed] = APNsDevice(
            topics: ["org.acme.chat"], state: .removed(since: UnixTime(milliseconds: 5)))
        devices[expired] = APNsDevice(
            topics: ["org.acme.chat"], state: .expired(since: UnixTime(milliseconds: 6)))
        devices[foreign] = APNsDevice(topics: ["org.acme.other"])
        return APNsJudge(tokens: tokens, devices: devices)
    }

    static func request(_ row: JudgeRow, token: String? = nil) throws -> SimulatedRequest {
        let bearer = try token ?? key.providerToken(issuedAtSeconds: now.seconds - 10)
        var fields = [
            (":method", "POST"), (":scheme", "https"), (":path", "/3/device/" + live),
            ("authorization", "bearer " + bearer), ("apns-topic", "org.acme.chat"),
            ("apns-push-type", "alert")
        ]
        for (name, value) in row.set {
            fields.removeAll { $0.0 == name }
            fields.append((name, value))
        }
        fields.removeAll { row.drop.contains($0.0) }
        return SimulatedRequest(fields + row.add, body: row.body ?? Array(#"{"aps":{}}"#.utf8))
    }

    static func object(bytes: Int) -> [UInt8] {
        Array((#"{"a":""# + String(repeating: "x", count: bytes - 8) + #""}"#).utf8)
    }

    static let rows: [JudgeRow] = [
        JudgeRow("as it should be", nil),
        JudgeRow("apns-topic twice", .duplicateHeaders, add: [("apns-topic", "org.acme.chat")]),
        JudgeRow("authorization twice", .duplicateHeaders, add: [("authorization", "bearer x")]),
        JudgeRow("an unknown apns- field twice", .duplicateHeaders, add: [("apns-x", "1"), ("apns-x", "1")]),
        JudgeRow(
            "twice counts before the method", .duplicateHeaders, set: [(":method", "GET")],
            add: [("apns-topic", "x")]),
        JudgeRow("GET", .methodNotAllowed, set: [(":method", "GET")]),
        JudgeRow(
            "the method counts before the path", .methodNotAllowed, set: [(":method", "GET"), (":path", "/")]),
        JudgeRow("another path", .badPath, set: [(":path", "/3/devices/00")]),
        JudgeRow("no token in the path", .missingDeviceToken, set: [(":path", "/3/device/")]),
        JudgeRow(
            "the path counts before the credential", .badPath, set: [(":path", "/x")], drop: ["authorization"]
        ),
        JudgeRow("no credential", .missingProviderToken, drop: ["authorization"]),
        JudgeRow("another scheme", .invalidProviderToken, set: [("authorization", "basic abc")]),
        JudgeRow("two parts", .invalidProviderToken, set: [("authorization", "bearer a.b")]),
        JudgeRow(
            "the credential counts before the fields", .missingProviderToken, set: [("apns-id", "x")],
            drop: ["authorization"]),
        JudgeRow("apns-id is no UUID", .badMessageId, set: [("apns-id", "x")]),
        JudgeRow(
            "apns-id with capitals", .badMessageId, set: [("apns-id", "01900000-0000-7000-8000-00000000000A")]
        ),
        JudgeRow(
            "apns-id without hyphens", .badMessageId,
            set: [("apns-id", "019000000000700080000000000000000000")]),
        JudgeRow("apns-id as it should be", nil, set: [("apns-id", "01900000-0000-7000-8000-00000000000a")]),
        JudgeRow("unknown push type", .invalidPushType, set: [("apns-push-type", "shout")]),
        JudgeRow("push type left out", nil, drop: ["apns-push-type"]),
        JudgeRow("priority 7", .badPriority, set: [("apns-priority", "7")]),
        JudgeRow("priority ten in words", .badPriority, set: [("apns-priority", "ten")]),
        JudgeRow(
            "background at 10", .badPriority, set: [("apns-push-type", "background"), ("apns-priority", "10")]
        ),
        JudgeRow("background at 5", nil, set: [("apns-push-type", "background"), ("apns-priority", "5")]),
        JudgeRow("expiration with a fraction", .badExpirationDate, set: [("apns-expiration", "1.5")]),
        JudgeRow("expiration 0", nil, set: [("apns-expiration", "0")]),
        JudgeRow("collapse id of 64", nil, set: [("apns-collapse-id", String(repeating: "c", count: 64))]),
        JudgeRow(
            "collapse id of 65", .badCollapseId,
            set: [("apns-collapse-id", String(repeating: "c", count: 65))]),
        JudgeRow("no topic", .missingTopic, drop: ["apns-topic"]),
        JudgeRow("empty topic", .badTopic, set: [("apns-topic", "")]),
        JudgeRow("topic with a space", .badTopic, set: [("apns-topic", "org acme")]),
        JudgeRow("topic of another app", .topicDisallowed, set: [("apns-topic", "org.acme.other")]),
        JudgeRow("voip topic for an alert", .topicDisallowed, set: [("apns-topic", "org.acme.chat.voip")]),
        JudgeRow("plain topic for voip", .topicDisallowed, set: [("apns-push-type", "voip")]),
        JudgeRow(
            "voip as it should be", nil,
            set: [("apns-push-type", "voip"), ("apns-topic", "org.acme.chat.voip")]),
        JudgeRow(
            "the topic counts before the token", .missingTopic, set: [(":path", "/3/device/zz")],
            drop: ["apns-topic"]),
        JudgeRow("token is no hex", .badDeviceToken, set: [(":path", "/3/device/zz")]),
        JudgeRow("token of odd length", .badDeviceToken, set: [(":path", "/3/device/abc")]),
        JudgeRow(
            "token of 202 digits", .badDeviceToken,
            set: [(":path", "/3/device/" + String(repeating: "ab", count: 101))]),
        JudgeRow(
            "unknown token", .badDeviceToken,
            set: [(":path", "/3/device/" + String(repeating: "ff", count: 32))]),
        JudgeRow("token in capitals", nil, set: [(":path", "/3/device/" + live.uppercased())]),
        JudgeRow("token of another app", .deviceTokenNotForTopic, set: [(":path", "/3/device/" + foreign)]),
        JudgeRow("removed", .unregistered, set: [(":path", "/3/device/" + removed)]),
        JudgeRow("expired", .expiredToken, set: [(":path", "/3/device/" + expired)]),
        JudgeRow(
            "the token counts before the body", .unregistered, set: [(":path", "/3/device/" + removed)],
            body: []),
        JudgeRow("no body", .payloadEmpty, body: []),
        JudgeRow("body is an array", .payloadEmpty, body: Array("[]".utf8)),
        JudgeRow("body is cut", .payloadEmpty, body: Array(#"{"aps":"#.utf8)),
        JudgeRow("body with more behind it", .payloadEmpty, body: Array("{} {}".utf8)),
        JudgeRow("4096 bytes", nil, body: object(bytes: 4096)),
        JudgeRow("4097 bytes", .payloadTooLarge, body: object(bytes: 4097)),
        JudgeRow("100,000 bytes", .payloadTooLarge, body: object(bytes: 100_000)),
        JudgeRow(
            "voip, 5120 bytes", nil, set: [("apns-push-type", "voip"), ("apns-topic", "org.acme.chat.voip")],
            body: object(bytes: 5120)),
        JudgeRow(
            "voip, 5121 bytes", .payloadTooLarge,
            set: [("apns-push-type", "voip"), ("apns-topic", "org.acme.chat.voip")], body: object(bytes: 5121)
        )
    ]

    static func reason(_ verdict: APNsJudge.Ruling) -> APNsReason? {
        if case .refused(let refusal, _) = verdict { refusal.reason } else { nil }
    }

    @Test("The first fault answers, in the order of docs/push-services.md", arguments: rows)
    func order(_ row: JudgeRow) throws {
        var judge = try Self.judge()
        var facts = APNsConnectionFacts()
        let verdict = judge.judge(try Self.request(row), on: &facts, now: Self.now)
        #expect(Self.reason(verdict) == row.reason)
    }

    @Test("A dead token's answer says since when")
    func since() throws {
        var judge = try Self.judge()
        var facts = APNsConnectionFacts()
        let row = JudgeRow("", nil, set: [(":path", "/3/device/" + Self.removed)])
        let verdict = judge.judge(try Self.request(row), on: &facts, now: Self.now)
        #expect(
            verdict
                == .refused(APNsRefusal(.unregistered, since: UnixTime(milliseconds: 5)), hasGoodToken: true))
    }

    @Test(
        "A provider token must be signed by a key on file, of its team, and young",
        arguments: [
            (-10, nil), (60, nil), (61, .invalidProviderToken), (-3600, nil),
            (-3601, APNsReason.expiredProviderToken)
        ] as [(Int64, APNsReason?)])
    func age(_ offset: Int64, _ reason: APNsReason?) throws {
        var judge = try Self.judge()
        var facts = APNsConnectionFacts()
        let token = try Self.key.providerToken(issuedAtSeconds: Self.now.seconds + offset)
        let verdict = judge.judge(
            try Self.request(JudgeRow("", nil), token: token), on: &facts, now: Self.now)
        #expect(Self.reason(verdict) == reason)
    }

    @Test("Foreign, forged and altered provider tokens are invalid")
    func forged() throws {
        let iat = Self.now.seconds
        let stranger = APNsKey(keyID: "ZZZZZZZZZZ")
        let forger = APNsKey()
        let other = APNsKey(team: "OTHERTEAM1", keyID: Self.key.keyID)
        let sameKeyOtherTeam = try APNsKey(
            team: other.team, keyID: Self.key.keyID, privateKeyPEM: Self.key.privateKeyPEM)
        var tokens = [
            try stranger.providerToken(issuedAtSeconds: iat), try forger.providerToken(issuedAtSeconds: iat),
            try sameKeyOtherTeam.providerToken(issuedAtSeconds: iat)
        ]
        let good = try Self.key.providerToken(issuedAtSeconds: iat)
        // One signature in 256 ends in such digits by itself.
        tokens.append(String(good.dropLast(2)) + (good.hasSuffix("AA") ? "BA" : "AA"))
        tokens.append(good + ".x")
        tokens.append(good.split(separator: ".").dropLast().joined(separator: ".") + ".")
        for token in tokens {
            var judge = try Self.judge()
            var facts = APNsConnectionFacts()
            let verdict = judge.judge(
                try Self.request(JudgeRow("", nil), token: token), on: &facts, now: Self.now)
            #expect(Self.reason(verdict) == .invalidProviderToken)
            #expect(facts.first == nil)
        }
    }

    @Test("A key for the other environment says so")
    func environment() throws {
        var judge = try Self.judge([Self.key.registration(environments: [.sandbox])])
        var facts = APNsConnectionFacts()
        #expect(
            Self.reason(judge.judge(try Self.request(JudgeRow("", nil)), on: &facts, now: Self.now))
                == .badEnvironmentKeyIdInToken)
    }

    @Test("A connection belongs to one team and one family of keys")
    func families() throws {
        let second = APNsKey(keyID: "SECONDKEY1")
        let narrow = APNsKey(keyID: "NARROWKEY1")
        let strange = APNsKey(team: "OTHERTEAM1", keyID: "STRANGEKEY")
        var judge = try Self.judge([
            Self.key.registration(), second.registration(), narrow.registration(bundles: ["org.acme.chat"]),
            strange.registration()
        ])
        var facts = APNsConnectionFacts()
        func ask(_ key: APNsKey, at now: UnixTime) throws -> APNsReason? {
            let token = try key.providerToken(issuedAtSeconds: now.seconds)
            return Self.reason(
                judge.judge(try Self.request(JudgeRow("", nil), token: token), on: &facts, now: now))
        }
        #expect(try ask(Self.key, at: Self.now) == nil)
        #expect(try ask(strange, at: Self.now) == .forbidden)
        #expect(try ask(narrow, at: Self.now) == .unrelatedKeyIdInToken)
        let later = Self.now + .seconds(1200)
        #expect(try ask(second, at: later) == nil)
        // Two keys of one team count as updates of each other.
        #expect(try ask(Self.key, at: later + .seconds(1)) == .tooManyProviderTokenUpdates)
    }

    @Test("A token renewed within twenty minutes spoils the connection until they have passed")
    func updates() throws {
        var judge = try Self.judge()
        var facts = APNsConnectionFacts()
        let first = try Self.key.providerToken(issuedAtSeconds: Self.now.seconds)
        let second = try Self.key.providerToken(issuedAtSeconds: Self.now.seconds + 1)
        func ask(_ token: String, after seconds: Int) throws -> APNsReason? {
            Self.reason(
                judge.judge(
                    try Self.request(JudgeRow("", nil), token: token), on: &facts,
                    now: Self.now + .seconds(seconds)))
        }
        #expect(try ask(first, after: 0) == nil)
        #expect(try ask(second, after: 1199) == .tooManyProviderTokenUpdates)
        // The old token is no way out.
        #expect(try ask(first, after: 1199) == .tooManyProviderTokenUpdates)
        #expect(try ask(first, after: 1200) == nil)
        #expect(try ask(second, after: 1201) == nil)
        #expect(try ask(first, after: 1202) == .tooManyProviderTokenUpdates)
        var fresh = APNsConnectionFacts()
        let elsewhere = judge.judge(
            try Self.request(JudgeRow("", nil), token: first), on: &fresh, now: Self.now + .seconds(1202))
        #expect(Self.reason(elsewhere) == nil)
    }

    @Test("One device gets so much and no more; another is not touched by it")
    func deviceRate() throws {
        var judge = try Self.judge()
        judge.deviceRate = Rate(count: 2, per: .seconds(60))
        judge.devices.learns = true
        var facts = APNsConnectionFacts()
        let bearer = try Self.key.providerToken(issuedAtSeconds: Self.now.seconds)
        func ask(_ token: String, after seconds: Int) throws -> APNsReason? {
            let row = JudgeRow("", nil, set: [(":path", "/3/device/" + token)])
            return Self.reason(
                judge.judge(
                    try Self.request(row, token: bearer), on: &facts, now: Self.now + .seconds(seconds)))
        }
        let answers = try [0, 1, 59, 60].map { try ask(Self.live, after: $0) }
        #expect(answers == [nil, nil, .tooManyRequests, nil])
        #expect(try ask(String(repeating: "ee", count: 32), after: 59) == nil)
    }
}
