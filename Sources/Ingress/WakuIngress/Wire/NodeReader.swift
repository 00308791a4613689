package import PushModel
import StatusPush
import WireFormats

/// Reads the answers of a node's REST interface. Payloads go from the answer into a `Secret` without becoming
/// text, and those of unwanted topics are not decoded.
///
/// Messages are `{"payload": base64, "contentTopic": text, "version": 1, "timestamp": nanoseconds, "meta":
/// base64, "ephemeral": bool}` with all but the first two left out at will, and any other member passed over.
/// go-waku writes `null` for an empty list and for what it does not know, and its store spells names with
/// underscores.
package enum NodeReader {
    /// The answer to a poll: a list of messages.
    ///
    /// - Parameter wants: asked for each message's content topic, by its id.
    /// - Throws: `.malformed` when the answer is no list. One that breaks off later is cut.
    package static func messages(
        _ body: Secret, wants: (UInt32) -> Bool
    ) throws(NodeFault) -> NodeBatch {
        try body.reveal { (raw) throws(NodeFault) in
            var reader = JSONReader(raw, depthLimit: depth)
            var batch = NodeBatch()
            do throws(FormatError) {
                if try reader.readNull() {
                    try reader.end()
                    return batch
                }
                try reader.beginArray()
            } catch {
                throw .malformed
            }
            do throws(FormatError) {
                while try reader.nextElement() {
                    guard batch.heard < WakuLimits.answerMessages else {
                        batch.isCut = true
                        return batch
                    }
                    _ = try message(&reader, into: &batch, wants)
                }
                try reader.end()
            } catch {
                batch.isCut = true
            }
            return batch
        }
    }

    /// The answer of a store: `{"messages": [{"message": …}], "paginationCursor": text}`.
    ///
    /// - Throws: `.malformed` when any of it cannot be read, or when the store says that it failed.
    package static func page(_ body: Secret, wants: (UInt32) -> Bool) throws(NodeFault) -> NodePage {
        do throws(FormatError) {
            return try body.reveal { (raw) throws(FormatError) in
                var reader = JSONReader(raw, depthLimit: depth)
                var page = NodePage()
                try reader.beginObject()
                while let name = try reader.nextMember() {
                    if name.equals("messages") {
                        try entries(&reader, into: &page, wants)
                    } else if name.equals("paginationCursor") || name.equals("pagination_cursor") {
                        page.cursor = try cursor(&reader)
                    } else if name.equals("statusCode") || name.equals("status_code") {
                        // What the store itself answered to the node.
                        guard try number(&reader) ?? 200 == 200 else { throw FormatError(.wrongType) }
                    } else {
                        try reader.skipValue()
                    }
                }
                try reader.end()
                return page
            }
        } catch {
            throw .malformed
        }
    }

    /// What `/health` says: `{"connectionStatus": …}` with more in newer nodes, a sentence in older ones.
    package static func health(_ body: Secret) -> WakuHealth {
        // An unreadable answer counts as unknown.
        let health = try? body.reveal { (raw) throws(FormatError) -> WakuHealth in
            var reader = JSONReader(raw, depthLimit: depth)
            var health = WakuHealth.unknown
            try reader.beginObject()
            while let name = try reader.nextMember() {
                guard name.equals("connectionStatus"), try reader.peek() == .string else {
                    try reader.skipValue()
                    continue
                }
                let status = try reader.readString()
                if status.equals("Connected") { health = .connected }
                if status.equals("PartiallyConnected") { health = .partlyConnected }
                if status.equals("Disconnected") { health = .alone }
            }
            try reader.end()
            return health
        }
        return health ?? .unknown
    }

    // MARK: Parts

    /// Messages are flat; what else a node adds is not deeper than this.
    private static let depth = 16
    /// A cursor is a hash of 32 bytes in hex or base64.
    private static let cursorBytes = 256

    private static func entries(
        _ reader: inout JSONReader, into page: inout NodePage, _ wants: (UInt32) -> Bool
    ) throws(FormatError) {
        if try reader.readNull() { return }
        try reader.beginArray()
        while try reader.nextElement() {
            guard page.batch.heard < WakuLimits.answerMessages else { throw FormatError(.tooLarge) }
            try reader.beginObject()
            while let name = try reader.nextMember() {
                guard name.equals("message"), try reader.peek() == .object else {
                    try reader.skipValue()
                    continue
                }
                if let timestamp = try message(&reader, into: &page.batch, wants) {
                    page.newest = max(page.newest ?? timestamp, timestamp)
                }
            }
        }
    }

    /// Members of one message, as they stand in the answer.
    private struct Parts {
        var payload: JSONStringSlice?
        var topic: JSONStringSlice?
        var meta: JSONStringSlice?
        var version: Int64?
        var timestamp: Int64?
        var isEphemeral = false
    }

    /// - Returns: its timestamp.
    private static func message(
        _ reader: inout JSONReader, into batch: inout NodeBatch, _ wants: (UInt32) -> Bool
    ) throws(FormatError) -> Int64? {
        batch.heard += 1
        guard try reader.peek() == .object else {
            try reader.skipValue()
            batch.malformed += 1
            return nil
        }
        let parts = try parts(&reader)
        guard let topic = parts.topic.flatMap({ id($0) }), wants(topic) else {
            batch.foreign += 1
            return parts.timestamp
        }
        if let message = decoded(parts, topic) {
            batch.messages.append((message, topic))
        } else {
            batch.malformed += 1
        }
        return parts.timestamp
    }

    private static func parts(_ reader: inout JSONReader) throws(FormatError) -> Parts {
        var parts = Parts()
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("payload") {
                parts.payload = try string(&reader)
            } else if name.equals("contentTopic") || name.equals("content_topic") {
                parts.topic = try string(&reader)
            } else if name.equals("timestamp") {
                parts.timestamp = try number(&reader)
            } else if name.equals("version") {
                parts.version = try number(&reader)
            } else if name.equals("meta") {
                parts.meta = try string(&reader)
            } else if name.equals("ephemeral"), try reader.peek() == .bool {
                parts.isEphemeral = try reader.readBool()
            } else {
                try reader.skipValue()
            }
        }
        return parts
    }

    private static func decoded(_ parts: Parts, _ topic: UInt32) -> WakuMessage? {
        guard let payload = bytes(parts.payload, limit: WakuLimits.payloadBytes), payload.count > 0,
            let meta = parts.meta.map({ bytes($0, limit: WakuLimits.metaBytes) }) ?? Secret([]),
            let version = UInt32(exactly: parts.version ?? 0)
        else { return nil }
        return WakuMessage(
            payload: payload, contentTopic: WakuTopic.contentTopic(of: topic), version: version,
            timestamp: parts.timestamp ?? 0, meta: meta, isEphemeral: parts.isEphemeral)
    }

    /// The bytes that base64 stands for, in the standard alphabet and padded, as all nodes write it.
    private static func bytes(_ text: JSONStringSlice?, limit: Int) -> Secret? {
        guard let text, text.raw.count <= 2 * limit else { return nil }
        // A slash may be escaped.
        if text.hasEscapes { return text.secret().reveal { bytes($0, limit: limit) } }
        return bytes(text.raw, limit: limit)
    }

    private static func bytes(_ text: UnsafeRawBufferPointer, limit: Int) -> Secret? {
        guard let count = Base64.decodedCount(text), count <= limit else { return nil }
        // Text that is not base64 is malformed, however.
        return try? Secret(count: count) { (out) throws(FormatError) in try Base64.decode(text, into: out) }
    }

    /// `/waku/1/0x`, eight hex digits, `/rfc26`; `nil` for any other content topic, which is nobody's here.
    static func id(_ topic: JSONStringSlice) -> UInt32? {
        topic.hasEscapes ? withBytes(topic.decoded()) { id($0) } : id(topic.raw)
    }

    private static func id(_ topic: UnsafeRawBufferPointer) -> UInt32? {
        guard topic.count == 24, WireFormats.bytes(.init(rebasing: topic[..<10]), equal: "/waku/1/0x"),
            WireFormats.bytes(.init(rebasing: topic[18...]), equal: "/rfc26")
        else { return nil }
        var id: UInt32 = 0
        for digit in topic[10..<18] {
            guard let value = Hex.value(ofDigit: digit) else { return nil }
            id = id << 4 | UInt32(value)
        }
        return id
    }

    /// `nil`, and the value passed over, when it is none.
    private static func string(_ reader: inout JSONReader) throws(FormatError) -> JSONStringSlice? {
        if try reader.peek() == .string { return try reader.readString() }
        try reader.skipValue()
        return nil
    }

    private static func number(_ reader: inout JSONReader) throws(FormatError) -> Int64? {
        if try reader.peek() == .number { return try reader.readNumber().int64 }
        try reader.skipValue()
        return nil
    }

    private static func cursor(_ reader: inout JSONReader) throws(FormatError) -> String? {
        guard let text = try string(&reader), !text.raw.isEmpty else { return nil }
        guard text.raw.count <= cursorBytes else { throw FormatError(.tooLarge) }
        return text.string()
    }
}
