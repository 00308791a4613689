/// Why a push service answered as it did: its own literal word, from a closed list.
///
/// A word we do not know becomes `.unknown`, so that a foreign text never reaches a log or a metric label.
package enum Reason: String, Sendable, Hashable, CaseIterable {
    // APNs (docs/push-services.md §2.5)
    case badCollapseId = "BadCollapseId"
    case badDeviceToken = "BadDeviceToken"
    case badExpirationDate = "BadExpirationDate"
    case badMessageId = "BadMessageId"
    case badPriority = "BadPriority"
    case badTopic = "BadTopic"
    case deviceTokenNotForTopic = "DeviceTokenNotForTopic"
    case duplicateHeaders = "DuplicateHeaders"
    case idleTimeout = "IdleTimeout"
    case invalidPushType = "InvalidPushType"
    case missingDeviceToken = "MissingDeviceToken"
    case missingTopic = "MissingTopic"
    case payloadEmpty = "PayloadEmpty"
    case topicDisallowed = "TopicDisallowed"
    case badCertificate = "BadCertificate"
    case badCertificateEnvironment = "BadCertificateEnvironment"
    case badEnvironmentKeyInToken = "BadEnvironmentKeyInToken"
    case badEnvironmentKeyIdInToken = "BadEnvironmentKeyIdInToken"
    case expiredProviderToken = "ExpiredProviderToken"
    case forbidden = "Forbidden"
    case invalidProviderToken = "InvalidProviderToken"
    case missingProviderToken = "MissingProviderToken"
    case unrelatedKeyIdInToken = "UnrelatedKeyIdInToken"
    case badPath = "BadPath"
    case methodNotAllowed = "MethodNotAllowed"
    case expiredToken = "ExpiredToken"
    case unregisteredAPNs = "Unregistered"
    case payloadTooLarge = "PayloadTooLarge"
    case tooManyProviderTokenUpdates = "TooManyProviderTokenUpdates"
    case tooManyRequests = "TooManyRequests"
    case internalServerError = "InternalServerError"
    case serviceUnavailable = "ServiceUnavailable"
    case shutdown = "Shutdown"
    // FCM (docs/push-services.md §4.4)
    case unregisteredFCM = "UNREGISTERED"
    case invalidArgument = "INVALID_ARGUMENT"
    case invalidRegistrationToken = "INVALID_REGISTRATION_TOKEN"
    case senderIdMismatch = "SENDER_ID_MISMATCH"
    case quotaExceeded = "QUOTA_EXCEEDED"
    case unavailable = "UNAVAILABLE"
    case internalFCM = "INTERNAL"
    case thirdPartyAuthError = "THIRD_PARTY_AUTH_ERROR"
    case unauthenticated = "UNAUTHENTICATED"
    case permissionDenied = "PERMISSION_DENIED"
    case notFound = "NOT_FOUND"
    // Ours
    case ok = "Ok"
    case unknown = "Unknown"
    case connectionLost = "ConnectionLost"
    case deadlineExceeded = "DeadlineExceeded"
    case notReached = "NotReached"
    case leaseRanOut = "LeaseRanOut"
    case tooLargeToSend = "TooLargeToSend"
    case credentialUnavailable = "CredentialUnavailable"
    case custodyEnded = "CustodyEnded"
}

/// What one push service's answer means for one push (docs/push-services.md §1).
package enum Outcome: Sendable, Hashable {
    /// The service took custody.
    case accepted
    /// Nobody's fault, or the service asks for time. `after` is the service's own word, a floor for the wait.
    case retry(after: Duration?)
    /// The address is dead since that moment; `nil`: since the request was sent.
    case unregistered(since: UnixTime?)
    /// This request is wrong for ever.
    case rejected
    /// Our credential, topic, project or environment is wrong. Never blames the address.
    case misconfigured(Scope)

    /// How far a misconfiguration reaches (decision 0048).
    package enum Scope: Sendable, Hashable {
        /// The key, JWT or OAuth grant: halts every lane of the credential.
        case credential
        /// The topic or target that a client chose: drops this push.
        case target
    }
}

/// The five words for counting, for marks and for metric labels.
package enum OutcomeKind: UInt8, Sendable, Hashable, CaseIterable {
    case accepted = 1, retry = 2, unregistered = 3, rejected = 4, misconfigured = 5

    package init(_ outcome: Outcome) {
        switch outcome {
        case .accepted: self = .accepted
        case .retry: self = .retry
        case .unregistered: self = .unregistered
        case .rejected: self = .rejected
        case .misconfigured: self = .misconfigured
        }
    }

    package var label: String {
        switch self {
        case .accepted: "accepted"
        case .retry: "retry"
        case .unregistered: "unregistered"
        case .rejected: "rejected"
        case .misconfigured: "misconfigured"
        }
    }
}

/// One answer of a push service, judged.
package struct Answer: Sendable {
    package var outcome: Outcome
    package var reason: Reason
    /// When the request left, by the wall clock: an answer without a time counts as of then.
    package var sentAt: UnixTime
    /// Whether the service answered and, if not, whether it may have processed the request all the same.
    package var fate: Fate

    package enum Fate: Sendable, Hashable {
        /// These are the service's own words.
        case answered
        /// No service has looked at the request.
        case unprocessed
        /// It may have been processed, or not.
        case unknown
        /// Refused here, without asking anybody: it says something of the push and nothing of the service.
        case local
    }

    package init(_ outcome: Outcome, _ reason: Reason, sentAt: UnixTime, fate: Fate = .answered) {
        self.outcome = outcome
        self.reason = reason
        self.sentAt = sentAt
        self.fate = fate
    }
}
