// guide: begin
import AppSupport
import ZulipPush

/// The notifications of one login on this phone.
struct AccountNotifications: Sendable {
    /// Keeps the device saved, and makes its calls: `Examples/Sources/AppSupport/Phone.swift`.
    let phone: Phone<ZulipDevice>

    /// After a login, and at each start of the app with what was saved.
    init(
        _ login: ZulipLogin, kept: Secret?, save: @escaping @Sendable (Secret) -> Void,
        send: @escaping @Sendable (Call) async -> CallAnswer
    ) throws {
        phone = Phone(try ZulipDevice(login, keeping: kept), save: save, send: send)
    }

    /// The same at each start, and in the notification service extension.
    static func login(realmURL: String, userID: Int64, email: String, apiKey: Secret) throws -> ZulipLogin {
        try ZulipLogin(
            realmURL: realmURL, userID: userID, email: email, apiKey: apiKey,
            // Built into the app: what `sealbell keys new zulip` printed.
            relayKey: RelayKey(text: "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="),
            bundleID: "org.acme.chat")
    }

    /// When the system has given its token, at each start. `nil`: the user logs out.
    func use(deviceToken: [UInt8]?) async throws {
        let token = try deviceToken.map { try DeviceToken.apns(bytes: $0) }
        try await phone.change { try $0.use(token: token) }
        await phone.work()
    }

    /// In the extension, which is another process: the text for the screen.
    static func text(userInfo: [AnyHashable: Any], login: ZulipLogin, kept: Secret) throws -> String? {
        let device = try ZulipDevice(login, keeping: kept)
        switch try device.open(Delivered(userInfo: userInfo), at: now()) {
        case .show(let note):
            guard case .message(let message) = note.body else { return "Push works." }
            return "\(message.senderName): \(message.content)"
        // Messages to take off the screen, and what a later version of Zulip sends.
        case .remove, .fetch, .update, .ignore: return nil
        }
    }
}
// guide: end
