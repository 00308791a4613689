// guide: begin
import AppSupport
import NextcloudPush

/// Push for one login on this phone.
struct AccountPush: Sendable {
    let phone: Phone<NextcloudDevice>

    /// At each start of the app.
    ///
    /// - Parameter kept: what `save` was given last; `nil` the first time.
    init(
        userID: String, loginName: String, appPassword: Secret, kept: Secret?,
        save: @escaping @Sendable (Secret) -> Void, send: @escaping @Sendable (Call) async -> CallAnswer
    ) throws {
        let login = Self.login(userID: userID, loginName: loginName, appPassword: appPassword)
        phone = Phone(try NextcloudDevice(login, keeping: kept), save: save, send: send)
    }

    /// Where your relay is, and what your app calls itself, is built into it.
    static func login(userID: String, loginName: String, appPassword: Secret) -> NextcloudLogin {
        NextcloudLogin(
            serverURL: "https://cloud.example.org", userID: userID, loginName: loginName,
            appPassword: appPassword, proxyServer: "https://push.example.org/acme-talk",
            userAgent: "Mozilla/5.0 (iOS) Nextcloud-Talk v20.1.0", voip: .strict)
    }

    /// When the system has given the tokens: of alerts, and of PushKit. Then the server is told, and the
    /// relay; nothing is sent where nothing has changed since yesterday.
    func use(alerts: [UInt8], calls: [UInt8]) async throws {
        try await phone.change { try $0.use(token: .apns(bytes: alerts), calls: .apns(bytes: calls)) }
        await phone.work()
    }

    /// At a logout: true when the app may forget what was kept; else once more at the next start.
    func leave() async throws -> Bool {
        try await phone.change { try $0.use(token: nil) }
        await phone.work()
        return await phone.device.isGone
    }

    /// In the notification service extension, which has what the app kept: the text for the screen.
    static func text(
        _ userInfo: [AnyHashable: Any], _ login: NextcloudLogin, kept: Secret
    ) throws -> String? {
        let device = try NextcloudDevice(login, keeping: kept)
        return switch try device.open(Delivered(userInfo: userInfo), at: now()) {
        // Of one that is to be fetched, `device.details(of: alert)` is the call that asks for the rest.
        case .show(.alert(let alert)), .fetch(.alert(let alert)): alert.subject
        // Numbers of notifications to take off the screen; `.withdrawalOfAll`: all of this login.
        case .remove: nil
        case .show, .fetch, .update, .ignore: nil
        }
    }
}
// guide: end
