import APNs
import FCM
import HTTP2Client
import PushModel

/// An answer as it comes over the wire. The relay's own outcome tables read it, and what they make of it is
/// tried as well.
struct WireAnswer: Sendable {
    /// What whoever sent it means: the law judges by this, and not by what the relay reads.
    enum Meaning: Sendable, Hashable {
        case accepted
        /// Not now.
        case busy
        /// The credential is refused.
        case credential
        /// The address is none, or is dead.
        case address
        /// The device has had enough for now.
        case quota
        /// It is not the push service that speaks.
        case foreign
    }

    let meaning: Meaning
    private let status: Int
    private var body: [UInt8] = []
    private var retryAfter = ""

    private init(_ meaning: Meaning, _ status: Int, _ body: String = "", after: Duration? = nil) {
        (self.meaning, self.status) = (meaning, status)
        self.body = Array(body.utf8)
        if let after { retryAfter = String(after.components.seconds) }
    }

    /// What a relay makes of it.
    func reading(
        of service: PushService, now: UnixTime
    ) -> (outcome: Outcome, reason: Reason, fate: Answer.Fate) {
        let retryAfter = Array(retryAfter.utf8)
        guard service == .apns else {
            let read = FCMOutcomeTable.judge(status: status, body: body, retryAfter: retryAfter, now: now)
            return (read.outcome, read.reason, read.fate)
        }
        let read = APNsOutcomeTable.judge(status: status, body: body, retryAfter: retryAfter, now: now)
        return (read.outcome, read.reason, read.fate)
    }
}

// MARK: - Words of both services (docs/push-services.md §2.5, §4.4)

extension WireAnswer {
    static let accepted = WireAnswer(.accepted, 200)

    private static func apns(
        _ meaning: Meaning, _ status: Int, _ reason: String, since: UnixTime? = nil, after: Duration? = nil
    ) -> WireAnswer {
        let timestamp = since.map { #","timestamp":\#($0.milliseconds)"# } ?? ""
        return WireAnswer(meaning, status, #"{"reason":"\#(reason)"\#(timestamp)}"#, after: after)
    }

    /// - Parameter code: of the FcmError; `nil` without one.
    private static func fcm(
        _ meaning: Meaning, _ status: Int, _ code: String?, after: Duration? = nil
    ) -> WireAnswer {
        let fault = code.map {
            #"{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"\#($0)"}"#
        }
        return WireAnswer(
            meaning, status, #"{"error":{"code":\#(status),"details":[\#(fault ?? "")]}}"#, after: after)
    }

    static func busy(_ service: PushService, after: Duration?) -> WireAnswer {
        service == .apns
            ? .apns(.busy, 503, "ServiceUnavailable", after: after)
            : .fcm(.busy, 503, "UNAVAILABLE", after: after)
    }

    static func refusedCredential(_ service: PushService) -> WireAnswer {
        service == .apns ? .apns(.credential, 403, "InvalidProviderToken") : .fcm(.credential, 403, nil)
    }

    /// The key is for the other environment.
    static let otherKey = apns(.credential, 403, "BadEnvironmentKeyIdInToken")

    /// An address that the service has never given out, or not to this app or environment.
    static func unknownAddress(_ service: PushService) -> WireAnswer {
        service == .apns
            ? .apns(.address, 400, "BadDeviceToken") : .fcm(.address, 403, "SENDER_ID_MISMATCH")
    }

    /// - Parameter since: when the service knew it; Google does not say.
    static func gone(_ service: PushService, since: UnixTime) -> WireAnswer {
        service == .apns
            ? .apns(.address, 410, "Unregistered", since: since) : .fcm(.address, 404, "UNREGISTERED")
    }

    static func overQuota(_ service: PushService, after: Duration?) -> WireAnswer {
        service == .apns
            ? .apns(.quota, 429, "TooManyRequests", after: after)
            : .fcm(.quota, 429, "QUOTA_EXCEEDED", after: after)
    }

    /// A page of something that stands before the service.
    static func page(_ status: Int) -> WireAnswer {
        WireAnswer(.foreign, status, "<!DOCTYPE html><html><title>Error \(status)</title></html>")
    }
}
