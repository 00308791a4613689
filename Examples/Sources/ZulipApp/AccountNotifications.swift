// guide: begin
import ZulipPush

/// The notifications of one account on this phone.
struct AccountNotifications {
    /// Built into the app: what `sealbell keys new zulip` printed.
    static let bouncerKey = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="

    /// Keep `device.encoded()` where the app keeps its keys, out of backups.
    private(set) var device: ZulipRoutine
    private var random = SystemRandomNumberGenerator()

    /// After a login.
    init(realmURL: String, userID: Int64) {
        device = ZulipRoutine(account: ZulipAccount(realmURL: realmURL, userID: userID))
    }

    /// At each later start of the app.
    init(kept: Secret) throws { device = try ZulipRoutine(keeping: kept) }

    /// At each start: the answer to `GET /api/v1/server_settings`, what the system gave, and the phone's
    /// marker.
    mutating func start(
        serverSettings: Secret, apnsToken: String, marker: Secret, now: UnixTime
    ) throws -> [ZulipDeviceAction] {
        let start = ZulipStart(
            serverSettings: try ZulipServerSettings(serverSettings),
            build: try ZulipAppBuild(bouncerKey: Self.bouncerKey),
            token: DevicePushToken(kind: .apns, token: Secret(apnsToken.utf8), appID: "org.acme.chat"),
            marker: marker)
        return try take(.start(start), now: now)
    }

    /// Whatever else happens: an answer, the state, events, a timer, another token, a logout. Keep the
    /// device first, and then do what is returned.
    mutating func take(_ event: ZulipDeviceEvent, now: UnixTime) throws -> [ZulipDeviceAction] {
        try device.take(event, now: now, using: &random)
    }

    /// In the notification service extension: the text for the screen, from what arrived as JSON.
    static func text(
        delivered: Secret, accounts: [AccountNotifications], now: UnixTime
    ) throws -> String? {
        let opened = try ZulipRoutine.open(
            delivered: delivered, for: accounts.map(\.device), now: now)
        return switch opened.notification?.body {
        case .message(let message): "\(message.senderName): \(message.content)"
        case .test: "Push works."
        // Messages to take off the screen, and what a later version of Zulip sends.
        case .remove, nil: nil
        }
    }
}
// guide: end
