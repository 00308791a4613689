import Primitives
package import PushModel
import WireFormats

/// Receiving: what a push means to a phone with its accounts. A value, kept with the device.
package struct StatusInbox: Sendable {
    package enum Action: Sendable {
        /// The message is here.
        case show(StatusContent)
        /// It is not in the push, or does not open: fetch the chat's new messages from the store, or all of
        /// the account's when the chat is not known, and show those that are not on the phone yet.
        case fetch(StatusContent)
        case ignore(Reason)

        package enum Reason: Sendable, Hashable {
            /// It came before.
            case repeated
            /// It is for an account that is not on this phone.
            case foreignAccount
            /// The account wants no pushes.
            case switchedOff
        }
    }

    /// The oldest first.
    private var seen: [Digest16] = []
    private var rowKey: Secret

    package init(using generator: inout some RandomNumberGenerator) {
        rowKey = Draw.secret(32, &generator)
    }

    /// - Parameter accounts: those of the phone.
    /// - Parameter chats: ids of each account's chats, by its installation id, of which the push names one by
    ///   its hash; ``StatusLimits/knownChats`` of them are looked through.
    /// - Returns: what to do. A repeat is told by ``remember(_:)``, which is called once the message is
    ///   stored: what was shown but not stored comes again, rather than be lost.
    package func open(
        _ data: DeliveredData, accounts: [StatusInstallation], chats: [String: [Secret]] = [:]
    ) -> Action {
        guard let account = accounts.first(where: { Self.isFor($0, data) }) else {
            return .ignore(.foreignAccount)
        }
        guard account.isReceiving else { return .ignore(.switchedOff) }
        let hash = data.chat
        let chat = chats[account.installationID]?.prefix(StatusLimits.knownChats).first { id in
            hash.map { $0 == StatusHash.chat(id) } ?? false
        }
        let note = data.message.flatMap { MessagePreview.open($0, with: account.key) }
        let message = StatusContent(
            installationID: account.installationID, chat: chat, id: note?.messageID, content: note?.content,
            author: note?.author)
        guard message.content != nil else { return .fetch(message) }
        return seen.contains(digest(message)) ? .ignore(.repeated) : .show(message)
    }

    /// The message was stored: a repeat of its push is to be ignored. Keep ``row`` in the same
    /// transaction.
    package mutating func remember(_ message: StatusContent) {
        guard message.id != nil else { return }
        let digest = digest(message)
        guard !seen.contains(digest) else { return }
        seen.append(digest)
        if seen.count > StatusLimits.rememberedMessages { seen.removeFirst() }
    }

    /// Whether the push is for this account: it names the installation, or the key where no installation is
    /// named.
    private static func isFor(_ account: StatusInstallation, _ data: DeliveredData) -> Bool {
        if !data.installations.isEmpty {
            let id = Secret(account.installationID.utf8)
            return data.installations.contains { $0 == id }
        }
        guard let hash = data.account else { return false }
        return hash == StatusHash.person(account.key.point)
    }

    /// By account, author and message: somebody else cannot take a message's place in advance.
    private func digest(_ message: StatusContent) -> Digest16 {
        KeyedHash.digest16(key: rowKey) { hash in
            hash.update(message.installationID)
            hash.update(message.author?.compressed ?? [])
            if let id = message.id { hash.update(id) }
        }
    }

    // MARK: keeping

    /// The same phone after a restart.
    ///
    /// - Throws: `.malformedRow` for what ``row`` has not written.
    package init(row: [Secret]) throws(StatusError) {
        guard let first = row.first, let key = first.fromHex, key.count == StatusLimits.keyBytes,
            row.count <= 1 + StatusLimits.rememberedMessages
        else { throw StatusError(.malformedRow) }
        rowKey = key
        for text in row.dropFirst() {
            guard let digest = text.fromHex.flatMap({ $0.reveal { Digest16($0) } }) else {
                throw StatusError(.malformedRow)
            }
            seen.append(digest)
        }
    }

    /// What to keep over a restart.
    package var row: [Secret] { [rowKey.hexDigits] + seen.map { Secret(Hex.encode($0.bytes).utf8) } }
}
