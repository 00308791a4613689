import WireFormats

/// Whose quota a 429 of FCM is about (docs/push-services.md §4.4).
///
/// The project's comes from the front end that counts requests: `ErrorInfo` with `RATE_LIMIT_EXCEEDED` and
/// the quota's unit, `1/min/{project}`, without an `FcmError` (field). FCM's own, `QUOTA_EXCEEDED`, is of the
/// message's target, and `QuotaFailure` or the message say of which kind: "Topic quota exceeded." for a topic
/// (field). We send to devices alone, but the word is documented for the project's rate as well.
enum FCMQuota: Sendable, Hashable {
    case device, project
    /// FCM's own word, and nothing beside it.
    case untold

    private static let failureType = "type.googleapis.com/google.rpc.QuotaFailure"
    private static let infoType = "type.googleapis.com/google.rpc.ErrorInfo"

    /// - Parameters:
    ///   - error: the body's `error`; `nil` when it is in no form of Google's.
    ///   - code: of its `FcmError`.
    init(_ error: JSONValue?, code: String?) {
        let words = Self.words(of: error)
        if words.contains(where: { $0.contains("device") || $0.contains("registration token") }) {
            self = .device
        } else if code == "QUOTA_EXCEEDED", !words.contains(where: { $0.contains("project") }) {
            self = .untold
        } else {
            self = .project
        }
    }

    /// All that says what was exceeded, in small letters.
    private static func words(of error: JSONValue?) -> [String] {
        var words = [error?["message"]?.string]
        for detail in error?["details"]?.array ?? [] {
            switch detail["@type"]?.string {
            case failureType?:
                for violation in detail["violations"]?.array ?? [] {
                    words += [violation["subject"]?.string, violation["description"]?.string]
                }
            case infoType?:
                words += ["quota_unit", "quota_limit", "quota_metric"].map { detail["metadata"]?[$0]?.string }
            default: break
            }
        }
        return words.compactMap { $0?.lowercased() }
    }
}
