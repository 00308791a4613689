// guide: begin
import MarmotPush

/// The notifications of one group on this phone. `GroupView` is what your MLS library answers.
struct GroupNotifications {
    private var device: MarmotDevice
    private let identity: Secp256k1KeyPair
    /// Over a table of yours with one row for each leaf: `LeafStorage`.
    private let store: TokenStore
    private var random = SystemRandomNumberGenerator()

    /// - Parameter server: built into the app: what `sealbell keys new nostr` printed.
    init(
        _ group: some GroupView, server: XOnlyKey, identity: Secp256k1KeyPair, store: TokenStore, now: Moment
    ) async throws {
        let settings = MarmotDevice.Settings(
            platform: .apple, server: server, format: .pushV1, relayHint: "wss://inbox.example.org")
        device = MarmotDevice(
            settings, identity: identity, tokens: try await store.load(group.groupID), now: now.wall)
        self.identity = identity
        self.store = store
    }

    /// At each start, and after joining: rumors to send into the group as application messages.
    mutating func register(
        apnsToken: [UInt8], hasJoined: Bool, in group: some GroupView, now: Moment
    ) async throws -> [NostrEvent] {
        let target = try DeviceTarget.apns(bytes: Secret(apnsToken))
        let due = try device.register(
            target, hasJoined ? .joined : .started, in: group, now: now, using: &random)
        try await store.save(due.changed, of: device.tokens, in: group.groupID, now: now.wall)
        return due.events
    }

    /// For each message of kind 447, 448, 449 or 450 that the group brought.
    mutating func receive(_ message: GroupMessage, in group: some GroupView, now: Moment) async throws {
        let receipt = device.receive(message, in: group, now: now, using: &random)
        try await store.save(receipt.changed, of: device.tokens, in: group.groupID, now: now.wall)
    }

    /// After the user has written into the group: what to publish, each wrap at its relays.
    mutating func wakeOthers(in group: some GroupView, now: Moment) throws -> [MarmotOrigin.Trigger] {
        let tokens = MarmotOrigin.choose(
            from: device.tokens, in: group, sender: identity.publicKey, now: now.wall)
        return try MarmotOrigin().notify(tokens, now: now.wall, using: &random).triggers
    }
}
// guide: end
