// guide: begin
import ZulipPush

/// The notifications of one account on this phone.
struct AccountNotifications {
    /// Built into the app: what `sealbell keys new zulip` printed.
    static let bouncerKey = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="

    /// Keep `device.keys` in the keychain, out of backups.
    private(set) var device: ZulipDevice
    private var random = SystemRandomNumberGenerator()

    init(realmURL: String, userID: Int64, keys: [HeldPushKey] = []) {
        device = ZulipDevice(account: ZulipAccount(realmURL: realmURL, userID: userID), keys: keys)
    }

    /// At each start, and when the system gives another token: what to send to the server's
    /// `mobile_push/register`, or `nil` when it knows everything.
    mutating func register(
        apnsToken: String, server: ZulipDeviceState, now: UnixTime
    ) throws -> DeviceRegistrationCall? {
        device.tendKeys(now: now, using: &random)
        device.observe(server, now: now)
        let token = DevicePushToken(kind: .apns, token: Secret(apnsToken.utf8), appID: "org.acme.chat")
        return try device.register(
            server, token: token, bouncerKey: Self.bouncerKey, now: now, using: &random)
    }

    /// In the notification service extension: the text for the screen, from the members `push_key_id` and
    /// `encrypted_data` of what arrived.
    func text(pushKeyID: UInt32, encryptedData: String) throws -> String? {
        let notification = try device.open(
            pushKeyID: pushKeyID, encryptedData: Secret(encryptedData.utf8))
        return switch notification?.body {
        case .message(let message): "\(message.senderName): \(message.content)"
        case .test: "Push works."
        // Messages to take off the screen, and what a later version of Zulip sends.
        case .remove, nil: nil
        }
    }
}
// guide: end
