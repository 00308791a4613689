import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// What an origin makes of a relay's answers, a hostile one's among them (docs/conformance/zulip.md).
@Suite("Zulip origin: answers of the relay")
struct OriginAnswerTests {
    private typealias Row = (status: Int?, body: String, outcome: ZulipRegistrationOutcome)

    private static let lasting: [(status: Int, body: String, fault: RelayFault)] = [
        (403, #"{"code":"MISSING_REMOTE_REALM"}"#, .unknownRealm),
        (400, #"{"code":"INVALID_ZULIP_SERVER"}"#, .credentialsRefused),
        (400, #"{"code":"push_notifications_disallowed"}"#, .notAllowed),
        (401, #"{"code":"UNAUTHORIZED"}"#, .credentialsRefused), (401, "{}", .credentialsRefused),
        (400, "<html>", .notTheProtocol), (404, "", .notTheProtocol), (302, "", .notTheProtocol),
        (201, "{}", .notTheProtocol), (200, "<html>", .notTheProtocol), (200, "", .notTheProtocol),
        (200, #"{"result":"error","device_id":5}"#, .notTheProtocol),
        (200, "[1]", .notTheProtocol), (-1, "{}", .notTheProtocol), (Int.max, "{}", .notTheProtocol)
    ]

    @Test("A stale list that never ends is asked for a thousand pages, over restarts too")
    func endlessList() {
        var random = SystemRandomNumberGenerator()
        var pages = 0
        var after: Int64 = 0
        var isUnderWay = true
        while isUnderWay, pages < 2_000 {
            // As a server that keeps of a run what its next call needs.
            var run = StaleListRun(realm: "r", after: after, pages: pages)
            let body = #"{"result":"success","device_ids":[\#(after + 1)],"next_after":\#(after + 1)}"#
            let answer = CallAnswer(status: 200, body: Secret(body.utf8))
            let step = run.take(answer, now: UnixTime(seconds: 1), using: &random)
            #expect(step.ids == [after + 1] && step.fault == nil)
            (pages, after, isUnderWay) = (run.pages, run.after, run.isUnderWay)
        }
        #expect(pages == ZulipOriginLimits.stalePagesPerRun)
    }

    @Test("What time alone does not mend is tried again, and told", arguments: ZulipProfile.allCases)
    func lasting(_ profile: ZulipProfile) {
        for (status, body, fault) in Self.lasting {
            #expect(
                judge(status, body, profile) == .retry(tells: .registrationRefused(fault)),
                "\(status) \(body)")
        }
    }

    @Test(
        "What time alone mends is tried again, whatever the body says", arguments: ZulipProfile.allCases)
    func passing(_ profile: ZulipProfile) {
        #expect(ZulipOrigin.registrationOutcome(.none, profile: profile) == .retry(tells: nil))
        for status in [429, 500, 503, 599] {
            for body in ["", #"{"code":"REQUEST_EXPIRED"}"#, #"{"code":"INVALID_BOUNCER_PUBLIC_KEY"}"#] {
                #expect(judge(status, body, profile) == .retry(tells: nil), "\(status) \(body)")
            }
        }
    }

    @Test(
        "The two final codes are read from either member and in either case",
        arguments: ZulipProfile.allCases)
    func final(_ profile: ZulipProfile) {
        for member in ["code", "error_code"] {
            for code in ["REQUEST_EXPIRED", "request_expired", "Request_Expired"] {
                #expect(
                    judge(400, #"{"\#(member)":"\#(code)"}"#, profile)
                        == .failed(code: "REQUEST_EXPIRED", tells: .registrationExpired))
            }
            #expect(
                judge(400, #"{"\#(member)":"invalid_bouncer_public_key"}"#, profile)
                    == .failed(code: "INVALID_BOUNCER_PUBLIC_KEY", tells: nil))
        }
        // `code` decides where both are there, and a member that is no text is not there.
        #expect(
            judge(400, #"{"error_code":"request_expired","code":"INVALID_BOUNCER_PUBLIC_KEY"}"#, profile)
                == .failed(code: "INVALID_BOUNCER_PUBLIC_KEY", tells: nil))
        #expect(
            judge(400, #"{"error_code":"request_expired","code":5}"#, profile)
                == .failed(code: "REQUEST_EXPIRED", tells: .registrationExpired))
    }

    @Test("Other codes are final in the deployed profiles, and tried again in the specification's own")
    func others() {
        for code in ["BAD_REQUEST", "SOMETHING_NEW"] {
            let body = #"{"code":"\#(code)"}"#
            #expect(judge(400, body, .v12) == .failed(code: "BAD_REQUEST", tells: nil))
            #expect(judge(400, body, .v11) == .failed(code: "BAD_REQUEST", tells: nil))
        }
        #expect(
            judge(400, #"{"code":"BAD_REQUEST"}"#, .zap)
                == .retry(tells: .registrationRefused(.malformedRegistration)))
        #expect(
            judge(400, #"{"code":"NEW"}"#, .zap) == .retry(tells: .registrationRefused(.otherRefusal)))
    }

    @Test("A device id is a JSON integer from 1 to 2⁶³ − 1, exactly")
    func deviceIDs() {
        let refused = ZulipRegistrationOutcome.retry(tells: .registrationRefused(.notTheProtocol))
        for profile in [ZulipProfile.v11, .zap] {
            for id in [1, 9_007_199_254_740_992, 9_007_199_254_740_993, Int64.max] {
                let body = #"{"result":"success","msg":"","device_id":\#(id)}"#
                #expect(judge(200, body, profile) == .done(deviceID: id))
            }
            for text in [
                "0", "-1", "-9223372036854775808", "9223372036854775808", "99999999999999999999999999", "5.0",
                "5e0", "\"5\"", "null", "true", "[5]", "{}"
            ] {
                #expect(judge(200, #"{"device_id":\#(text)}"#, profile) == refused, "\(text)")
            }
            #expect(judge(200, "{}", profile) == refused)
        }
        #expect(judge(200, #"{"result":"success","msg":""}"#, .v12) == .done(deviceID: nil))
    }

    @Test("An answer that does not end is no answer of this protocol")
    func endless() {
        let long = #"{"device_id":5,"pad":""# + String(repeating: "x", count: 300_000) + "\"}"
        let deep = String(repeating: "[", count: 100_000)
        for body in [long, deep, #"{"device_id":5,"x":"# + deep] {
            #expect(
                judge(200, body, .zap) == .retry(tells: .registrationRefused(.notTheProtocol)))
            #expect(throws: ZulipError(.malformedAnswer)) {
                try ZulipOrigin.notifyAnswer(Secret(body.utf8), profile: .zap)
            }
        }
    }

    @Test("The wait before the n-th retry is drawn from d/2 to d, and a relay's wish is a lower bound")
    func delays() {
        var random = SeededRandom(seed: 3)
        for tries in [Int.min, 0, 1, 2, 3, 7, 8, 9, 100, Int.max] {
            let d = min(3_600, 30 * (1 << (tries > 1 ? min(tries - 1, 20) : 0)))
            var seen: Set<Bool> = []
            for _ in 0..<200 {
                let wait = ZulipOrigin.retryDelay(tries, using: &random)
                #expect(wait >= .seconds(d) / 2 && wait <= .seconds(d), "\(tries): \(wait)")
                seen.insert(wait > .seconds(d) * 3 / 4)
                let asked = ZulipOrigin.retryDelay(tries, asked: .seconds(7_200), using: &random)
                #expect(asked >= .seconds(7_200) && asked <= .seconds(10_800))
                let little = ZulipOrigin.retryDelay(tries, asked: .seconds(1), using: &random)
                #expect(little >= .seconds(1) && little <= .seconds(3_601))
            }
            #expect(seen.count == 2, "the draw at \(tries) uses half of its range")
        }
        let huge = ZulipOrigin.retryDelay(
            Int.max, asked: .seconds(Int64.max), first: .seconds(Int64.max), longest: .zero, using: &random)
        #expect(huge <= .seconds(86_400 + 3_600))
    }

    @Test("Each kind of dead ids is read exactly, each id once; the other kind is no answer")
    func dead() throws {
        let max = Int64.max
        let answer = try ZulipOrigin.notifyAnswer(
            notified(#""delete_device_ids":[5,9007199254740993,\#(max),5,0,-3]"#), profile: .zap)
        #expect(answer.deadDeviceIDs == [5, 9_007_199_254_740_993, max] && answer.deadTokenIDs.isEmpty)
        let tokens = try ZulipOrigin.notifyAnswer(
            notified(#""delete_token_ids":["AAAAAAAAAAE=","AAAAAAAAAAE="]"#))
        #expect(tokens.deadTokenIDs == [TokenID(1)] && tokens.deadDeviceIDs.isEmpty)
        let many = (1...1_001).map(String.init).joined(separator: ",")
        for members in [
            #""delete_token_ids":[]"#, #""delete_device_ids":["5"]"#, #""delete_device_ids":[5.0]"#,
            #""delete_device_ids":[9223372036854775808]"#, #""delete_device_ids":null"#,
            #""delete_device_ids":[\#(many)]"#
        ] {
            for profile in [ZulipProfile.v11, .zap] {
                #expect(throws: ZulipError(.malformedAnswer), "\(members.prefix(40))") {
                    try ZulipOrigin.notifyAnswer(notified(members), profile: profile)
                }
            }
        }
    }

    @Test("A notification is sent, tried again, refused, or ends its realm's pushes")
    func notifications() {
        func outcome(_ status: Int, _ body: String) -> ZulipNotifyOutcome {
            ZulipOrigin.notifyOutcome(CallAnswer(status: status, body: Secret(body.utf8)), profile: .zap)
        }
        #expect(ZulipOrigin.notifyOutcome(.none, profile: .zap) == .retry(fault: nil))
        #expect(outcome(503, "") == .retry(fault: nil) && outcome(429, "{}") == .retry(fault: nil))
        #expect(outcome(200, "<html>") == .retry(fault: .notTheProtocol))
        #expect(outcome(401, #"{"code":"UNAUTHORIZED"}"#) == .retry(fault: .credentialsRefused))
        #expect(outcome(403, #"{"code":"MISSING_REMOTE_REALM"}"#) == .realmIsOff(.unknownRealm))
        #expect(outcome(400, #"{"code":"PUSH_NOTIFICATIONS_DISALLOWED"}"#) == .realmIsOff(.notAllowed))
        // A notification is none of a phone's registration.
        #expect(outcome(400, #"{"code":"BAD_REQUEST"}"#) == .refused(.otherRefusal))
        let body = notified(#""delete_device_ids":[]"#)
        let outcomes = ZulipProfile.allCases.map {
            ZulipOrigin.notifyOutcome(CallAnswer(status: 200, body: body), profile: $0)
        }
        guard case .sent(let answer) = outcomes[1], outcomes[1] == outcomes[2] else {
            Issue.record("an answer with an empty list is one")
            return
        }
        #expect(answer.apple == 0 && answer.android == 0 && answer.canPush)
        #expect(outcomes[0] == .retry(fault: .notTheProtocol))
    }

    @Test("Every fault has a sentence, and no alert has the relay's own text")
    func sentences() {
        for fault in RelayFault.allCases { #expect(fault.sentence.hasSuffix(".")) }
        let outcome = judge(400, #"{"code":"<script>"}"#, .zap)
        #expect(outcome == .retry(tells: .registrationRefused(.otherRefusal)))
    }

    // MARK: parts

    private func judge(
        _ status: Int, _ body: String, _ profile: ZulipProfile
    ) -> ZulipRegistrationOutcome {
        ZulipOrigin.registrationOutcome(
            CallAnswer(status: status, body: Secret(body.utf8)), profile: profile)
    }

    private func notified(_ members: String) -> Secret {
        Secret(
            (#"{"result":"success","msg":"","apple_successfully_sent_count":0,"#
                + #""android_successfully_sent_count":0,\#(members)}"#).utf8)
    }
}
