// guide: begin
import StatusPush

/// Push for one account on this phone: it registers at servers, and tells those of others.
struct AccountPush {
    /// Keep `device.encoded()`, `inbox.encoded()` and `origin.encoded()` in the keychain, where the
    /// notification service extension finds them.
    private(set) var device: StatusDevice
    private(set) var inbox: StatusInbox
    private(set) var origin: StatusOrigin
    private var random = SystemRandomNumberGenerator()

    /// - Parameter key: the account's chat key; a key of its own if servers are not to learn who registers.
    init(key: Secp256k1KeyPair, chatKey: Secp256k1KeyPair, kept: (Secret, Secret, Secret)? = nil) throws {
        if let kept {
            device = try StatusDevice(keeping: kept.0, key: key)
            inbox = try StatusInbox(keeping: kept.1)
            origin = try StatusOrigin(keeping: kept.2, key: chatKey)
        } else {
            device = StatusDevice(key: key, using: &random)
            inbox = StatusInbox(using: &random)
            origin = StatusOrigin(key: chatKey)
        }
    }

    /// The user asks for pushes, and apart from that for pushes to others. Nothing is sent before.
    mutating func choose(receiving: Bool, sending: Bool) {
        if receiving { device.switchOn() } else { device.switchOff() }
        origin.isSending = sending
    }

    /// At each start, and whenever something changes.
    mutating func start(token: String, servers: [PublicPoint], settings: StatusSettings) throws {
        device.use(try .apns(Secret(token.utf8), topic: "org.example.chat"))
        try device.use(servers: servers)
        try device.apply(settings)
    }

    /// Topics whose messages go to `heard`.
    var topics: [String] { device.topics + origin.topics }

    /// What to publish now, and contact codes whose history is to be read; come back at `nextDeadline`.
    mutating func due(now: UnixTime) -> StatusOriginWork {
        var work = origin.due(now: now, using: &random)
        work.messages += device.due(now: now, using: &random)
        return work
    }

    var nextDeadline: UnixTime? { [device.nextDeadline, origin.nextDeadline].compactMap(\.self).min() }

    mutating func heard(_ message: WakuMessage, now: UnixTime) {
        _ = device.receive(message, now: now)
        origin.receive(message, now: now)
    }

    /// After a history was read; its messages have gone to `heard`.
    mutating func readHistory(of topic: String) { origin.readHistory(of: topic) }

    /// Tells somebody's phone of a message that was sent.
    mutating func tell(_ person: PublicPoint, of id: Secret, text: Secret, now: UnixTime) throws {
        let message = StatusNotification(messageID: id, .direct, content: text)
        _ = try origin.notify(message, to: [person], now: now)
    }

    /// In the notification service extension: what arrived, as JSON. Once the message is stored, call
    /// `stored`, and keep `inbox.encoded()` in the same transaction.
    func action(for delivered: Secret, chats: [Secret]) throws -> StatusInbox.Action {
        inbox.open(
            try DeliveredData(delivered: delivered), accounts: [device],
            chats: [device.installationID: chats])
    }

    mutating func stored(_ message: StatusInbox.Message) { inbox.remember(message) }
}
// guide: end
