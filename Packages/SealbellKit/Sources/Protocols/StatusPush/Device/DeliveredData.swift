package import PushModel
import WireFormats

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

    /// Finds the data as JSON: beside `aps`, as FCM's `data`, or in a text that is JSON again.
    ///
    /// - Throws: `.foreignPush` for what is not of this protocol, which an app may have use for elsewhere.
    package init(delivered json: Secret) throws(StatusError) {
        guard json.count <= StatusLimits.deliveredBytes,
            // Whatever cannot be read is not of this protocol.
            let found = json.reveal({ try? Self.find($0, StatusLimits.deliveredDepth) })
        else { throw StatusError(.foreignPush) }
        self = found
    }

    private init() {}

    private static func find(
        _ json: UnsafeRawBufferPointer, _ depth: Int
    ) throws(FormatError) -> DeliveredData {
        guard depth > 0 else { throw FormatError(.tooDeep) }
        var reader = JSONReader(json)
        if try reader.peek() == .string {
            let text = try reader.readString().secret()
            try reader.end()
            return try text.reveal { (text) throws(FormatError) in try find(text, depth - 1) }
        }
        var data = DeliveredData()
        var inner: UnsafeRawBufferPointer?
        try reader.beginObject()
        while let name = try reader.nextMember() {
            let kind = try reader.peek()
            if kind == .string, name.equals("chatId") || name.equals("chat_id") {
                data.chat = Self.hex(try reader.readString().secret()) ?? data.chat
            } else if kind == .string, name.equals("publicKey") {
                data.account = Self.hex(try reader.readString().secret())
            } else if kind == .string, name.equals("encryptedMessage") {
                data.message = Self.hex(try reader.readString().secret()) ?? data.message
            } else if name.equals("installation_ids") {
                if kind == .string {
                    // FCM carries texts alone.
                    let text = try reader.readString().secret()
                    data.installations = try text.reveal { (json) throws(FormatError) in try Self.list(json) }
                } else {
                    data.installations = try Self.list(reader.skipValue())
                }
            } else if name.equals("message"), kind == .string {
                // FCM's own member of this name may hold the whole as JSON.
                let text = try reader.readString().secret()
                if let bytes = Self.hex(text) {
                    data.message = data.message ?? bytes
                } else if text.reveal({ $0.first == UInt8(ascii: "{") }) {
                    return try text.reveal { (text) throws(FormatError) in try find(text, depth - 1) }
                }
            } else if name.equals("data") || name.equals("message"), kind == .object || kind == .string {
                inner = try reader.skipValue()
            } else {
                try reader.skipValue()
            }
        }
        try reader.end()
        if data.chat != nil, data.account != nil || !data.installations.isEmpty { return data }
        guard let inner else { throw FormatError(.wrongType) }
        return try find(inner, depth - 1)
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
