package import PushModel
import WireFormats

/// What an answer of APNs means (docs/push-services.md §2.5). Pure.
package enum APNsOutcomeTable {
    /// What the sender does about the connection or the token, beside the outcome.
    package enum Cure: Sendable, Hashable {
        case none
        /// Send on another connection from now on, with the same token.
        case replaceConnection
        /// Try once with a new token, if ours is old enough to be replaced.
        case renewToken
    }

    package struct Reading: Sendable, Hashable {
        package let outcome: Outcome
        package let reason: Reason
        package let cure: Cure

        init(_ outcome: Outcome, _ reason: Reason, _ cure: Cure = .none) {
            self.outcome = outcome
            self.reason = reason
            self.cure = cure
        }

        /// What is not the service's word was said before the service saw the request.
        package var fate: Answer.Fate { reason == .foreignAnswer ? .unprocessed : .answered }
    }

    /// Statuses by which a proxy or a front end speaks for itself. Where the body is not in Apple's form,
    /// they are not Apple's word about our credential (decision 0079).
    private static let foreign: Set<Int> = [401, 403, 404, 407]

    /// - Parameters:
    ///   - status: the HTTP status of a whole answer.
    ///   - body: its JSON, `{"reason":…,"timestamp":…}`; whatever else is judged by the status alone.
    ///   - retryAfter: `retry-after`, empty when absent. Apple is not known to send one.
    package static func judge(
        status: Int, body: [UInt8], retryAfter: [UInt8], now: UnixTime
    ) -> Reading {
        if (200..<300).contains(status) { return Reading(.accepted, .ok) }
        // A body that is no JSON leaves the status to judge by.
        let json = try? JSONValue.parse(body)
        let word = json?["reason"]?.string
        let reason = word.flatMap { Reason.apns($0) } ?? .unknown
        let since = json?["timestamp"]?.int64.map(UnixTime.init(milliseconds:))
        let wait = RetryAfter.parse(String(decoding: retryAfter, as: UTF8.self), now: now)
        if word == nil, foreign.contains(status) { return Reading(.retry(after: wait), .foreignAnswer) }
        return known(status, reason, since: since, wait: wait) ?? byClass(status, wait: wait)
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

    /// Reasons that Apple has not told us, by status class.
    private static func byClass(_ status: Int, wait: Duration?) -> Reading {
        switch status {
        case 403: Reading(.misconfigured(.credential), .unknown)
        case 429: Reading(.retry(after: wait), .unknown)
        case 400..<500: Reading(.rejected, .unknown)
        default: Reading(.retry(after: wait), .unknown)
        }
    }
}
