import PushModel
import WireFormats

extension ZulipNotification {
    /// Compact JSON in the order of deployed servers: no spaces, nothing escaped that need not be (§2).
    ///
    /// Messages are cut to 200 characters, removals to the 200 highest ids (§7).
    ///
    /// - Parameter padding: whether a member `padding` brings the text to one of ``ContentPadding/sizes``.
    func serialized(padding: ContentPadding) -> Secret {
        var writer = JSONWriter(reserving: 8 << 10)
        writer.beginObject()
        writer.member("realm_url", realmURL)
        if let realmName {
            writer.member("realm_name", realmName)
        }
        writer.member("user_id", userID)
        writer.key("type")
        switch body {
        case .message(let message):
            writer.string("message")
            message.write(&writer)
        case .remove(let ids):
            writer.string("remove")
            writer.beginArray("message_ids")
            for id in ids.sorted().suffix(ZulipLimits.removedMessages) { writer.int(id) }
            writer.endArray()
        case .test(let time):
            writer.string("test")
            writer.member("time", time)
        }
        padding.write(&writer)
        writer.endObject()
        return writer.takeSecret()
    }
}

extension ZulipMessage {
    fileprivate func write(_ writer: inout JSONWriter) {
        writer.member("message_id", id)
        writer.member("time", time)
        writer.member("sender_id", senderID)
        writer.member("sender_full_name", senderName)
        writer.member("sender_avatar_url", senderAvatarURL)
        writer.key("recipient_type")
        switch recipient {
        case .channel(let id, let name, let topic):
            writer.string("channel")
            writer.member("channel_id", id)
            if let name {
                writer.member("channel_name", name)
            }
            writer.member("topic", topic)
        case .direct(let userIDs):
            writer.string("direct")
            writer.beginArray("recipient_user_ids")
            for id in userIDs.sorted() { writer.int(id) }
            writer.endArray()
        }
        if let mentionedGroup {
            writer.member("mentioned_user_group_id", mentionedGroup.id)
            writer.member("mentioned_user_group_name", mentionedGroup.name)
        }
        writer.member("content", Self.cut(content))
    }
}

/// Whether sizes are hidden. The protocol has no padding of its own, but peers ignore unknown members, so a
/// member of spaces brings a content to one of a few sizes.
public enum ContentPadding: Sendable, Hashable {
    /// As deployed servers send.
    case none
    /// To the next of ``sizes``; what is larger than the last stays as it is.
    case steps

    /// Bytes of plaintext, the same in all profiles (§14.9). The last still fits APNs' 4096 bytes of body
    /// when sealed and in base64.
    public static let sizes = [512, 1_024, 2_048, 2_688]

    /// Writes the member, if any; the object's closing brace is still to come.
    func write(_ writer: inout JSONWriter) {
        guard self == .steps else { return }
        // What the member takes beside its value: ,"padding":"" and the closing brace.
        let fixed = 14
        guard let size = Self.sizes.first(where: { $0 >= writer.bytes.count + fixed }) else { return }
        writer.key("padding")
        let spaces = [UInt8](repeating: 0x20, count: size - (writer.bytes.count + 3))
        spaces.withUnsafeBytes { writer.string(escaped: $0) }
    }
}
