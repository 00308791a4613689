package import PushModel
package import SealbellKit
package import WireFormats

/// What a push service delivered, in either form of data: that of deployed servers (`encryptedMessage`,
/// `chatId`, `publicKey`), that of the specification (`message`, `chat_id`, `installation_ids`), or both.
package struct DeliveredData: Sendable {
    /// SHAKE-256 of a chat id; `nil`: not told.
    var chat: Secret?
    /// SHAKE-256 of the account's key; `nil`: not told.
    var account: Secret?
    var installations: [Secret] = []
    /// The encrypted message; `nil`: there is none.
    var message: Secret?

    /// Finds the data in what a push service delivered, as JSON.
    ///
    /// - Throws: `.foreignPush` for what is not of this protocol, which an app may have use for elsewhere.
    package init(delivered json: Secret) throws(StatusError) {
        guard let found = Delivered.find(DeliveredData.self, in: json) else {
            throw StatusError(.foreignPush)
        }
        self = found
    }

    private static func list(_ json: UnsafeRawBufferPointer) throws(FormatError) -> [Secret] {
        var reader = JSONReader(json)
        var list: [Secret] = []
        try reader.beginArray()
        while try reader.nextElement() {
            let text = try reader.readString().secret()
            if list.count < StatusLimits.deviceAccounts { list.append(text) }
        }
        try reader.end()
        return list
    }

    /// Bytes of hex digits with `0x` or without; `nil` for none and for anything else.
    private static func hex(_ text: Secret) -> Secret? {
        text.reveal { digits in
            let hasPrefix = digits.count >= 2 && digits[0] == 0x30 && (digits[1] | 0x20) == 0x78
            let rest = UnsafeRawBufferPointer(rebasing: digits[(hasPrefix ? 2 : 0)...])
            return rest.isEmpty ? nil : Hex.secret(rest)
        }
    }
}

extension DeliveredData: DeliveredMembers {
    package init() {}

    package var areThere: Bool { chat != nil && (account != nil || !installations.isEmpty) }

    package mutating func read(
        _ name: JSONStringSlice, _ kind: JSONKind, _ reader: inout JSONReader
    ) throws(FormatError) -> DeliveredMember {
        if kind == .string, name.equals("chatId") || name.equals("chat_id") {
            chat = Self.hex(try reader.readString().secret()) ?? chat
        } else if kind == .string, name.equals("publicKey") {
            account = Self.hex(try reader.readString().secret())
        } else if kind == .string, name.equals("encryptedMessage") {
            message = Self.hex(try reader.readString().secret()) ?? message
        } else if name.equals("installation_ids") {
            if kind == .string {
                // FCM carries texts alone.
                let text = try reader.readString().secret()
                installations = try text.reveal { (json) throws(FormatError) in try Self.list(json) }
            } else {
                installations = try Self.list(reader.skipValue())
            }
        } else if name.equals("message"), kind == .string {
            // FCM's own member of this name may hold the whole as JSON.
            let text = try reader.readString().secret()
            if let bytes = Self.hex(text) {
                message = message ?? bytes
            } else if text.reveal({ $0.first == UInt8(ascii: "{") }) {
                return .whole(text)
            }
        } else {
            return .foreign
        }
        return .own
    }
}
