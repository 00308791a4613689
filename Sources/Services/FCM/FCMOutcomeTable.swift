package import PushModel
import WireFormats

/// What an answer of FCM means (docs/push-services.md §4.4). Pure.
package enum FCMOutcomeTable {
    package struct Reading: Sendable, Hashable {
        package let outcome: Outcome
        package let reason: Reason
        /// The access token is refused: try once with a new one.
        package let renewToken: Bool

        init(_ outcome: Outcome, _ reason: Reason, renewToken: Bool = false) {
            self.outcome = outcome
            self.reason = reason
            self.renewToken = renewToken
        }

        /// What is not the service's word was said before the service saw the request.
        package var fate: Answer.Fate { reason == .foreignAnswer ? .unprocessed : .answered }
    }

    /// Statuses by which a proxy or a front end speaks for itself. Where the body is not in Google's form,
    /// they are not Google's word about our account (decision 0079).
    private static let foreign: Set<Int> = [401, 403, 404, 407]

    /// The one text that tells a malformed token from every other bad argument.
    private static let invalidToken = "The registration token is not a valid FCM registration token"
    private static let faultType = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
    private static let retryType = "type.googleapis.com/google.rpc.RetryInfo"
    /// What Google asks to wait where a 429 names no time.
    private static let quotaWait: Duration = .seconds(60)

    /// - Parameters:
    ///   - status: the HTTP status of a whole answer.
    ///   - body: `{"error":{…}}`; whatever else (the front end's HTML) is judged by the status alone.
    ///   - retryAfter: `retry-after`, empty when absent.
    package static func judge(status: Int, body: [UInt8], retryAfter: [UInt8], now: UnixTime) -> Reading {
        if (200..<300).contains(status) { return Reading(.accepted, .ok) }
        // A body that is no JSON leaves the status to judge by.
        let error = (try? JSONValue.parse(body))?["error"]
        // An unspecified error names nothing: the status decides, as without an FcmError.
        let code = error?["details"]?.array?.lazy.filter { $0["@type"]?.string == faultType }
            .compactMap { $0["errorCode"]?.string }.first { $0 != "UNSPECIFIED_ERROR" }
        let wait =
            RetryAfter.parse(String(decoding: retryAfter, as: UTF8.self), now: now)
            ?? error?["details"]?.array?.lazy.filter { $0["@type"]?.string == retryType }
            .compactMap { $0["retryDelay"]?.string.flatMap(retryDelay) }.first
        let isOwnForm = error?["status"]?.string != nil || error?["code"]?.int64 != nil
        if !isOwnForm, foreign.contains(status) { return Reading(.retry(after: wait), .foreignAnswer) }
        switch (status, code) {
        case (400, "INVALID_ARGUMENT") where error?["message"]?.string == invalidToken:
            return Reading(.unregistered(since: nil), .invalidRegistrationToken)
        case (400, "INVALID_ARGUMENT"), (400, nil):
            return Reading(.rejected, .invalidArgument)
        case (401, "THIRD_PARTY_AUTH_ERROR"):
            // It is about one kind of address that a client chose, not about our account.
            return Reading(.misconfigured(.target), .thirdPartyAuthError)
        case (401, _):
            return Reading(.retry(after: nil), .unauthenticated, renewToken: true)
        case (403, "SENDER_ID_MISMATCH"):
            return Reading(.unregistered(since: nil), .senderIdMismatch)
        case (403, nil):
            return Reading(.misconfigured(.credential), .permissionDenied)
        case (404, "UNREGISTERED"):
            return Reading(.unregistered(since: nil), .unregisteredFCM)
        case (404, nil):
            return Reading(.misconfigured(.credential), .notFound)
        case (429, _):
            return quota(FCMQuota(error, code: code), wait)
        case (500, _):
            return Reading(.retry(after: wait), .internalFCM)
        case (503, _):
            return Reading(.retry(after: wait), .unavailable)
        case (400..<500, _):
            return Reading(.rejected, .unknown)
        default:
            return Reading(.retry(after: wait), .unknown)
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
