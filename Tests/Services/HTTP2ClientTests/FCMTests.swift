@testable import FCM
import HTTP2Client
import PushModel
import PushTesting
import Synchronization
import Testing
import WireFormats

private let now = UnixTime(seconds: 1_800_000_000)

/// A fault as FCM writes it.
private func fault(_ status: String, message: String = "m", code: String?) -> String {
    let detail = code.map {
        "{\"@type\":\"type.googleapis.com/google.firebase.fcm.v1.FcmError\",\"errorCode\":\"\($0)\"}"
    }
    return "{\"error\":{\"code\":1,\"message\":\"\(message)\",\"status\":\"\(status)\",\"details\":["
        + "{\"@type\":\"type.googleapis.com/google.rpc.BadRequest\"}\(detail.map { "," + $0 } ?? "")]}}"
}

@Suite("What an answer of FCM means", .timeLimit(.minutes(30)))
struct FCMOutcomeTests {
    typealias Row = (status: Int, body: String, outcome: Outcome, reason: Reason)

    /// docs/push-services.md §4.4, row by row.
    static let rows: [Row] = [
        (200, "{\"name\":\"projects/p/messages/1\"}", .accepted, .ok),
        (
            400,
            fault(
                "INVALID_ARGUMENT", message: "The registration token is not a valid FCM registration token",
                code: "INVALID_ARGUMENT"), .unregistered(since: nil), .invalidRegistrationToken
        ),
        (
            400,
            fault(
                "INVALID_ARGUMENT", message: "The registration token is not valid", code: "INVALID_ARGUMENT"),
            .rejected, .invalidArgument
        ),
        (
            400,
            fault(
                "INVALID_ARGUMENT", message: "The registration token is not a valid FCM registration token",
                code: nil), .rejected, .invalidArgument
        ),
        (400, fault("INVALID_ARGUMENT", code: nil), .rejected, .invalidArgument),
        (401, fault("UNAUTHENTICATED", code: nil), .retry(after: nil), .unauthenticated),
        (
            401, fault("UNAUTHENTICATED", code: "THIRD_PARTY_AUTH_ERROR"), .misconfigured(.target),
            .thirdPartyAuthError
        ),
        (
            403, fault("PERMISSION_DENIED", code: "SENDER_ID_MISMATCH"), .unregistered(since: nil),
            .senderIdMismatch
        ),
        (403, fault("PERMISSION_DENIED", code: nil), .misconfigured(.credential), .permissionDenied),
        (404, fault("NOT_FOUND", code: "UNREGISTERED"), .unregistered(since: nil), .unregisteredFCM),
        (404, fault("NOT_FOUND", code: nil), .misconfigured(.credential), .notFound),
        (404, "<!DOCTYPE html><html>404</html>", .retry(after: nil), .foreignAnswer),
        (
            429, fault("RESOURCE_EXHAUSTED", code: "QUOTA_EXCEEDED"), .retry(after: .seconds(60)),
            .quotaExceeded
        ),
        (
            429, fault("RESOURCE_EXHAUSTED", message: "Device quota exceeded.", code: "QUOTA_EXCEEDED"),
            .retry(after: nil), .deviceQuotaExceeded
        ),
        (
            429, fault("RESOURCE_EXHAUSTED", message: "Topic quota exceeded.", code: "QUOTA_EXCEEDED"),
            .retry(after: .seconds(60)), .quotaExceeded
        ),
        (429, fault("RESOURCE_EXHAUSTED", code: nil), .retry(after: .seconds(60)), .rateLimitExceeded),
        (429, "<html>", .retry(after: .seconds(60)), .rateLimitExceeded),
        (500, fault("INTERNAL", code: "INTERNAL"), .retry(after: nil), .internalFCM),
        (503, fault("UNAVAILABLE", code: "UNAVAILABLE"), .retry(after: nil), .unavailable),
        (502, "<html>", .retry(after: nil), .unknown),
        (413, "", .retry(after: nil), .unreadable),
        (413, fault("X", code: nil), .rejected, .unknown),
        (403, fault("PERMISSION_DENIED", code: "NOVEL"), .rejected, .unknown),
        (403, fault("X", code: "UNSPECIFIED_ERROR"), .misconfigured(.credential), .permissionDenied),
        (404, fault("X", code: "UNSPECIFIED_ERROR"), .misconfigured(.credential), .notFound),
        (400, fault("X", code: "UNSPECIFIED_ERROR"), .rejected, .invalidArgument),
        (302, "", .retry(after: nil), .unknown)
    ]

    @Test("Every row of the sheet", arguments: rows)
    func documented(_ row: Row) {
        let verdict = FCMOutcomeTable.judge(
            status: row.status, body: Array(row.body.utf8), retryAfter: [], now: now)
        #expect(verdict.outcome == row.outcome)
        #expect(verdict.reason == row.reason)
        #expect(verdict.cure == (row.reason == .unauthenticated ? .renewToken : .none))
    }

    @Test(
        "A body that is in no form of Google's is not its word about the account, nor about a token",
        arguments: [401, 403, 404, 407])
    func foreign(_ status: Int) {
        for body in [
            "", "<html>", "[]", "{}", #"{"error":"no"}"#, #"{"error":{}}"#, #"{"message":"no route"}"#
        ] {
            let verdict = FCMOutcomeTable.judge(
                status: status, body: Array(body.utf8), retryAfter: Array("7".utf8), now: now)
            #expect(verdict.outcome == .retry(after: .seconds(7)) && verdict.reason == .foreignAnswer)
            #expect(verdict.fate == .unprocessed && verdict.cure == .none)
        }
    }

    /// Words of the front end that counts a project's requests (field), and of FCM's details.
    static let quotas: [(details: String, reason: Reason)] = [
        (
            #"{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED","#
                + #""metadata":{"quota_unit":"1/min/{project}","quota_limit":"SendsPerMinutePerProject"}}"#,
            .rateLimitExceeded
        ),
        (
            #"{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":"#
                + #"[{"subject":"device:c1E","description":"Message rate exceeded."}]}"#, .deviceQuotaExceeded
        ),
        (
            #"{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":"#
                + #"[{"description":"The rate of messages to a registration token is too high."}]}"#,
            .deviceQuotaExceeded
        ),
        (
            #"{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":"#
                + #"[{"subject":"project:acme-1"},7,null]}"#, .rateLimitExceeded
        ),
        (#"{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":{}}"#, .quotaExceeded)
    ]

    @Test("Whose quota it is stands in the details, and Google's own word beside it does not matter")
    func quota() {
        let code =
            #"{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"QUOTA_EXCEEDED"}"#
        for (details, reason) in Self.quotas {
            let body =
                #"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":["#
                + "\(code),\(details)]}}"
            let verdict = FCMOutcomeTable.judge(
                status: 429, body: Array(body.utf8), retryAfter: Array("9".utf8), now: now)
            #expect(verdict.reason == reason && verdict.outcome == .retry(after: .seconds(9)))
        }
    }

    @Test(
        "Retry-After in seconds or as a date",
        arguments: [
            ("9", Duration.seconds(9)), ("Fri, 15 Jan 2027 08:01:00 GMT", .seconds(60)),
            ("Fri, 15 Jan 2027 07:00:00 GMT", .zero)
        ])
    func retryAfter(text: String, wait: Duration) {
        for status in [429, 500, 503] {
            let verdict = FCMOutcomeTable.judge(
                status: status, body: [], retryAfter: Array(text.utf8), now: now)
            #expect(verdict.outcome == .retry(after: wait))
        }
    }
}

@Suite("How long FCM asks to wait in the body", .timeLimit(.minutes(30)))
struct FCMRetryInfoTests {
    private func judge(_ status: Int, _ delay: String, header: String = "") -> Outcome {
        let body =
            #"{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"#
            + delay + "}]}}"
        return FCMOutcomeTable.judge(
            status: status, body: Array(body.utf8), retryAfter: Array(header.utf8), now: now
        ).outcome
    }

    @Test(
        "RetryInfo's delay is the wait where no Retry-After is given",
        arguments: [
            ("30s", Duration.seconds(30)), ("0s", .zero), ("1.5s", .milliseconds(1500)),
            ("0.000000001s", .milliseconds(1)), ("7.0s", .seconds(7)), ("2.999999999s", .seconds(3)),
            ("86400s", .seconds(86_400)), ("99999999999999999999s", .seconds(86_400))
        ])
    func delay(text: String, wait: Duration) {
        for status in [429, 500, 503] { #expect(judge(status, "\"\(text)\"") == .retry(after: wait)) }
        #expect(judge(503, "\"\(text)\"", header: "11") == .retry(after: .seconds(11)))
    }

    @Test(
        "A delay in no known form counts as none",
        arguments: [
            "\"\"", "\"s\"", "\"30\"", "\"-1s\"", "\"+1s\"", "\"1.s\"", "\".5s\"", "\"1.2.3s\"",
            "\"1.0123456789s\"", "\"1 s\"", "\"1e3s\"", "30", "null", "{}"
        ])
    func malformed(delay: String) {
        #expect(judge(503, delay) == .retry(after: nil))
        #expect(judge(429, delay) == .retry(after: .seconds(60)))
    }
}

@Suite("Requests to FCM", .timeLimit(.minutes(30)))
struct FCMRequestTests {
    private func body(
        _ address: String, kind: FCMAddressKind = .auto, priority: FCMMessage.Priority = .high,
        ttl: Duration? = nil,
        collapse: String? = nil, data: String = "{\"k\":\"v\"}"
    ) throws -> String {
        let message = FCMMessage(
            address: Secret(Array(address.utf8)), priority: priority, ttl: ttl,
            collapseKey: collapse.map { Secret(Array($0.utf8)) }, data: Secret(Array(data.utf8)))
        let body = try FCMRequest(authority: "a", project: "p", addressKind: kind).body(for: message)
        return body.reveal { String(decoding: $0, as: UTF8.self) }
    }

    private let token = "dXy:APA91bF" + String(repeating: "x", count: 130)

    @Test("The body is Zulip's to the byte")
    func zulip() throws {
        let data = "{\"push_key_id\":\"12345\",\"encrypted_data\":\"abcd==\"}"
        #expect(
            try body(token, priority: .normal, data: data)
                == "{\"message\":{\"token\":\"\(token)\","
                + "\"android\":{\"priority\":\"normal\"},\"data\":\(data)}}"
        )
    }

    @Test("What Google is to look at and not to deliver says so, and is the same otherwise")
    func validated() throws {
        for (kind, name) in [(FCMAddressKind.token, "token"), (.fid, "fid"), (.auto, "token")] {
            let message = FCMMessage(address: Secret(token.utf8), priority: .high, data: Secret("{}".utf8))
            let request = FCMRequest(authority: "a", project: "p", addressKind: kind, validatesOnly: true)
            let body = try request.body(for: message).reveal { String(decoding: $0, as: UTF8.self) }
            #expect(body.hasPrefix("{\"validate_only\":true,\"message\":{\"\(name)\":\"\(token)\","))
            #expect(try JSONValue.parse(Array(body.utf8)) != .null)
        }
    }

    @Test("A notice is the notification's body, and one that needs an escape is not sent")
    func notice() throws {
        var message = FCMMessage(
            address: Secret(token.utf8), priority: .high, data: Secret("{}".utf8), notice: "You have news")
        let request = FCMRequest(authority: "a", project: "p", addressKind: .auto)
        let body = try request.body(for: message).reveal { String(decoding: $0, as: UTF8.self) }
        #expect(
            body == "{\"message\":{\"token\":\"\(token)\",\"android\":{\"priority\":\"high\"},"
                + "\"notification\":{\"body\":\"You have news\"},\"data\":{}}}")
        message.notice = "\"},"
        #expect(throws: FCMRequest.Refusal.badData) { try request.body(for: message) }
    }

    @Test(
        "TTL and collapse key stand in the android block",
        arguments: [
            (Duration.seconds(3600), "3600s"), (.zero, "0s"), (.milliseconds(1999), "1s"),
            (.seconds(99_999_999), "2419200s"), (.seconds(-5), "0s")
        ])
    func ttl(span: Duration, text: String) throws {
        #expect(
            try body(token, ttl: span, collapse: "c 1")
                == "{\"message\":{\"token\":\"\(token)\","
                + "\"android\":{\"priority\":\"high\",\"ttl\":\"\(text)\","
                + "\"collapse_key\":\"c 1\"},\"data\":{\"k\":\"v\"}}}")
    }

    @Test(
        "An address is read as configured, or by its form",
        arguments: [
            ("c1E-_5fGhIjKlMnOpQrStU", FCMAddressKind.auto, "fid"),
            ("c1E:_5fGhIjKlMnOpQrStU", .auto, "token"),
            ("c1E-_5fGhIjKlMnOpQrSt", .auto, "token"), ("c1E-_5fGhIjKlMnOpQrStU", .token, "token"),
            ("abc", .fid, "fid")
        ])
    func address(text: String, kind: FCMAddressKind, name: String) throws {
        #expect(try body(text, kind: kind).hasPrefix("{\"message\":{\"\(name)\":\"\(text)\","))
    }

    @Test("Every body is JSON with three members at most, and never an apns block")
    func shape() throws {
        let parsed = try JSONValue.parse(Array(try body(token, ttl: .seconds(1), collapse: "c").utf8))
        #expect(Set(parsed["message"]?.object?.names ?? []) == ["token", "android", "data"])
        #expect(parsed.object?.names == ["message"])
    }

    @Test(
        "Data that is more than one flat object is refused, so that nothing can stand beside it",
        arguments: [
            #"{"k":"v"},"apns":{"payload":{"aps":{}}}"#, #"{},"notification":{"title":"t"}"#,
            #"{"k":"v"}} {"message":{}}"#, #"{"k":{"apns":"v"}}"#, #"{"k":["v"]}"#, #"{"k":"v"#,
            #"{"k":"v\"}"#,
            #"{"k":"v","#, "", "{", "}", "[]", "null", #""k""#, #"{"a":"\\"},"apns":{"b":"}"#
        ])
    func splice(data: String) {
        #expect(throws: FCMRequest.Refusal.badData) { try body(token, data: data) }
    }

    @Test(
        "Braces, brackets and escaped quotes inside strings are content",
        arguments: [
            "{}", #"{"k":"}"}"#, #"{"k":"{[\"},\"apns\":{"}"#, #"{"a":"\\","b":"\\\""}"#, #"{ "k" : "" }"#
        ])
    func content(data: String) throws {
        let parsed = try JSONValue.parse(Array(try body(token, data: data).utf8))
        #expect(Set(parsed["message"]?.object?.names ?? []) == ["token", "android", "data"])
        #expect(parsed["message"]?["data"] == (try JSONValue.parse(Array(data.utf8))))
    }

    @Test(
        "Addresses that could break out of the text are refused",
        arguments: [
            "", "a\"b", "a\\b", "a b", "a\u{7}b", "ä", String(repeating: "a", count: 4097)
        ])
    func badAddress(text: String) {
        #expect(throws: FCMRequest.Refusal.badAddress) { try body(text) }
    }

    @Test("4,096 bytes of names and values fit, one more does not; escapes count as what they mean")
    func sizes() throws {
        func data(_ count: Int, _ tail: String = "") -> String {
            "{\"k\":\"" + String(repeating: "x", count: count) + tail + "\"}"
        }
        _ = try body(token, data: data(4095))
        #expect(throws: FCMRequest.Refusal.tooLarge) { try body(token, data: data(4096)) }
        _ = try body(token, data: data(4094, "\\n"))
        #expect(throws: FCMRequest.Refusal.tooLarge) { try body(token, data: data(4095, "\\n")) }
        _ = try body(token, data: data(4092, "\\u20ac"))
        #expect(throws: FCMRequest.Refusal.tooLarge) { try body(token, data: data(4093, "\\u20ac")) }
        #expect(throws: FCMRequest.Refusal.tooLarge) { try body(token, data: data(4092, "\\ud83d\\ude00")) }
        _ = try body(token, data: data(4091, "\\ud83d\\ude00"))
    }
}

/// Answers of a token service.
extension ScriptedWeb {
    fileprivate static func answer(_ status: Int, _ body: String, retryAfter: String? = nil) -> Result<
        WebAnswer, WebError
    > {
        .success(WebAnswer(status: status, retryAfter: retryAfter, body: Secret(Array(body.utf8))))
    }

    fileprivate static func token(_ text: String) -> Result<WebAnswer, WebError> {
        answer(200, "{\"access_token\":\"\(text)\",\"expires_in\":3599,\"token_type\":\"Bearer\"}")
    }
}

@Suite("The service account's token", .timeLimit(.minutes(30)))
struct FCMCredentialTests {
    private static let key = Result { try OpenSSL.KeyPair.rsa() }
    private let clock = ManualClock(start: now)

    private func file(_ change: (inout JSONObject) -> Void = { _ in }) throws -> Secret {
        let pem = String(decoding: try Self.key.get().privatePEM, as: UTF8.self)
        var members = JSONObject()
        for (name, value) in [
            ("type", "service_account"), ("project_id", "acme-1"), ("private_key_id", "k1"),
            ("private_key", pem),
            ("client_email", "push@acme-1.iam.gserviceaccount.com"), ("token_uri", "https://oauth.test/token")
        ] { members[name] = .string(value) }
        change(&members)
        return Secret(JSONValue.object(members).serialized())
    }

    private func credential(_ web: ScriptedWeb) throws -> FCMCredential {
        FCMCredential(
            account: try FCMServiceAccount(file: try file()), fetch: web, world: clock.world(seed: 1),
            journal: .silent)
    }

    private func fault(_ credential: FCMCredential) async -> FCMCredentialFault? {
        do {
            _ = try await credential.token()
            return nil
        } catch { return error }
    }

    private func serial(_ credential: FCMCredential) async -> Int? {
        do { return try await credential.token().serial } catch { return nil }
    }

    @Test("The assertion is the one Google asks for, signed with the account's key, as openssl finds too")
    func assertion() async throws {
        let web = ScriptedWeb([ScriptedWeb.token("ya29.a")])
        _ = try await credential(web).token()
        let asked = try #require(web.requests.value.first)
        #expect(asked.url == "https://oauth.test/token")
        let form = try Form.parse(asked.body?.reveal { Array($0) } ?? [])
        #expect(form.text("grant_type") == "urn:ietf:params:oauth:grant-type:jwt-bearer")
        let token = try OpenSSL.Token(try #require(form.text("assertion")))
        #expect(token.header["alg"]?.string == "RS256" && token.header["kid"]?.string == "k1")
        #expect(token.claims["iss"]?.string == "push@acme-1.iam.gserviceaccount.com")
        #expect(token.claims["scope"]?.string == "https://www.googleapis.com/auth/firebase.messaging")
        #expect(token.claims["aud"]?.string == "https://oauth.test/token")
        let issued = try #require(token.claims["iat"]?.int64)
        let ends = try #require(token.claims["exp"]?.int64)
        #expect(issued <= now.seconds && ends - issued <= 3600 && ends > now.seconds)
        try OpenSSL.verify(token.signature, over: token.input, by: try Self.key.get())
    }

    @Test("A hundred callers at once make one request")
    func singleFlight() async throws {
        let callers = AwaitedCount()
        // The answer waits until all of them have called.
        let web = ScriptedWeb([ScriptedWeb.token("a")], gate: { await callers.wait(for: 100) })
        let credential = try credential(web)
        let serials = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<100 {
                group.addTask {
                    callers.add()
                    return try await credential.token().serial
                }
            }
            return try await group.reduce(into: Set<Int>()) { $0.insert($1) }
        }
        #expect(serials == [1] && web.requests.value.count == 1)
    }

    @Test("At 80 % of its life a token is renewed in the background, while the old one serves")
    func earlyRenewal() async throws {
        let web = ScriptedWeb([ScriptedWeb.token("a"), ScriptedWeb.token("b")])
        let credential = try credential(web)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await credential.keepFresh() }
            await clock.sleepers(atLeast: 1)
            #expect(web.requests.value.count == 1)
            clock.advance(by: .seconds(2879))
            #expect(await serial(credential) == 1)
            clock.advance(by: .seconds(1))
            await clock.sleepers(atLeast: 1)
            #expect(web.requests.value.count == 2)
            #expect(await serial(credential) == 2)
            group.cancelAll()
        }
    }

    @Test("A failed renewal leaves the old token in use, and is tried again later")
    func failedRenewal() async throws {
        let web = ScriptedWeb([ScriptedWeb.token("a"), ScriptedWeb.answer(500, "")])
        let credential = try credential(web)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await credential.keepFresh() }
            await clock.sleepers(atLeast: 1)
            clock.advance(by: .seconds(2900))
            await clock.sleepers(atLeast: 1)
            #expect(web.requests.value.count == 2)
            #expect(await serial(credential) == 1)
            group.cancelAll()
        }
    }

    @Test(
        "Refusals in OAuth's form are the account's fault when three in a row say so, the rest is time's",
        arguments: [
            (400, "{\"error\":\"invalid_grant\"}", FCMCredentialFault.refused),
            (401, "{\"error\":\"invalid_client\"}", .refused),
            (403, "{\"error\":{\"code\":403,\"status\":\"PERMISSION_DENIED\"}}", .refused),
            (403, "", .unavailable(after: nil)), (404, "<!DOCTYPE html>", .unavailable(after: nil)),
            (400, "{\"message\":\"no\"}", .unavailable(after: nil)), (302, "", .unavailable(after: nil)),
            (429, "", .unavailable(after: .seconds(30))), (500, "", .unavailable(after: .seconds(30))),
            (503, "<html>", .unavailable(after: .seconds(30))), (200, "<html>", .unavailable(after: nil)),
            (200, "{}", .unavailable(after: nil)), (200, "{\"access_token\":\"\"}", .unavailable(after: nil)),
            (200, "{\"access_token\":\"a\\r\\nb\"}", .unavailable(after: nil))
        ])
    func faults(status: Int, body: String, expected: FCMCredentialFault) async throws {
        let answer = ScriptedWeb.answer(status, body, retryAfter: status < 429 ? nil : "30")
        let credential = try credential(ScriptedWeb(Array(repeating: answer, count: 3)))
        var faults: [FCMCredentialFault?] = []
        for _ in 0..<3 {
            faults.append(await fault(credential))
            clock.advance(by: .seconds(60))
        }
        let early = expected == .refused ? FCMCredentialFault.unavailable(after: nil) : expected
        #expect(faults == [early, early, expected])
    }

    @Test("A token between begins the count of refusals anew")
    func strayRefusals() async throws {
        let refusal = ScriptedWeb.answer(400, "{\"error\":\"invalid_grant\"}")
        let web = ScriptedWeb([refusal, refusal, ScriptedWeb.token("a"), refusal, refusal, refusal])
        let credential = try credential(web)
        var faults: [FCMCredentialFault?] = []
        for _ in 0..<6 {
            faults.append(await fault(credential))
            clock.advance(by: .seconds(3_600))
        }
        let later = FCMCredentialFault.unavailable(after: nil)
        #expect(faults == [later, later, nil, later, later, .refused])
    }

    @Test("After a fault nobody asks again before the wait is over: no storm")
    func backOff() async throws {
        let web = ScriptedWeb([ScriptedWeb.answer(429, "", retryAfter: "30"), ScriptedWeb.token("a")])
        let credential = try credential(web)
        for _ in 0..<50 { #expect(await fault(credential) == .unavailable(after: .seconds(30))) }
        #expect(web.requests.value.count == 1)
        clock.advance(by: .seconds(30))
        #expect(await fault(credential) == nil)
        #expect(web.requests.value.count == 2)
    }

    @Test("A refused token is replaced once; a refused replacement means the account is wrong")
    func refusedToken() async throws {
        let web = ScriptedWeb(["a", "b", "c", "d"].map { ScriptedWeb.token($0) })
        let credential = try credential(web)
        let first = try await credential.token()
        #expect(await credential.refused(first))
        #expect(await credential.refused(first))
        let second = try await credential.token()
        #expect(second.serial == 2)
        // Sent with the old one, answered after the new one came: no fault of the new one.
        #expect(await credential.refused(first))
        #expect(await !credential.refused(second))
        let third = try await credential.token()
        await credential.accepted(third)
        let settled = try await credential.token()
        #expect(settled.serial == 3)
        #expect(await credential.refused(settled))
    }

    @Test("A token without a lifetime is taken for an hour's")
    func noLifetime() async throws {
        let web = ScriptedWeb([ScriptedWeb.answer(200, "{\"access_token\":\"a\"}"), ScriptedWeb.token("b")])
        let credential = try credential(web)
        #expect(try await credential.token().serial == 1)
        clock.advance(by: .seconds(3000))
        #expect(try await credential.token().serial == 1)
        clock.advance(by: .seconds(600))
        #expect(try await credential.token().serial == 2)
    }

    @Test(
        "Key files that are none are refused",
        arguments: [
            "type", "project_id", "private_key_id", "private_key", "client_email", "token_uri"
        ])
    func incomplete(name: String) throws {
        let broken = try file { $0[name] = .string(name == "token_uri" ? "http://plain" : "") }
        let code: FCMError.Code = name == "private_key" ? .badSigningKey : .malformedServiceAccount
        #expect(throws: FCMError(code)) { try FCMServiceAccount(file: broken) }
        #expect(throws: FCMError(.malformedServiceAccount)) {
            try FCMServiceAccount(file: Secret(Array("[]".utf8)))
        }
    }
    @Test("A key file that an editor has saved with a byte order mark is read; the app's own file is none")
    func editors() throws {
        let marked = try file().reveal { Secret([0xEF, 0xBB, 0xBF] + $0) }
        #expect(try FCMServiceAccount(file: marked).project == FCMServiceAccount(file: file()).project)
        let app = Secret(Array(#"{"project_info":{"project_id":"acme"},"client":[]}"#.utf8))
        #expect(throws: FCMError(.malformedServiceAccount)) { try FCMServiceAccount(file: app) }
        #expect(FCMError(.malformedServiceAccount).sentence.contains("google-services.json"))
    }
}
