// guide: begin
import NextcloudPush

/// Push for one account on this phone.
struct AccountPush {
    /// Built into the app: where your relay is, and what your app calls itself.
    static let app = NextcloudAppBuild(
        proxyServer: "https://push.example.org/acme-talk",
        userAgent: "Mozilla/5.0 (iOS) Nextcloud-Talk v20.1.0", voip: .strict)

    /// Keep `device.key.pem` and `device.registration?.encoded()` in the keychain, where the notification
    /// service extension finds them.
    private(set) var device: NextcloudDevice
    private var random = SystemRandomNumberGenerator()

    /// - Parameter key: `RSAPrivateKey.generate()`, once for each account.
    init(account: NextcloudAccount, key: RSAPrivateKey, registration: DeviceRegistration? = nil) {
        device = NextcloudDevice(account: account, app: Self.app, key: key, registration: registration)
    }

    /// At each start, and when the system gives another token: the call to make, or `nil` when nothing has
    /// changed since yesterday.
    ///
    /// - Parameter capabilities: the server's answer to `device.capabilities()`.
    mutating func register(
        alertToken: String, voipToken: String, capabilities: Secret, now: UnixTime
    ) throws -> NextcloudCall? {
        let token = try NextcloudPushToken(alert: Secret(alertToken.utf8), voip: Secret(voipToken.utf8))
        return try call(device.register(token, at: NextcloudCapabilities(capabilities), now: now))
    }

    /// The answer to a call, from the server first and then from the relay: the next call, or `nil` when
    /// there is none. Without network the status is `nil`.
    mutating func answered(_ answer: NextcloudAnswer, now: UnixTime) throws -> NextcloudCall? {
        try call(device.settle(answer, now: now, using: &random))
    }

    private func call(_ step: NextcloudDevice.Step) throws -> NextcloudCall? {
        switch step {
        case .call(let call): call
        // `later` has the time at which to call `register` again.
        case .done, .later: nil
        case .failed(let error): throw error
        }
    }

    /// In the notification service extension: the text for the screen, from the members `subject` and
    /// `signature` of what arrived.
    func text(subject: String, signature: String) throws -> String? {
        let sealed = SealedSubject(subject: Secret(subject.utf8), signature: Secret(signature.utf8))
        return switch try device.open(sealed) {
        // Where `alert.needsDetails` is true, `device.details(of: alert)` asks the server for the rest.
        case .alert(let alert): alert.subject
        // Notifications to take off the screen, and what a later version of Nextcloud sends.
        case .withdrawal, .withdrawalOfAll, nil: nil
        }
    }
}
// guide: end
