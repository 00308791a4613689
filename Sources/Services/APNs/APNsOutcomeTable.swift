package import HTTP2Client
package import PushModel
import WireFormats

/// What an answer of APNs means (docs/push-services.md §2.5). Pure.
package enum APNsOutcomeTable {
    package typealias Reading = AnswerReading
    package typealias Cure = AnswerReading.Cure

    /// - Parameters:
    ///   - status: the HTTP status of a whole answer.
    ///   - body: Apple's own form is JSON, `{"reason":…,"timestamp":…}`. With any other body only the status
    ///     is believed, as far as ``AnswerMeaning`` goes.
    ///   - retryAfter: `retry-after`, empty when absent. Apple is not known to send one.
    package static func judge(
        status: Int, body: [UInt8], retryAfter: [UInt8], now: UnixTime
    ) -> Reading {
        if (200..<300).contains(status) { return Reading(.accepted, .ok) }
        let wait = RetryAfter.parse(String(decoding: retryAfter, as: UTF8.self), now: now)
        // A body that is no JSON leaves the status to judge by.
        guard let json = try? JSONValue.parse(body), let word = json["reason"]?.string else {
            return .unreadable(status, wait: wait)
        }
        let reason = Reason.apns(word) ?? .unknown
        let since = json["timestamp"]?.int64.map(UnixTime.init(milliseconds:))
        return known(status, reason, since: since, wait: wait) ?? novel(status, wait: wait)
    }

    /// A row of the table; `nil` when the pair of status and reason is not in it.
    private static func known(_ status: Int, _ reason: Reason, since: UnixTime?, wait: Duration?) -> Reading?
    {
        switch (status, reason) {
        case (400, .badDeviceToken):
            Reading(.unregistered(since: nil), reason)
        case (400, .deviceTokenNotForTopic), (400, .missingTopic), (400, .topicDisallowed):
            Reading(.misconfigured(.target), reason)
        case (400, .badCollapseId), (400, .badExpirationDate), (400, .badMessageId), (400, .badPriority),
            (400, .badTopic), (400, .duplicateHeaders), (400, .invalidPushType), (400, .missingDeviceToken),
            (400, .payloadEmpty), (404, .badPath), (405, .methodNotAllowed), (413, .payloadTooLarge):
            Reading(.rejected, reason)
        case (400, .idleTimeout):
            Reading(.retry(after: wait), reason, .replaceConnection)
        case (403, .expiredProviderToken):
            Reading(.retry(after: nil), reason, .renewToken)
        case (403, .invalidProviderToken), (403, .missingProviderToken), (403, .forbidden),
            (403, .badCertificate),
            (403, .badCertificateEnvironment), (403, .badEnvironmentKeyInToken),
            (403, .badEnvironmentKeyIdInToken):
            Reading(.misconfigured(.credential), reason)
        case (403, .unrelatedKeyIdInToken):
            Reading(.retry(after: nil), reason, .replaceConnection)
        case (410, .unregisteredAPNs), (410, .expiredToken):
            Reading(.unregistered(since: since), reason)
        case (429, .tooManyRequests), (500, .internalServerError), (503, .serviceUnavailable):
            Reading(.retry(after: wait), reason)
        case (429, .tooManyProviderTokenUpdates), (503, .shutdown):
            Reading(.retry(after: wait), reason, .replaceConnection)
        default: nil
        }
    }

    /// A reason that Apple does not document, or one that does not belong to its status: it is ignored, but
    /// the status is Apple's.
    private static func novel(_ status: Int, wait: Duration?) -> Reading {
        switch AnswerMeaning(status: status) {
        case .accepted: Reading(.accepted, .ok)
        case .passes: Reading(.retry(after: wait), .unknown)
        case .passesElsewhere: Reading(.retry(after: wait), .unknown, .replaceConnection)
        case .aboutSender: Reading(.misconfigured(.credential), .unknown)
        case .aboutRequest: Reading(.rejected, .unknown)
        }
    }
}
