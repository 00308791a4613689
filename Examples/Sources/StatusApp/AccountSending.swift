import AppSupport
import StatusPush

/// Pushes for others: servers are told of the messages that this account sends.
struct AccountSending {
    /// Keep `origin.encoded()` in the keychain.
    private(set) var origin: StatusOrigin
    private var random = SystemRandomNumberGenerator()

    /// - Parameter chatKey: the account's. Servers never see it.
    init(chatKey: Secret, kept: Secret? = nil) throws {
        let key = try Secp256k1KeyPair(secret: chatKey)
        origin = try kept.map { try StatusOrigin(keeping: $0, key: key) } ?? StatusOrigin(key: key)
    }

    /// The user wants others to be pushed to, apart from wanting pushes. Nothing is sent before.
    mutating func choose(sending: Bool) { origin.isSending = sending }

    /// Topics whose messages go to `heard`.
    var topics: [String] { origin.topics }

    /// What to publish now, and contact codes whose history is to be read; come back at `nextDeadline`.
    mutating func due() -> StatusOriginWork { origin.due(now: now(), using: &random) }

    var nextDeadline: UnixTime? { origin.nextDeadline }

    mutating func heard(_ message: WakuMessage) { _ = origin.receive(message, now: now()) }

    /// After a history was read; its messages have gone to `heard`.
    mutating func readHistory(of topic: String) { origin.readHistory(of: topic) }

    /// Tells somebody's phone of a message that was sent.
    mutating func tell(_ person: PublicPoint, of id: Secret, text: Secret) throws {
        let message = StatusNotification(messageID: id, .direct, content: text)
        _ = try origin.notify(message, to: [person], now: now())
    }
}
