import PushModel

/// Answers of a push service, by what they mean.
extension Answer {
    static let sent = UnixTime(seconds: 1_800_000_000)
    static let accepted = Answer(.accepted, .ok, sentAt: sent)
    static let rejected = Answer(.rejected, .payloadTooLarge, sentAt: sent)
    static let badTopic = Answer(.misconfigured(.target), .topicDisallowed, sentAt: sent)
    static let badCredential = Answer(.misconfigured(.credential), .invalidProviderToken, sentAt: sent)
    static let badDeviceToken = Answer(.unregistered(since: nil), .badDeviceToken, sentAt: sent)

    static func busy(_ after: Duration? = nil) -> Answer {
        Answer(.retry(after: after), .serviceUnavailable, sentAt: sent)
    }

    static func gone(at time: UnixTime) -> Answer {
        Answer(.unregistered(since: time), .unregisteredAPNs, sentAt: sent)
    }
}
