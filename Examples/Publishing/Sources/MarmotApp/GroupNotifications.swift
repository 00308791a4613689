// guide: begin
import AppSupport
import MarmotPublishing

/// The notifications of one group on this phone.
struct GroupNotifications {
    let phone: Phone<MarmotDevice>
    /// One for the whole app.
    private let publisher: MarmotPublisher

    /// - Parameters:
    ///   - identity: the account's secret key.
    ///   - server: built into the app: what `sealbell keys new nostr` printed.
    ///   - inbox: a relay at which that server listens, built in too.
    ///   - kept: out of the keychain, for this group; `nil` the first time. `save` puts it there.
    ///   - send: your MLS library. `say` is an application message of the group; to `hear` it answers
    ///     `.taken`, and brings each message of these kinds to `heard`.
    init(
        identity: Secret, server: RelayKey, inbox: String, kept: Secret?, publisher: MarmotPublisher,
        save: @escaping @Sendable (Secret) -> Void, send: @escaping @Sendable (Call) async -> CallAnswer
    ) throws {
        let setup = try MarmotSetup(
            identity: identity, platform: .apple, server: server, relayHint: inbox, format: .pushV1)
        phone = Phone(try MarmotDevice(setup, keeping: kept), save: save, send: send)
        self.publisher = publisher
    }

    /// At each start, and after each commit and with each new token.
    ///
    /// - Parameter token: `nil` where the user wants no push; others may be woken all the same.
    func start(_ group: MarmotGroup, token: DeviceToken?) async throws {
        try await phone.change {
            $0.group = group
            try $0.use(token: token)
        }
        await phone.work()
    }

    /// A message that the group brought: `.group`, as MLS proved it. Once more also at
    /// `phone.device.nextDue`.
    func heard(_ message: CallAnswer, for hear: Call) async {
        await phone.change { $0.answered(message, to: hear, at: now()) }
        await phone.work()
    }

    /// After the user has written into the group, when the message itself is published. `Unreached` says
    /// whose server could not be told: show it where you show that the app has trouble.
    func wakeOthers() async throws(Unreached) {
        try await publisher.wake(phone.device.tokensToWake(at: now()))
    }

    /// Whether a push asks this app to fetch its groups; in the notification service extension too.
    func isWake(_ delivered: Delivered) async throws -> Bool {
        if case .fetch = try await phone.device.open(delivered, at: now()) { true } else { false }
    }

    /// The publisher that all groups share. Keep `publisher.kept()` when the app goes to sleep.
    ///
    /// - Parameters:
    ///   - relays: those of the app, at which servers' lists are looked up.
    ///   - throughTor: a setting of the user's, off by default.
    static func makePublisher(
        relays: [String], server: XOnlyKey, inbox: String, throughTor: Bool, keeping kept: Secret?
    ) throws -> MarmotPublisher {
        let tor = throughTor ? MarmotPublisher.Tor(host: "127.0.0.1", port: 9050) : nil
        return try MarmotPublisher(
            .init(lookUp: relays, builtIn: [server: [inbox]], tor: tor), keeping: kept)
    }
}
// guide: end
