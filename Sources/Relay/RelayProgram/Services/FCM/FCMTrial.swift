import PushModel

/// `doctor --live` at Google: a message to be validated only, to a registration that nobody has. Google looks
/// at the access token first, then at the project, and then at the message.
extension FCMSettings {
    var trials: [ServiceTrial] {
        // In the form of real ones, without a device behind it.
        let address = address == .fid ? "nobody-has-this-fid-00" : "nobody:has-this-registration-token-000000"
        let message = FCMMessage(
            address: Secret(address.utf8), priority: .normal, data: Secret(#"{"test":"1"}"#.utf8))
        return [ServiceTrial(environment: .production, subject: "", message: .fcm(message))]
    }

    func verdict(on answer: Answer) -> TrialVerdict {
        switch answer.reason {
        case .unregisteredFCM, .invalidRegistrationToken, .invalidArgument, .senderIdMismatch,
            .thirdPartyAuthError:
            .good("Google takes service account and project, and refuses only the device, which nobody has.")
        case .permissionDenied:
            .fault(
                "Google knows the service account, and it may not send for this project: give it the role "
                    + "Firebase Cloud Messaging API Admin, and turn on the Firebase Cloud Messaging API.")
        case .notFound:
            .fault("Google knows no project of the service account's project_id: take the file anew.")
        case .unauthenticated:
            .fault("Google does not take its own access token: look at the clock, and at proxies on the way.")
        case .credentialUnavailable:
            if case .misconfigured = answer.outcome {
                .fault(
                    "Google gives no access token for the service account: its key was deleted, the account "
                        + "disabled, or this machine's clock is wrong.")
            } else {
                .fault(
                    "No access token could be had: either the token endpoint is not reached (see reach "
                        + "above), or it refuses the service account, because its key was deleted, the "
                        + "account disabled, or this machine's clock is wrong.")
            }
        default: .passing(answer)
        }
    }
}
