import PushModel

/// `doctor --live` at Apple: a silent push to a device token that no device has. Apple looks at the provider
/// token first, then at topic and device.
extension APNsSettings {
    /// Bundle ids that are tried; further ones of an app would show the same team.
    private static let mostBundles = 8

    var trials: [ServiceTrial] {
        let token = Secret(repeatElement(UInt8(ascii: "0"), count: 64))
        return environments.flatMap { environment in
            bundles.prefix(Self.mostBundles).map { bundle in
                ServiceTrial(
                    environment: environment, subject: bundle,
                    message: .apns(
                        APNsMessage(
                            token: token, bundle: bundle, pushType: .background, priority: 5,
                            payload: Secret(#"{"aps":{"content-available":1}}"#.utf8))))
            }
        }
    }

    func verdict(on answer: Answer) -> TrialVerdict {
        switch answer.reason {
        case .badDeviceToken, .unregisteredAPNs, .expiredToken:
            .good("Apple takes key and team, and refuses only the device, which nobody has.")
        case .topicDisallowed, .deviceTokenNotForTopic, .badTopic, .missingTopic:
            .fault(
                "Apple takes the key, and its team may not push to this bundle id: look at bundles, and at "
                    + "the team under which the app is registered.")
        case .invalidProviderToken, .missingProviderToken:
            .fault(
                "Apple does not take the key: key_file, key_id and team belong together, and the key must "
                    + "not be revoked. Compare all three with the page of keys at Apple. If they are right, "
                    + "look at the clock: what is signed in the future is refused with the same word.")
        case .badEnvironmentKeyInToken, .badEnvironmentKeyIdInToken, .badCertificateEnvironment:
            .fault(
                "The key is for Apple's other environment only: make one for both, or set environment to the "
                    + "key's.")
        case .expiredProviderToken:
            .fault("Apple takes what we have just signed for old: this machine's clock is wrong.")
        case .tooManyProviderTokenUpdates:
            .warning(
                "Apple has seen too many tokens of this key within minutes, and has judged nothing; does "
                    + "another program use it? Try again in half an hour.")
        case .forbidden, .badCertificate, .unrelatedKeyIdInToken:
            .fault("Apple refuses the key (\(answer.reason.rawValue)): look at what it is allowed to do.")
        default: .passing(answer)
        }
    }
}
