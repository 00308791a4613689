// guide: begin
import AppSupport
import SessionPush

/// Push for all accounts on this phone.
struct AccountWatch: Sendable {
    let phone: Phone<SessionDevice>

    /// At each start of the app.
    ///
    /// - Parameter kept: what `save` was given last; `nil` the first time.
    init(
        kept: Secret?, save: @escaping @Sendable (Secret) -> Void,
        send: @escaping @Sendable (Call) async -> CallAnswer
    ) throws {
        phone = Phone(try SessionDevice(Self.server(), keeping: kept), save: save, send: send)
    }

    /// Your relay, with the key that `sealbell keys new session` printed.
    static func server() throws -> SessionServer {
        let key = try RelayKey(text: "0900000000000000000000000000000000000000000000000000000000000000")
        return try SessionServer(host: "push.example.org", key: key)
    }

    /// When the system has given the token. Groups are watched in the same way, by
    /// `WatchedAccount(Subaccount(signingValue:of:memberSeed:))`.
    ///
    /// - Parameter path: three storage servers; without any the relay learns where the phone is.
    func start(token: [UInt8], seed: Secret, path: [OnionNode]) async throws {
        try await phone.change {
            try $0.use(token: .apns(bytes: token))
            try $0.watch(WatchedAccount(SessionAccountKey(seed: seed)))
            $0.path = path
        }
        await phone.work()
    }

    /// In the notification service extension, which has what the app kept: the message, to be decrypted, or
    /// `nil` where it is to be fetched, or is not for people.
    static func message(_ delivered: Delivered, kept: Secret) throws -> SessionMessage? {
        let device = try SessionDevice(server(), keeping: kept)
        return switch try device.open(delivered, at: now()) {
        case .show(let message): message
        // From the swarm of `message.account`, by `message.hash`.
        case .fetch: nil
        case .update, .remove, .ignore: nil
        }
    }

    /// In one transaction with the message, so that a repeat of its push is ignored.
    func stored(_ message: SessionMessage) async { await phone.change { $0.stored(message) } }
}
// guide: end
