import AppSupport
import StatusPush

/// Pushes for others: servers are told of the messages that this account sends.
struct AccountSending {
    let origin: AppOrigin<StatusOrigin>

    /// - Parameter chatKey: the account's. Servers never see it.
    /// - Parameter kept: out of the keychain, `nil` the first time; `save` puts it there.
    /// - Parameter send: the app's own Waku node. It publishes; follows topics, then it answers `.taken`; and
    ///   asks a store for the history of a topic, each message of which goes to `heard` before its `.taken`.
    init(
        chatKey: Secret, kept: Secret?, save: @escaping @Sendable (Secret) -> Void,
        send: @escaping @Sendable (Call) async -> CallAnswer,
        settled: @escaping @Sendable (Settled) -> Void
    ) throws {
        origin = AppOrigin(
            try StatusOrigin(key: chatKey, keeping: kept), save: save, send: send, settled: settled)
    }

    /// The user wants others to be pushed to, apart from wanting pushes. Nothing is sent before.
    func choose(sending: Bool) async {
        await origin.change { $0.isSending = sending }
        await origin.work()
    }

    /// A message has arrived on a topic that the call follows, or is in the history that it asks for. Let the
    /// origin `work()` behind it, and once more at `origin.origin.nextDue`.
    func heard(_ message: WakuMessage, for call: Call) async {
        await origin.change { $0.answered(.waku(message), to: call, at: now()) }
    }

    /// Tells somebody's phone of a message that was sent.
    func tell(_ person: PublicPoint, of id: Secret, text: Secret) async throws -> UInt64? {
        let message = StatusNotification(messageID: id, .direct, content: text)
        let ids = try await origin.change { try $0.notify(message, to: [person], at: now()) }
        await origin.work()
        return ids.first
    }
}
