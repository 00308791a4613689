// guide: begin
import AppSupport
import StatusPush

/// Push for one account on this phone.
struct AccountPush {
    let phone: Phone<StatusDevice>
    private let setup: StatusSetup

    /// - Parameter chatKey: the account's; another one if servers are not to learn who registers.
    /// - Parameter kept: out of the keychain, `nil` the first time; `save` puts it there.
    /// - Parameter send: the app's own Waku node. It publishes, and follows topics: then it answers `.taken`.
    init(
        chatKey: Secret, servers: [RelayKey], installationID: String? = nil, kept: Secret?,
        save: @escaping @Sendable (Secret) -> Void, send: @escaping @Sendable (Call) async -> CallAnswer
    ) throws {
        setup = try StatusSetup(
            key: chatKey, bundleID: "org.example.chat", installationID: installationID, servers: servers)
        phone = Phone(try StatusDevice(setup, keeping: kept), save: save, send: send)
    }

    /// At each start, and whenever something changes: the user wants pushes. Nothing is sent before.
    func start(token: DeviceToken, settings: StatusSettings) async throws {
        try await phone.change {
            try $0.apply(settings)
            try $0.use(token: token)
        }
        await phone.work()
    }

    /// A message has arrived on a topic that the call follows. Once more also at `phone.device.nextDue`.
    func heard(_ message: WakuMessage, for follow: Call) async {
        await phone.change { $0.answered(.waku(message), to: follow, at: now()) }
        await phone.work()
    }

    /// The user wants no pushes any more, or logs out. Keep the chat key until this is true.
    func stop() async throws -> Bool {
        try await phone.change { try $0.use(token: nil) }
        await phone.work()
        return await phone.device.isGone
    }

    /// In the notification service extension: what to show; `nil`: fetch the chat's messages, or nothing.
    static func text(
        of delivered: Delivered, _ setup: StatusSetup, kept: Secret?, chats: [Secret]
    ) throws -> StatusContent? {
        var device = try StatusDevice(setup, keeping: kept)
        device.chats = chats
        switch try device.open(delivered, at: now()) {
        case .show(let message): return message
        case .fetch, .remove, .update, .ignore: return nil
        }
    }

    /// In the app, in one transaction with the message: repeats of its push are ignored from then on.
    func stored(_ message: StatusContent) async { await phone.change { $0.stored(message) } }
}
// guide: end

extension AccountPush {
    func text(of delivered: Delivered, kept: Secret?, chats: [Secret]) throws -> StatusContent? {
        try Self.text(of: delivered, setup, kept: kept, chats: chats)
    }
}
