package import HTTP2Client
package import PushModel
import WireFormats

/// What an answer of FCM means (docs/push-services.md §4.4). Pure.
package enum FCMOutcomeTable {
    package typealias Reading = AnswerReading
    package typealias Cure = AnswerReading.Cure

    /// The text that distinguishes a malformed token from every other bad argument.
    private static let invalidToken = "The registration token is not a valid FCM registration token"
    private static let faultType = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
    private static let retryType = "type.googleapis.com/google.rpc.RetryInfo"
    /// The wait that Google asks for if a 429 names no time.
    private static let quotaWait: Duration = .seconds(60)

    /// - Parameters:
    ///   - status: the HTTP status of a whole answer.
    ///   - body: Google's own form is `{"error":{"status":…}}`. With any other body (the front end's HTML)
    ///     only the status is believed, as far as ``AnswerMeaning`` goes.
    ///   - retryAfter: `retry-after`, empty when absent.
    package static func judge(status: Int, body: [UInt8], retryAfter: [UInt8], now: UnixTime) -> Reading {
        if (200..<300).contains(status) { return Reading(.accepted, .ok) }
        // A body that is no JSON leaves the status to judge by.
        let error = (try? JSONValue.parse(body))?["error"]
        let wait =
            RetryAfter.parse(String(decoding: retryAfter, as: UTF8.self), now: now)
            ?? error?["details"]?.array?.lazy.filter { $0["@type"]?.string == retryType }
            .compactMap { $0["retryDelay"]?.string.flatMap(retryDelay) }.first
        // An unspecified error gives no reason: the status decides, as without an FcmError.
        let code = error?["details"]?.array?.lazy.filter { $0["@type"]?.string == faultType }
            .compactMap { $0["errorCode"]?.string }.first { $0 != "UNSPECIFIED_ERROR" }
        if let reading = passing(status, error, code, wait: wait) { return reading }
        guard let error, error["status"]?.string != nil || error["code"]?.int64 != nil else {
            return .unreadable(status, wait: wait)
        }
        return known(status, error, code) ?? novel(status, wait: wait)
    }

    /// Statuses whose meaning does not depend on the body.
    private static func passing(
        _ status: Int, _ error: JSONValue?, _ code: String?, wait: Duration?
    ) -> Reading? {
        switch status {
        case 429: quota(FCMQuota(error, code: code), wait)
        case 500: Reading(.retry(after: wait), .internalFCM)
        case 503: Reading(.retry(after: wait), .unavailable)
        default: nil
        }
    }

    /// A row of the table; `nil` when status and code are not in it.
    private static func known(_ status: Int, _ error: JSONValue, _ code: String?) -> Reading? {
        switch (status, code) {
        case (400, "INVALID_ARGUMENT") where error["message"]?.string == invalidToken:
            return Reading(.unregistered(since: nil), .invalidRegistrationToken)
        case (400, "INVALID_ARGUMENT"), (400, nil):
            return Reading(.rejected, .invalidArgument)
        case (401, "THIRD_PARTY_AUTH_ERROR"):
            // It is about one kind of address that a client chose, not about our account.
            return Reading(.misconfigured(.target), .thirdPartyAuthError)
        case (401, _):
            return Reading(.retry(after: nil), .unauthenticated, .renewToken)
        case (403, "SENDER_ID_MISMATCH"):
            return Reading(.unregistered(since: nil), .senderIdMismatch)
        case (403, nil):
            return Reading(.misconfigured(.credential), .permissionDenied)
        case (404, "UNREGISTERED"):
            return Reading(.unregistered(since: nil), .unregisteredFCM)
        case (404, nil):
            return Reading(.misconfigured(.credential), .notFound)
        case (409, nil) where error["status"]?.string == "ALREADY_EXISTS":
            // The other google.rpc.Code of 409, ABORTED, asks to be tried again; this one is final.
            return Reading(.rejected, .unknown)
        default:
            return nil
        }
    }

    /// A code that Google does not document: the status is still Google's.
    private static func novel(_ status: Int, wait: Duration?) -> Reading {
        switch AnswerMeaning(status: status) {
        case .accepted: Reading(.accepted, .ok)
        case .passes: Reading(.retry(after: wait), .unknown)
        case .passesElsewhere: Reading(.retry(after: wait), .unknown, .replaceConnection)
        // With an FcmError it is about this message, whatever the code.
        case .aboutSender, .aboutRequest: Reading(.rejected, .unknown)
        }
    }

    /// A device's quota fills up again all the time; Google asks for a minute where it is the project's.
    private static func quota(_ quota: FCMQuota, _ wait: Duration?) -> Reading {
        switch quota {
        case .device: Reading(.retry(after: wait), .deviceQuotaExceeded)
        case .untold: Reading(.retry(after: wait ?? quotaWait), .quotaExceeded)
        case .project: Reading(.retry(after: wait ?? quotaWait), .rateLimitExceeded)
        }
    }

    /// A duration in protocol buffers' JSON form: `30s`, `1.5s`, up to nine decimals. Rounded up to a
    /// millisecond, at most ``RetryAfter/limit``; `nil` for any other text and for negative spans.
    private static func retryDelay(_ text: String) -> Duration? {
        guard text.utf8.last == UInt8(ascii: "s") else { return nil }
        let parts = text.dropLast().split(separator: ".", omittingEmptySubsequences: false)
        func digits(_ part: Substring) -> Bool {
            !part.isEmpty && part.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        }
        guard (1...2).contains(parts.count), parts.allSatisfy(digits) else { return nil }
        guard let seconds = Int64(parts[0]), seconds < RetryAfter.limit.components.seconds else {
            return RetryAfter.limit
        }
        guard parts.count == 2 else { return .seconds(seconds) }
        guard parts[1].utf8.count <= 9, let fraction = Int64(parts[1]) else { return nil }
        let milliseconds = (0..<parts[1].utf8.count).reduce(fraction * 1000) { left, _ in (left + 9) / 10 }
        return .seconds(seconds) + .milliseconds(milliseconds)
    }
}
