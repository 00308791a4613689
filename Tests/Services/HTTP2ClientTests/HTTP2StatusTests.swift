import APNs
import FCM
import HTTP2Client
import PushModel
import Testing

/// Whose words a body is in.
enum BodyForm: CaseIterable, Sendable {
    /// The service's own form, with words that nobody has told us.
    case own
    case empty
    /// A front end's or a proxy's.
    case page

    fileprivate static let html = Array("<!DOCTYPE html>\n<html lang=en>\n<title>Error</title>".utf8)
}

/// What is expected of a status alone. The sets are read from the standards, and not from the code.
private enum Expected {
    /// May succeed later: RFC 9110 §15.2, §15.4, §15.5.9, §15.5.10, §15.5.20 and §15.6, RFC 4918 §11.3 and
    /// §11.4, RFC 6585 §4, RFC 8470 §5.2; 499 is google.rpc.Code CANCELLED.
    static func passes(_ status: Int) -> Bool {
        let single = [408, 409, 421, 423, 424, 425, 429, 499]
        return single.contains(status) || (100...199).contains(status) || (300...399).contains(status)
            || (500...599).contains(status)
    }

    /// To be sent on another connection: §15.5.9, §15.5.20.
    static func isElsewhere(_ status: Int) -> Bool { status == 408 || status == 421 }

    /// About who asks, or the way there: §15.5.2 to §15.5.4, §15.5.8, §15.5.22.
    static func isOfSender(_ status: Int) -> Bool { [401, 402, 403, 407, 426].contains(status) }
}

@Suite("What each status means, in the service's own form, empty, and as a page", .timeLimit(.minutes(30)))
struct HTTP2StatusTests {
    private let now = UnixTime(seconds: 1_800_000_000)

    @Test("APNs", arguments: BodyForm.allCases)
    func apns(_ form: BodyForm) {
        let body: [UInt8] =
            switch form {
            case .own: Array(#"{"reason":"Novel"}"#.utf8)
            case .empty: []
            case .page: BodyForm.html
            }
        for status in 100...599 {
            let reading = APNsOutcomeTable.judge(status: status, body: body, retryAfter: [], now: now)
            let expected: (Outcome, Reason) =
                switch status {
                case 200...299: (.accepted, .ok)
                case _ where Expected.passes(status): (.retry(after: nil), .unknown)
                case _ where Expected.isOfSender(status):
                    form == .own
                        ? (.misconfigured(.credential), .unknown) : (.retry(after: nil), .foreignAnswer)
                case 404 where form != .own: (.retry(after: nil), .foreignAnswer)
                default:
                    form == .own ? (.rejected, .unknown) : (.retry(after: nil), .unreadable)
                }
            #expect(reading.outcome == expected.0 && reading.reason == expected.1, "\(status) \(form)")
            #expect(reading.cure == (Expected.isElsewhere(status) ? .replaceConnection : .none), "\(status)")
        }
    }

    @Test("FCM", arguments: BodyForm.allCases)
    func fcm(_ form: BodyForm) {
        for status in 100...599 {
            let body: [UInt8] =
                switch form {
                case .own: Array(#"{"error":{"code":\#(status),"message":"m","status":"NOVEL"}}"#.utf8)
                case .empty: []
                case .page: BodyForm.html
                }
            let reading = FCMOutcomeTable.judge(status: status, body: body, retryAfter: [], now: now)
            let isOwn = form == .own
            let expected: (Outcome, Reason) =
                switch status {
                case 200...299: (.accepted, .ok)
                case 429: (.retry(after: .seconds(60)), .rateLimitExceeded)
                case 500: (.retry(after: nil), .internalFCM)
                case 503: (.retry(after: nil), .unavailable)
                case _ where Expected.passes(status): (.retry(after: nil), .unknown)
                case 400 where isOwn: (.rejected, .invalidArgument)
                case 401 where isOwn: (.retry(after: nil), .unauthenticated)
                case 403 where isOwn: (.misconfigured(.credential), .permissionDenied)
                case 404 where isOwn: (.misconfigured(.credential), .notFound)
                case 404: (.retry(after: nil), .foreignAnswer)
                case _ where isOwn: (.rejected, .unknown)
                case _ where Expected.isOfSender(status): (.retry(after: nil), .foreignAnswer)
                default: (.retry(after: nil), .unreadable)
                }
            #expect(reading.outcome == expected.0 && reading.reason == expected.1, "\(status) \(form)")
            let cure: FCMOutcomeTable.Cure =
                status == 401 && isOwn
                ? .renewToken : Expected.isElsewhere(status) ? .replaceConnection : .none
            #expect(reading.cure == cure, "\(status) \(form)")
        }
    }

    @Test("Of 409 Google's ABORTED is tried again, and what exists already is final")
    func conflicts() {
        for (word, outcome) in [("ABORTED", Outcome.retry(after: nil)), ("ALREADY_EXISTS", .rejected)] {
            let body = Array(#"{"error":{"code":409,"message":"m","status":"\#(word)"}}"#.utf8)
            let reading = FCMOutcomeTable.judge(status: 409, body: body, retryAfter: [], now: now)
            #expect(reading.outcome == outcome)
        }
    }

    @Test("What is no status at all counts as 5xx", arguments: [-1, 0, 99, 600, 999, .max, .min])
    func none(_ status: Int) {
        #expect(AnswerMeaning(status: status) == .passes)
    }
}
