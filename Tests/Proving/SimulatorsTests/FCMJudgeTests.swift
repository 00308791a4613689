import PushModel
import Testing

@testable import Simulators

@Suite("The judgement of the simulated FCM")
struct FCMJudgeTests {
    static let now = UnixTime(seconds: 1_800_000_000)
    static let token = "dQw4w9WgXcQ:APA91b" + String(repeating: "x", count: 134)
    static let removed = "removed:APA91b" + String(repeating: "x", count: 134)
    static let foreign = "foreign:APA91b" + String(repeating: "x", count: 134)
    static let fid = "cAbcdefghijklmnopqrs-_"

    /// What differs from a good request, and FCM's answer: HTTP status, canonical status, FcmError.
    struct Row: Sendable, CustomTestStringConvertible {
        var name: String
        var http: Int
        var status = ""
        var code: String?
        var path = "/v1/projects/acme-chat/messages:send"
        var method = "POST"
        var bearer: String? = "Bearer good"
        var body =
            #"{"message":{"token":"TOKEN","data":{"k":"v"},"android":{"priority":"HIGH","ttl":"3600s"}}}"#
        var field: String?
        var testDescription: String { name }
    }

    static func message(_ inner: String) -> String { #"{"message":{"# + inner + "}}" }
    static func data(bytes: Int) -> String {
        message(#""token":"TOKEN","data":{"k":""# + String(repeating: "x", count: bytes - 1) + #""}"#)
    }

    static let rows: [Row] = [
        Row(name: "as it should be", http: 200),
        Row(name: "an installation id", http: 200, body: message(#""fid":"cAbcdefghijklmnopqrs-_""#)),
        Row(
            name: "lower-case priority", http: 200,
            body: message(#""token":"TOKEN","android":{"priority":"high"}"#)),
        Row(name: "another path", http: 404, status: "page", path: "/fcm/send"),
        Row(
            name: "the path counts before the credential", http: 404, status: "page", path: "/v1/",
            bearer: nil),
        Row(name: "GET", http: 405, status: "page", method: "GET"),
        Row(name: "no bearer", http: 401, status: "UNAUTHENTICATED", bearer: nil),
        Row(name: "unknown bearer", http: 401, status: "UNAUTHENTICATED", bearer: "Bearer nobody"),
        Row(name: "expired bearer", http: 401, status: "UNAUTHENTICATED", bearer: "Bearer old"),
        Row(
            name: "the credential counts before the project", http: 401, status: "UNAUTHENTICATED",
            path: "/v1/projects/nowhere/messages:send", bearer: "Bearer old"),
        Row(
            name: "somebody else's project", http: 403, status: "PERMISSION_DENIED",
            path: "/v1/projects/acme-other/messages:send"),
        Row(
            name: "no such project", http: 404, status: "NOT_FOUND",
            path: "/v1/projects/nowhere/messages:send"),
        Row(name: "broken JSON", http: 400, status: "INVALID_ARGUMENT", body: "{", field: ""),
        Row(name: "no message", http: 400, status: "INVALID_ARGUMENT", body: "{}", field: ""),
        Row(
            name: "no target", http: 400, status: "INVALID_ARGUMENT", body: message(#""data":{}"#),
            field: "message"),
        Row(
            name: "two targets", http: 400, status: "INVALID_ARGUMENT",
            body: message(#""token":"a","topic":"b""#),
            field: "message"),
        Row(
            name: "a number among the data", http: 400, status: "INVALID_ARGUMENT",
            body: message(#""token":"TOKEN","data":{"a":"b","k":1}"#), field: "message.data[1].value"),
        Row(
            name: "the key from", http: 400, status: "INVALID_ARGUMENT",
            body: message(#""token":"TOKEN","data":{"from":"x"}"#), field: "message.data"),
        Row(
            name: "a key of Google's", http: 400, status: "INVALID_ARGUMENT",
            body: message(#""token":"TOKEN","data":{"google.x":"x"}"#), field: "message.data"),
        Row(
            name: "ttl without unit", http: 400, status: "INVALID_ARGUMENT",
            body: message(#""token":"TOKEN","android":{"ttl":"3600"}"#), field: "message.android.ttl"),
        Row(
            name: "ttl of 28 days", http: 200, body: message(#""token":"TOKEN","android":{"ttl":"2419200s"}"#)
        ),
        Row(
            name: "ttl a moment longer", http: 400, status: "INVALID_ARGUMENT",
            body: message(#""token":"TOKEN","android":{"ttl":"2419200.1s"}"#), field: "message.android.ttl"),
        Row(
            name: "ttl with a sign", http: 400, status: "INVALID_ARGUMENT",
            body: message(#""token":"TOKEN","android":{"ttl":"-1s"}"#), field: "message.android.ttl"),
        Row(
            name: "unknown priority", http: 400, status: "INVALID_ARGUMENT",
            body: message(#""token":"TOKEN","android":{"priority":"URGENT"}"#),
            field: "message.android.priority"),
        Row(name: "4096 bytes", http: 200, body: data(bytes: 4096)),
        Row(
            name: "4097 bytes", http: 400, status: "INVALID_ARGUMENT", code: "INVALID_ARGUMENT",
            body: data(bytes: 4097)),
        Row(
            name: "the size counts before the token", http: 400, status: "INVALID_ARGUMENT",
            code: "INVALID_ARGUMENT",
            body: data(bytes: 4097).replacing("TOKEN", with: "short")),
        Row(
            name: "a token without colon", http: 400, status: "INVALID_ARGUMENT", code: "INVALID_ARGUMENT",
            body: message(#""token":"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz""#)),
        Row(
            name: "an installation id of 21", http: 400, status: "INVALID_ARGUMENT", code: "INVALID_ARGUMENT",
            body: message(#""fid":"cAbcdefghijklmnopqrs-""#)),
        Row(
            name: "another project's token", http: 403, status: "PERMISSION_DENIED",
            code: "SENDER_ID_MISMATCH",
            body: message(#""token":"FOREIGN""#)),
        Row(
            name: "a removed token", http: 404, status: "NOT_FOUND", code: "UNREGISTERED",
            body: message(#""token":"REMOVED""#)),
        Row(
            name: "an unknown token", http: 404, status: "NOT_FOUND", code: "UNREGISTERED",
            body: message(#""token":"unknown:TOKEN""#).replacing(
                "TOKEN", with: String(repeating: "y", count: 140)))
    ]

    static func judge() -> FCMJudge {
        var judge = FCMJudge()
        judge.tokens.issue("good", project: "acme-chat", expires: now + .seconds(600))
        judge.tokens.issue("old", project: "acme-chat", expires: now)
        judge.otherProjects = ["acme-other"]
        judge[token] = FCMDevice(project: "acme-chat")
        judge[fid] = FCMDevice(project: "acme-chat")
        judge[removed] = FCMDevice(project: "acme-chat", isLive: false)
        judge[foreign] = FCMDevice(project: "acme-other")
        return judge
    }

    static func request(_ row: Row) -> SimulatedRequest {
        var fields = [(":method", row.method), (":path", row.path), ("content-type", "application/json")]
        if let bearer = row.bearer { fields.append(("authorization", bearer)) }
        let body = row.body.replacing("TOKEN", with: token).replacing("FOREIGN", with: foreign)
            .replacing("REMOVED", with: removed)
        return SimulatedRequest(fields, body: Array(body.utf8))
    }

    @Test("The first fault answers, in the order of docs/push-services.md", arguments: rows)
    func order(_ row: Row) throws {
        var judge = Self.judge()
        switch judge.judge(Self.request(row), now: Self.now) {
        case .accepted: #expect(row.http == 200)
        case .page(let status):
            #expect(status == row.http)
            #expect(row.status == "page")
        case .refused(let error):
            #expect(error.http == row.http)
            #expect(error.status == row.status)
            let codes = error.details.compactMap { if case .fcm(let code) = $0 { code } else { nil } }
            #expect(codes == (row.code.map { [$0] } ?? []))
            let fields = error.details.compactMap {
                if case .badRequest(let field, _) = $0 { field } else { nil }
            }
            #expect(fields == (row.field.map { [$0] } ?? []))
            let isExpired = error.details.contains(.info(reason: "ACCESS_TOKEN_EXPIRED"))
            #expect(isExpired == (row.http == 401 && row.bearer == "Bearer old"))
        }
    }

    @Test("A malformed token is told from other faults by its message alone")
    func malformed() throws {
        let tree = try #require(JSONTree(SimulatedFCMError.malformedToken.body))
        #expect(
            tree["error"]?["message"]?.text == "The registration token is not a valid FCM registration token")
        #expect(tree["error"]?["code"]?.integer == 400)
        let detail = try #require(tree["error"]?["details"]?.items?.first)
        #expect(detail["@type"]?.text == "type.googleapis.com/google.firebase.fcm.v1.FcmError")
        #expect(detail["errorCode"]?.text == "INVALID_ARGUMENT")
    }

    @Test("Quotas: faults count against the project's minute, a device has its own")
    func quotas() throws {
        var judge = Self.judge()
        judge.projectRate = Rate(count: 2, per: .seconds(60))
        let good = Row(name: "", http: 200)
        let bad = Row(name: "", http: 400, body: "{")
        _ = judge.judge(Self.request(bad), now: Self.now)
        _ = judge.judge(Self.request(good), now: Self.now)
        guard case .refused(let error) = judge.judge(Self.request(good), now: Self.now + .seconds(59)) else {
            Issue.record("The project's quota was not kept.")
            return
        }
        #expect(error.http == 429)
        #expect(error.status == "RESOURCE_EXHAUSTED")
        #expect(error.reason == "QUOTA_EXCEEDED")
        guard case .accepted = judge.judge(Self.request(good), now: Self.now + .seconds(60)) else {
            Issue.record("The bucket was not refilled after a minute.")
            return
        }
    }

    @Test("A device's minute is its own")
    func deviceQuota() throws {
        var judge = Self.judge()
        judge.deviceMinute = Rate(count: 1, per: .seconds(30))
        let good = Row(name: "", http: 200)
        let other = Row(name: "", http: 200, body: Self.message(#""fid":"cAbcdefghijklmnopqrs-_""#))
        func isQuota(_ verdict: FCMJudge.Ruling) -> Bool { verdict == .refused(.deviceQuota) }
        #expect(!isQuota(judge.judge(Self.request(good), now: Self.now)))
        #expect(isQuota(judge.judge(Self.request(good), now: Self.now)))
        #expect(!isQuota(judge.judge(Self.request(other), now: Self.now)))
        #expect(!isQuota(judge.judge(Self.request(good), now: Self.now + .seconds(30))))
    }
}

@Suite("The simulated token endpoint judges assertions")
struct FCMTokenTests {
    static let account = Result { try ServiceAccount() }
    static let now: Int64 = 1_800_000_000
    static let audience = "https://localhost:1/token"

    private func judge(_ form: String, type: String = "application/x-www-form-urlencoded") throws -> Result<
        String, TokenRefusal
    > {
        var tokens = FCMTokens()
        try tokens.register(Self.account.get().registration)
        let request = SimulatedRequest(
            [(":method", "POST"), (":path", "/token"), ("content-type", type)], body: Array(form.utf8))
        do throws(TokenRefusal) {
            return .success(
                try tokens.judge(request, audiences: [Self.audience], now: UnixTime(seconds: Self.now)))
        } catch { return .failure(error) }
    }

    private func form(_ change: (inout [String: JSONTree]) -> Void = { _ in }, algorithm: String = "RS256")
        throws -> String
    {
        let account = try Self.account.get()
        var claims: [String: JSONTree] = [
            "iss": .string(account.email), "scope": .string(FCMTokens.scope), "aud": .string(Self.audience),
            "iat": .number(Self.now), "exp": .number(Self.now + 3600)
        ]
        change(&claims)
        let tree = JSONTree.object(claims.map { .init(name: $0.key, value: $0.value) })
        return "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="
            + (try account.assertion(tree, algorithm: algorithm))
    }

    @Test("A sound assertion gives the project")
    func sound() throws { #expect(try judge(try form()) == .success("acme-chat")) }

    @Test("Each fault has its code")
    func faults() throws {
        #expect(try judge(try form(), type: "application/json") == .failure(.invalidRequest))
        #expect(try judge("grant_type=password&assertion=x") == .failure(.unsupportedGrantType))
        #expect(try judge(try form(algorithm: "none")) == .failure(.invalidGrant))
        #expect(try judge(try form { $0["iss"] = "nobody@example.org" }) == .failure(.invalidClient))
        #expect(try judge(try form { $0["aud"] = "https://elsewhere/token" }) == .failure(.invalidGrant))
        #expect(
            try judge(try form { $0["scope"] = "https://www.googleapis.com/auth/drive" })
                == .failure(.invalidScope))
        #expect(try judge(try form { $0["exp"] = .number(Self.now + 3601) }) == .failure(.invalidGrant))
        let early = try form {
            $0["iat"] = .number(Self.now + 301); $0["exp"] = .number(Self.now + 400)
        }
        #expect(try judge(early) == .failure(.invalidGrant))
        let late = try form {
            $0["iat"] = .number(Self.now - 3600); $0["exp"] = .number(Self.now - 301)
        }
        #expect(try judge(late) == .failure(.invalidGrant))
        let altered = try form().dropLast(8) + "AAAAAAAA"
        #expect(try judge(String(altered)) == .failure(.invalidGrant))
    }

    @Test("Clocks may differ by five minutes")
    func skew() throws {
        let early = try form {
            $0["iat"] = .number(Self.now + 300); $0["exp"] = .number(Self.now + 3900)
        }
        #expect(try judge(early) == .success("acme-chat"))
        let late = try form {
            $0["iat"] = .number(Self.now - 3900); $0["exp"] = .number(Self.now - 300)
        }
        #expect(try judge(late) == .success("acme-chat"))
    }
}
