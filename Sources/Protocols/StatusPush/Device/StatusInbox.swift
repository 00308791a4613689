import Primitives
public import PushModel
public import Secp256k1Keys
import WireFormats

/// Receiving: what a push means to a phone with its accounts. A value, kept between runs.
public struct StatusInbox: Sendable {
    /// What a push says.
    public struct Message: Sendable {
        /// The installation, and so the account, that it is for.
        public let installationID: String
        /// The id of the chat, as the app gave it; `nil` when it knows none with this hash.
        public let chat: Secret?
        /// The id of the message; `nil`: not told, fetch what is new.
        public let id: Secret?
        /// What the sender put in; `nil`: not in the push.
        public let content: Secret?
        /// Who sealed ``content``; `nil` together with it.
        public let author: PublicPoint?
    }

    public enum Action: Sendable {
        /// The message is here.
        case show(Message)
        /// It is not in the push, or does not open: fetch the chat's new messages from the store, or all of
        /// the account's when the chat is not known, and show those that are not on the phone yet.
        case fetch(Message)
        case ignore(Reason)

        public enum Reason: Sendable, Hashable {
            /// It came before.
            case repeated
            /// It is for an account that is not on this phone, or that wants no pushes.
            case foreignAccount
        }
    }

    /// The oldest first.
    private var seen: [Digest16] = []
    private var rowKey: Secret

    public init(using generator: inout some RandomNumberGenerator) {
        rowKey = Draw.secret(32, &generator)
    }

    /// - Parameter accounts: those of the phone.
    /// - Parameter chats: ids of each account's chats, by its installation id, of which the push names one by
    ///   its hash; ``StatusLimits/knownChats`` of them are looked through.
    /// - Returns: what to do. A repeat is told by ``remember(_:)``, which the app calls once the message is
    ///   stored: what was shown but not stored comes again, rather than be lost.
    public func open(
        _ data: DeliveredData, accounts: [StatusDevice], chats: [String: [Secret]] = [:]
    ) -> Action {
        guard let account = accounts.first(where: { Self.isFor($0, data) }), account.isReceiving else {
            return .ignore(.foreignAccount)
        }
        let hash = data.chat
        let chat = chats[account.installationID]?.prefix(StatusLimits.knownChats).first { id in
            hash.map { $0 == StatusHash.chat(id) } ?? false
        }
        let note = data.message.flatMap { MessageNote.open($0, with: account.key) }
        let message = Message(
            installationID: account.installationID, chat: chat, id: note?.messageID, content: note?.content,
            author: note?.author)
        guard message.content != nil else { return .fetch(message) }
        return seen.contains(digest(message)) ? .ignore(.repeated) : .show(message)
    }

    /// The message was stored: a repeat of its push is to be ignored. Keep ``encoded()`` in the same
    /// transaction.
    public mutating func remember(_ message: Message) {
        guard message.id != nil else { return }
        let digest = digest(message)
        guard !seen.contains(digest) else { return }
        seen.append(digest)
        if seen.count > StatusLimits.rememberedMessages { seen.removeFirst() }
    }

    /// Whether the push is for this account: it names the installation, or the key where no installation is
    /// named.
    private static func isFor(_ account: StatusDevice, _ data: DeliveredData) -> Bool {
        if !data.installations.isEmpty {
            let id = Secret(account.installationID.utf8)
            return data.installations.contains { $0 == id }
        }
        guard let hash = data.account else { return false }
        return hash == StatusHash.person(account.key.point)
    }

    /// By account, author and message: somebody else cannot take a message's place in advance.
    private func digest(_ message: Message) -> Digest16 {
        KeyedHash.digest16(key: rowKey) { hash in
            hash.update(message.installationID)
            hash.update(message.author?.compressed ?? [])
            if let id = message.id { hash.update(id) }
        }
    }

    // MARK: keeping

    /// The same phone after a restart.
    ///
    /// - Throws: `.malformedRow` for what ``encoded()`` has not written.
    public init(keeping kept: Secret) throws(StatusError) {
        guard let rows = KeptRows.read(kept, atMost: StatusLimits.deviceRowBytes), rows.count == 2,
            rows[0].count == 1, let key = rows[0][0].fromHex, key.count == 32,
            rows[1].count <= StatusLimits.rememberedMessages
        else { throw StatusError(.malformedRow) }
        rowKey = key
        for text in rows[1] {
            guard let digest = text.fromHex.flatMap({ $0.reveal { Digest16($0) } }) else {
                throw StatusError(.malformedRow)
            }
            seen.append(digest)
        }
    }

    public func encoded() -> Secret {
        KeptRows.write([[rowKey.hexDigits], seen.map { Secret(Hex.encode($0.bytes).utf8) }])
    }
}
