import PushModel
import WireFormats

extension ZulipNotification {
    /// Reads a decrypted content.
    ///
    /// - Returns: `nil` for a type that is not known: such a notification is dropped silently.
    /// - Throws: `.malformedContent`; `.foreignContent` when it is not for `account`.
    static func read(_ plain: Secret, for account: ZulipAccount) throws(ZulipError) -> ZulipNotification? {
        let json = try plain.reveal { (bytes) throws(ZulipError) -> JSONValue in
            do {
                return try JSONValue.parse(
                    bytes, limitBytes: ZulipLimits.contentBytes, depthLimit: ZulipLimits.jsonDepth)
            } catch { throw ZulipError(.malformedContent) }
        }
        guard let members = json.object else { throw ZulipError(.malformedContent) }
        guard let type = members["type"]?.string, ["message", "remove", "test"].contains(type) else {
            return nil
        }
        let content = ContentMembers(members)
        let realmURL = try content.string("realm_url")
        let userID = try content.int("user_id")
        guard let origin = WebOrigin(realmURL) else { throw ZulipError(.malformedContent) }
        guard origin == WebOrigin(account.realmURL), userID == account.userID else {
            throw ZulipError(.foreignContent)
        }
        let body: Body =
            switch type {
            case "message": .message(try ZulipMessage(content))
            case "remove": .remove(try content.ints("message_ids"))
            default: .test(time: try content.int("time"))
            }
        return ZulipNotification(
            realmURL: realmURL, realmName: try content.optional("realm_name")?.text(), userID: userID,
            body: body)
    }
}

extension ZulipMessage {
    fileprivate init(_ content: ContentMembers) throws(ZulipError) {
        var group: Group?
        if let id = content.members["mentioned_user_group_id"]?.int64 {
            group = Group(id: id, name: try content.string("mentioned_user_group_name"))
        }
        self.init(
            id: try content.int("message_id"), time: try content.int("time"),
            content: try content.string("content"), senderID: try content.int("sender_id"),
            senderName: try content.string("sender_full_name"),
            senderAvatarURL: try content.string("sender_avatar_url"), recipient: try Self.recipient(content),
            mentionedGroup: group)
    }

    /// The presence of `channel_id` decides between channel and direct (§7).
    private static func recipient(_ content: ContentMembers) throws(ZulipError) -> Recipient {
        if content.members["channel_id"] != nil {
            return .channel(
                id: try content.int("channel_id"), name: try content.optional("channel_name")?.text(),
                topic: try content.string("topic"))
        }
        if content.members["recipient_user_ids"] != nil {
            return .direct(userIDs: try content.ints("recipient_user_ids"))
        }
        // Servers before feature level 429: a text of numbers, group conversations only.
        var ids: [Int64] = []
        for part in try content.string("pm_users").split(separator: ",", omittingEmptySubsequences: false) {
            guard let id = Int64(part) else { throw ZulipError(.malformedContent) }
            ids.append(id)
        }
        return .direct(userIDs: ids)
    }
}

/// Members by name and type; every miss is `.malformedContent`.
private struct ContentMembers {
    let members: JSONObject

    init(_ members: JSONObject) { self.members = members }

    func string(_ name: String) throws(ZulipError) -> String {
        guard let value = members[name] else { throw ZulipError(.malformedContent) }
        return try value.text()
    }

    func int(_ name: String) throws(ZulipError) -> Int64 {
        guard let value = members[name]?.int64 else { throw ZulipError(.malformedContent) }
        return value
    }

    func ints(_ name: String) throws(ZulipError) -> [Int64] {
        guard let values = members[name]?.array else { throw ZulipError(.malformedContent) }
        let numbers = values.compactMap(\.int64)
        guard numbers.count == values.count else { throw ZulipError(.malformedContent) }
        return numbers
    }

    /// `nil` where the member is absent or null.
    func optional(_ name: String) -> JSONValue? {
        guard let value = members[name], !value.isNull else { return nil }
        return value
    }
}

extension JSONValue {
    fileprivate func text() throws(ZulipError) -> String {
        guard let string else { throw ZulipError(.malformedContent) }
        return string
    }
}
