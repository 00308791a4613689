import PushModel
import WireFormats

/// Reads items one after the other, with one buffer for all their payloads.
struct NotifyItemParser {
    private var writer: JSONWriter

    /// - Parameter body: the request's bytes. Rewritten, an item is longer by no more than the `aps` that it
    ///   may lack. All the room is wiped at the end, so it is no larger than it must be.
    init(body: Int) { writer = JSONWriter(reserving: min(body + 256, 8 << 10)) }

    /// What an item holds, borrowed from the request's body.
    private struct Members {
        var tokenID: TokenID?
        var apns: NotifyItem.Target?
        var fcm: NotifyItem.Target?
        var hasPayload = false
        var pushKeyID: UInt32?
        var data: JSONStringSlice?
        var aps: UnsafeRawBufferPointer?
        /// An `aps` that is no object: wrong for APNs, and one more member to ignore for FCM.
        var hasForeignAps = false
    }

    mutating func read(_ reader: inout JSONReader) throws -> NotifyItem {
        var members = Members()
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("token_id") {
                members.tokenID = try Self.tokenID(reader.readString())
            } else if name.equals("payload") {
                try Self.readPayload(&reader, &members)
            } else if name.equals("http_headers") {
                members.apns = try Self.readHeaders(&reader)
            } else if name.equals("fcm_priority") {
                members.fcm = try Self.readPriority(&reader)
            } else {
                try reader.skipValue()
            }
        }
        // An item with `http_headers` is for APNs (§5.5), whatever else it has.
        guard let tokenID = members.tokenID, let target = members.apns ?? members.fcm, members.hasPayload,
            let pushKeyID = members.pushKeyID, let data = members.data
        else { throw ZulipError(.invalidRequest) }
        return try item(tokenID, target, pushKeyID, data, members)
    }

    private mutating func item(
        _ tokenID: TokenID, _ target: NotifyItem.Target, _ pushKeyID: UInt32, _ data: JSONStringSlice,
        _ members: Members
    ) throws -> NotifyItem {
        writer.beginObject()
        writer.key("push_key_id")
        let limit: Int
        switch target {
        case .apns(_, let type):
            guard !members.hasForeignAps else { throw ZulipError(.invalidRequest) }
            writer.int(Int64(pushKeyID))
            limit = type.bodyLimitBytes
        case .fcm:
            writer.stringOfInt(pushKeyID)
            limit = ZulipLimits.payloadBytes
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
            tokenID: tokenID, target: target, payload: writer.takeSecret(), ciphertext: start..<end,
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
        for byte in text.dropLast(2) where !isBase64(byte) { throw ZulipError(.invalidRequest) }
        let tail = text.suffix(2)
        guard tail.allSatisfy({ isBase64($0) || $0 == 0x3D }),
            tail.first != 0x3D || tail.last == 0x3D
        else { throw ZulipError(.invalidRequest) }
    }

    @inline(__always)
    private static func isBase64(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B, 0x2F: true
        default: false
        }
    }

    private static func tokenID(_ text: JSONStringSlice) throws -> TokenID {
        let id = text.hasEscapes ? withBytes(text.decoded()) { TokenID($0) } : TokenID(text.raw)
        guard let id else { throw ZulipError(.invalidRequest) }
        return id
    }

    private static func readPayload(_ reader: inout JSONReader, _ members: inout Members) throws {
        members.hasPayload = true
        members.pushKeyID = nil
        members.data = nil
        members.aps = nil
        members.hasForeignAps = false
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("push_key_id") {
                guard let id = try reader.readNumber().uint32 else { throw ZulipError(.invalidRequest) }
                members.pushKeyID = id
            } else if name.equals("encrypted_data") {
                members.data = try reader.readString()
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

    private static func readHeaders(_ reader: inout JSONReader) throws -> NotifyItem.Target {
        var priority: UInt8?
        var type: APNsPushType?
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("apns_priority") {
                priority = try reader.readNumber().uint32.flatMap {
                    [10, 5, 1].contains($0) ? UInt8($0) : nil
                }
                if priority == nil { throw ZulipError(.invalidRequest) }
            } else if name.equals("apns_push_type") {
                type = pushType(try reader.readString())
                if type == nil { throw ZulipError(.invalidRequest) }
            } else {
                try reader.skipValue()
            }
        }
        guard let priority, let type else { throw ZulipError(.invalidRequest) }
        return .apns(priority: priority, type)
    }

    /// The seven types that this protocol knows (§5.5).
    private static func pushType(_ text: JSONStringSlice) -> APNsPushType? {
        if text.equals("alert") { return .alert }
        if text.equals("background") { return .background }
        let others: [APNsPushType] = [.voip, .complication, .fileprovider, .mdm, .liveactivity]
        return others.first { $0.rawValue == text.string() }
    }

    private static func readPriority(_ reader: inout JSONReader) throws -> NotifyItem.Target {
        let text = try reader.readString()
        if text.equals("high") { return .fcm(.high) }
        if text.equals("normal") { return .fcm(.normal) }
        throw ZulipError(.invalidRequest)
    }
}
