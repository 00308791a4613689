import PushModel
import PushTesting

/// Answers of a push service, by what they mean.
extension Answer {
    static let sent = UnixTime(seconds: 1_800_000_000)
    static let accepted = Answer(.accepted, .ok, sentAt: sent)
    static let rejected = Answer(.rejected, .payloadTooLarge, sentAt: sent)
    static let badTopic = Answer(.misconfigured(.target), .topicDisallowed, sentAt: sent)
    static let badCredential = Answer(.misconfigured(.credential), .invalidProviderToken, sentAt: sent)
    static let badDeviceToken = Answer(.unregistered(since: nil), .badDeviceToken, sentAt: sent)

    /// Refused by ourselves: a token that no service could mean.
    static let badTokenHere = Answer(.unregistered(since: nil), .badDeviceToken, sentAt: sent, fate: .local)
    /// What has come of it could not be kept: our own store is out.
    static let notKept = Answer(.retry(after: nil), .noStoreForAnswer, sentAt: sent, fate: .local)
    /// REFUSED_STREAM, or no connection.
    static let notReached = Answer(.retry(after: nil), .notReached, sentAt: sent, fate: .unprocessed)
    /// No answer came; the service may have acted.
    static let silence = Answer(.retry(after: nil), .deadlineExceeded, sentAt: sent, fate: .unknown)

    /// The same, and its stream is still listened to.
    static func silence(
        until late: @Sendable @escaping () async -> Answer?
    ) -> Answer {
        var answer = silence
        answer.late = LateAnswer(late)
        return answer
    }

    /// The same, once a test lets it come.
    func after(_ gate: AwaitedCount) async -> Answer {
        await gate.wait(for: 1)
        return self
    }

    static func busy(_ after: Duration? = nil) -> Answer {
        Answer(.retry(after: after), .serviceUnavailable, sentAt: sent)
    }

    static func gone(at time: UnixTime) -> Answer {
        Answer(.unregistered(since: time), .unregisteredAPNs, sentAt: sent)
    }
}
