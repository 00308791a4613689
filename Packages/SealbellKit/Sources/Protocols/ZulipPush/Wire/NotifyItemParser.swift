import PushModel
import WireFormats

/// Reads items one after the other, with one buffer for all their payloads.
struct NotifyItemParser {
    private var writer: JSONWriter

    /// - Parameter body: the request's bytes. Rewritten, an item is longer by no more than the `aps` that it
    ///   may lack. All the room is wiped at the end, so it is no larger than it must be.
    init(body: Int) { writer = JSONWriter(reserving: min(body + 256, 8 << 10)) }

    /// What an item holds, borrowed from the request's body. A member of a wrong form is as one that is
    /// missing: whether it matters depends on what else the item has (§14.1).
    private struct Members {
        var tokenID: TokenID?
        var hasTokenID = false
        var deviceID: Int64?
        var apns: NotifyItem.Target?
        var fcm: NotifyItem.Target?
        /// An item with `http_headers` is for APNs (§5.5), whatever else it has.
        var hasHeaders = false
        var hasPayload = false
        var pushKeyID: UInt32?
        var accountID: Int64?
        var data: JSONStringSlice?
        var aps: UnsafeRawBufferPointer?
        /// An `aps` that is no object: wrong for APNs, and one more member to ignore for FCM.
        var hasForeignAps = false
        var hasContent = false
        var content: JSONStringSlice?
        /// Absent: high.
        var isUrgent: Bool? = true
    }

    /// An item of a call, in the form that its members say.
    enum Item {
        case given(NotifyItem)
        case sealed(SealedItem)
    }

    mutating func read(_ reader: inout JSONReader) throws -> Item {
        var members = Members()
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("token_id") {
                members.hasTokenID = true
                members.tokenID = try Self.text(&reader).flatMap { Self.tokenID($0) }
            } else if name.equals("device_id") {
                members.deviceID = try Self.integer(&reader)
            } else if name.equals("payload") {
                try Self.readPayload(&reader, &members)
            } else if name.equals("http_headers") {
                members.hasHeaders = true
                members.apns = try Self.readHeaders(&reader)
            } else if name.equals("fcm_priority") {
                members.fcm = try Self.text(&reader).flatMap { Self.priority($0) }
            } else if name.equals("encrypted_content") {
                members.hasContent = true
                members.content = try Self.text(&reader)
            } else if name.equals("priority") {
                members.isUrgent = try Self.text(&reader).flatMap { Self.isUrgent($0) }
            } else {
                try reader.skipValue()
            }
        }
        // The content decides, and no item has the marks of two forms (§14.1).
        if members.hasContent { return .sealed(try sealed(members)) }
        return .given(try given(members))
    }

    private func sealed(_ members: Members) throws -> SealedItem {
        guard !members.hasPayload, !members.hasTokenID, let id = members.deviceID,
            let content = members.content, let isUrgent = members.isUrgent
        else { throw ZulipError(.invalidRequest) }
        return SealedItem(deviceID: id, content: try Self.sealedContent(content), isUrgent: isUrgent)
    }

    private mutating func given(_ members: Members) throws -> NotifyItem {
        let target = members.hasHeaders ? members.apns : members.fcm
        guard let target, members.hasPayload, let data = members.data else {
            throw ZulipError(.invalidRequest)
        }
        // `token_id` says v12, and a device id beside it is one more member to ignore.
        let device: DeviceName
        writer.beginObject()
        if members.hasTokenID {
            guard let tokenID = members.tokenID, let pushKeyID = members.pushKeyID else {
                throw ZulipError(.invalidRequest)
            }
            device = .token(tokenID)
            writer.key("push_key_id")
            write(Int64(pushKeyID), target)
        } else {
            guard let deviceID = members.deviceID, let accountID = members.accountID else {
                throw ZulipError(.invalidRequest)
            }
            device = .number(deviceID)
            writer.key("push_account_id")
            write(accountID, target)
        }
        return try item(device, target, data, members)
    }

    /// A number for APNs, a text for FCM (§6).
    private mutating func write(_ id: Int64, _ target: NotifyItem.Target) {
        switch target {
        case .apns: writer.int(id)
        case .fcm: writer.stringOfInt(id)
        }
    }

    /// - Precondition: the payload has been begun, and its id written.
    private mutating func item(
        _ device: DeviceName, _ target: NotifyItem.Target, _ data: JSONStringSlice, _ members: Members
    ) throws -> NotifyItem {
        let limit: Int
        switch target {
        case .apns(_, let type):
            guard !members.hasForeignAps else { throw ZulipError(.invalidRequest) }
            limit = type.bodyLimitBytes
        case .fcm: limit = ZulipLimits.payloadBytes
        }
        writer.key("encrypted_data")
        let start = writer.bytes.count + 1
        guard start + data.raw.count <= limit else { throw ZulipError(.payloadTooLarge) }
        try write(data)
        let end = writer.bytes.count - 1
        if case .apns = target {
            writer.key("aps")
            if let aps = members.aps { writer.raw(aps) } else { writer.raw(NotifyItem.defaultAps) }
        }
        writer.endObject()
        guard writer.bytes.count <= limit else { throw ZulipError(.payloadTooLarge) }
        return NotifyItem(
            device: device, target: target, payload: writer.takeSecret(), ciphertext: start..<end,
            hasDefaultAps: target.kind == .apns && members.aps == nil)
    }

    /// Copies the ciphertext when it is canonical base64.
    private mutating func write(_ data: JSONStringSlice) throws {
        // Base64 needs no escape but may have one: some writers escape the slash.
        if data.hasEscapes {
            let plain = data.decoded()
            try withBytes(plain) { try Self.check($0) }
            withBytes(plain) { writer.string(escaped: $0) }
        } else {
            try Self.check(data.raw)
            writer.string(escaped: data.raw)
        }
    }

    private static func check(_ text: UnsafeRawBufferPointer) throws {
        guard let count = Base64.decodedCount(text), count > 0 else { throw ZulipError(.invalidRequest) }
        let strays = others.withUnsafeBufferPointer { others in
            text.dropLast(2).reduce(UInt8(0)) { $0 | others[Int($1)] }
        }
        guard strays == 0 else { throw ZulipError(.invalidRequest) }
        let tail = text.suffix(2)
        guard tail.allSatisfy({ isBase64($0) || $0 == 0x3D }),
            tail.first != 0x3D || tail.last == 0x3D
        else { throw ZulipError(.invalidRequest) }
    }

    /// By byte: 1 for those that Base64 does not have. Every push has some four hundred to look at.
    private static let others: [UInt8] = (UInt8.min ... .max).map { isBase64($0) ? 0 : 1 }

    @inline(__always)
    private static func isBase64(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B, 0x2F: true
        default: false
        }
    }

    /// The content of an item of the specification's own form, when it is canonical base64 of 1 to
    /// ``ZulipLimits/sealedContentCharacters`` characters.
    private static func sealedContent(_ text: JSONStringSlice) throws -> Secret {
        let most = ZulipLimits.sealedContentCharacters
        guard text.raw.count <= (text.hasEscapes ? 6 * most : most) else {
            throw ZulipError(.payloadTooLarge)
        }
        let content = text.secret()
        guard content.count <= most else { throw ZulipError(.payloadTooLarge) }
        try content.reveal { bytes in
            try check(bytes)
            guard hasNoStrayBits(bytes) else { throw ZulipError(.invalidRequest) }
        }
        return content
    }

    /// Whether the bits of the last digit that stand for nothing are zero (RFC 4648 §3.5).
    private static func hasNoStrayBits(_ text: UnsafeRawBufferPointer) -> Bool {
        let padding = text.suffix(2).count { $0 == 0x3D }
        guard padding > 0 else { return true }
        switch text[text.count - padding - 1] {
        // A, Q, g and w end in four zeros.
        case 0x41, 0x51, 0x67, 0x77: return true
        // And with these I, Y, o, 4, E, U, k, 0, M, c, s and 8 in two.
        case 0x45, 0x49, 0x4D, 0x55, 0x59, 0x63, 0x6B, 0x6F, 0x73, 0x30, 0x34, 0x38: return padding == 1
        default: return false
        }
    }

    // MARK: members

    /// A text; `nil` for a value of another type.
    private static func text(_ reader: inout JSONReader) throws(FormatError) -> JSONStringSlice? {
        try reader.stringOrSkip()
    }

    /// A number without fraction and exponent, within signed 64 bits; `nil` for any other value.
    private static func integer(_ reader: inout JSONReader) throws(FormatError) -> Int64? {
        try reader.numberOrSkip()?.int64
    }

    private static func tokenID(_ text: JSONStringSlice) -> TokenID? {
        text.hasEscapes ? withBytes(text.decoded()) { TokenID($0) } : TokenID(text.raw)
    }

    private static func readPayload(_ reader: inout JSONReader, _ members: inout Members) throws {
        members.hasPayload = true
        members.pushKeyID = nil
        members.accountID = nil
        members.data = nil
        members.aps = nil
        members.hasForeignAps = false
        guard try reader.beginObjectOrSkip() else { return }
        while let name = try reader.nextMember() {
            if name.equals("push_key_id") {
                members.pushKeyID = try integer(&reader).flatMap { UInt32(exactly: $0) }
            } else if name.equals("push_account_id") {
                members.accountID = try integer(&reader)
            } else if name.equals("encrypted_data") {
                members.data = try text(&reader)
            } else if name.equals("aps") {
                // Any object passes through as it is written; what Apple refuses, Apple refuses (§5.5). The
                // reader bounds its depth, and the body's limit its size.
                members.hasForeignAps = try reader.peek() != .object
                let value = try reader.skipValue()
                members.aps = members.hasForeignAps ? nil : value
            } else {
                try reader.skipValue()
            }
        }
    }

    /// `nil` for headers of a wrong form.
    private static func readHeaders(_ reader: inout JSONReader) throws(FormatError) -> NotifyItem.Target? {
        guard try reader.beginObjectOrSkip() else { return nil }
        var priority: UInt8?
        var type: APNsPushType?
        while let name = try reader.nextMember() {
            if name.equals("apns_priority") {
                priority = try integer(&reader).flatMap { [10, 5, 1].contains($0) ? UInt8($0) : nil }
            } else if name.equals("apns_push_type") {
                type = try text(&reader).flatMap { pushType($0) }
            } else {
                try reader.skipValue()
            }
        }
        guard let priority, let type else { return nil }
        return .apns(priority: priority, type)
    }

    /// The seven types that this protocol knows (§5.5).
    private static func pushType(_ text: JSONStringSlice) -> APNsPushType? {
        if text.equals("alert") { return .alert }
        if text.equals("background") { return .background }
        let others: [APNsPushType] = [.voip, .complication, .fileprovider, .mdm, .liveactivity]
        return others.first { $0.rawValue == text.string() }
    }

    private static func priority(_ text: JSONStringSlice) -> NotifyItem.Target? {
        if text.equals("high") { return .fcm(.high) }
        if text.equals("normal") { return .fcm(.normal) }
        return nil
    }

    /// §14.6.
    private static func isUrgent(_ text: JSONStringSlice) -> Bool? {
        if text.equals("high") { return true }
        if text.equals("low") { return false }
        return nil
    }
}
