/// Why the simulated APNs refuses a request: Apple's own reasons (docs/push-services.md §2.5).
public enum APNsReason: String, Sendable, Hashable, CaseIterable {
    /// `apns-collapse-id` is longer than 64 bytes.
    case badCollapseId = "BadCollapseId"
    /// The token has no form of one, or is not known in this environment.
    case badDeviceToken = "BadDeviceToken"
    /// `apns-expiration` is no number of seconds.
    case badExpirationDate = "BadExpirationDate"
    /// `apns-id` is no UUID.
    case badMessageId = "BadMessageId"
    /// `apns-priority` is none of 1, 5 and 10.
    case badPriority = "BadPriority"
    /// `apns-topic` is no topic.
    case badTopic = "BadTopic"
    /// The token is another app's.
    case deviceTokenNotForTopic = "DeviceTokenNotForTopic"
    /// A header is there twice.
    case duplicateHeaders = "DuplicateHeaders"
    /// There is no such `apns-push-type`.
    case invalidPushType = "InvalidPushType"
    /// The path has no token.
    case missingDeviceToken = "MissingDeviceToken"
    /// `apns-topic` is missing.
    case missingTopic = "MissingTopic"
    /// The body is no JSON object.
    case payloadEmpty = "PayloadEmpty"
    /// The key may not push to this topic, or the push type has another.
    case topicDisallowed = "TopicDisallowed"
    /// The key is not for this environment.
    case badEnvironmentKeyIdInToken = "BadEnvironmentKeyIdInToken"
    /// The JWT is older than an hour.
    case expiredProviderToken = "ExpiredProviderToken"
    /// The connection was used with another team's key before.
    case forbidden = "Forbidden"
    /// The JWT has a wrong form, signature, key or team.
    case invalidProviderToken = "InvalidProviderToken"
    /// There is no JWT.
    case missingProviderToken = "MissingProviderToken"
    /// The connection was used with another key before, and one of the two is bound to bundle ids.
    case unrelatedKeyIdInToken = "UnrelatedKeyIdInToken"
    /// The path is not `/3/device/…`.
    case badPath = "BadPath"
    /// The method is not POST.
    case methodNotAllowed = "MethodNotAllowed"
    /// The app was removed from the device.
    case unregistered = "Unregistered"
    /// The token was replaced by another.
    case expiredToken = "ExpiredToken"
    /// The body is longer than 4,096 bytes, with VoIP 5,120.
    case payloadTooLarge = "PayloadTooLarge"
    /// Too many pushes to one device.
    case tooManyRequests = "TooManyRequests"
    /// JWTs were renewed more often than every 20 minutes.
    case tooManyProviderTokenUpdates = "TooManyProviderTokenUpdates"
    /// Apple's own fault.
    case internalServerError = "InternalServerError"
    /// The server is going down.
    case shutdown = "Shutdown"

    /// The HTTP status it comes with: 400 to 503.
    public var status: Int {
        switch self {
        case .badCollapseId, .badDeviceToken, .badExpirationDate, .badMessageId, .badPriority, .badTopic,
            .deviceTokenNotForTopic, .duplicateHeaders, .invalidPushType, .missingDeviceToken, .missingTopic,
            .payloadEmpty, .topicDisallowed:
            400
        case .badEnvironmentKeyIdInToken, .expiredProviderToken, .forbidden, .invalidProviderToken,
            .missingProviderToken, .unrelatedKeyIdInToken:
            403
        case .badPath: 404
        case .methodNotAllowed: 405
        case .unregistered, .expiredToken: 410
        case .payloadTooLarge: 413
        case .tooManyRequests, .tooManyProviderTokenUpdates: 429
        case .internalServerError: 500
        case .shutdown: 503
        }
    }
}
