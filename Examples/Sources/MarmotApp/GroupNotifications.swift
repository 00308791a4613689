// guide: begin
import MarmotPublishing

/// The notifications of one group on this phone. `GroupView` is what your MLS library answers.
struct GroupNotifications {
    private var device: MarmotLeaf
    private let identity: Secp256k1KeyPair
    /// Over a table of yours with one row for each leaf: `LeafStorage`.
    private let store: TokenStore
    /// One for the whole app.
    private let publisher: MarmotPublisher
    private var random = SystemRandomNumberGenerator()

    /// - Parameters:
    ///   - server: built into the app: what `sealbell keys new nostr` printed.
    ///   - inbox: a relay at which that server listens, built in too.
    init(
        _ group: some GroupView, server: XOnlyKey, inbox: String, identity: Secp256k1KeyPair,
        store: TokenStore, publisher: MarmotPublisher, now: Moment
    ) async throws {
        let settings = MarmotLeaf.Settings(
            platform: .apple, server: server, format: .pushV1, relayHint: inbox)
        device = MarmotLeaf(
            settings, identity: identity, tokens: try await store.load(group.groupID), now: now.wall)
        self.identity = identity
        self.store = store
        self.publisher = publisher
    }

    /// At each start, and after joining: rumors to send into the group as application messages.
    ///
    /// - Parameter apnsToken: `nil` where the user wants no push; the group is then asked for the others'.
    mutating func register(
        apnsToken: [UInt8]?, hasJoined: Bool, in group: some GroupView, now: Moment
    ) async throws -> [NostrEvent] {
        guard let apnsToken else {
            return hasJoined ? device.ask(in: group, now: now, using: &random).events : []
        }
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

    /// After the user has written into the group, when the message itself is published. `Unreached` says
    /// whose server could not be told: show it where you show that the app has trouble.
    func wakeOthers(in group: some GroupView, now: Moment) async throws(Unreached) {
        let tokens = MarmotOrigin.choose(
            from: device.tokens, in: group, sender: identity.publicKey, now: now.wall)
        try await publisher.wake(tokens)
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
