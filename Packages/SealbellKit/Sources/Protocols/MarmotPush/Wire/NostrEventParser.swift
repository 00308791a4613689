public import PushModel
import Secp256k1Keys
package import WireFormats

extension NostrEvent {
    /// What an event must contain to be accepted.
    public enum Completeness: Sendable {
        /// Id and signature: for events that are sent by themselves.
        case signed
        /// Neither is needed: for what was inside a seal (readers cope without the id,
        /// docs/conformance/marmot.md).
        case rumor
        /// Like a rumor; and what deployed writers put in place of a missing id or signature (`null`, an
        /// empty text, zeros) counts as absent. Hexadecimal may have capitals (docs/conformance/marmot.md).
        case sealed
    }

    /// Reads an event.
    ///
    /// - Parameter raw: a JSON object and nothing else; at most ``MarmotLimits/frameBytes``.
    /// - Throws: `.tooLarge`, or `.malformedEvent` for every other reason.
    public static func parse(
        _ raw: UnsafeRawBufferPointer, _ completeness: Completeness = .signed
    ) throws(MarmotError) -> NostrEvent {
        guard raw.count <= MarmotLimits.frameBytes else { throw MarmotError(.tooLarge) }
        var reader = JSONReader(raw, depthLimit: MarmotLimits.jsonDepth)
        let event = try parse(&reader, completeness)
        do { try reader.end() } catch { throw MarmotError(.malformedEvent) }
        return event
    }

    /// Reads an event.
    ///
    /// - Parameter text: a JSON object and nothing else; at most ``MarmotLimits/frameBytes``.
    /// - Throws: `.tooLarge`, or `.malformedEvent`, whatever the reason.
    public static func parse(
        _ text: Secret, _ completeness: Completeness = .signed
    ) throws(MarmotError) -> NostrEvent {
        try text.reveal { (raw) throws(MarmotError) in try parse(raw, completeness) }
    }

    /// Reads the reader's next value.
    package static func parse(
        _ reader: inout JSONReader, _ completeness: Completeness
    ) throws(MarmotError) -> NostrEvent {
        var fields = EventFields()
        fields.isSealed = completeness == .sealed
        do { try fields.read(&reader) } catch { throw MarmotError(.malformedEvent) }
        return try fields.event(completeness)
    }
}

/// The members of an event as they come.
private struct EventFields {
    var id: [UInt8]?
    var pubkey: XOnlyKey?
    var createdAt: Int64?
    var kind: Int?
    var tags: [[String]]?
    var content: Secret?
    var signature: [UInt8]?
    var isSealed = false
    /// Something in it would be refused outside a seal.
    private var isLoose = false
    private var hasID = false
    private var hasSignature = false
    private var unknown = 0

    mutating func read(_ reader: inout JSONReader) throws(FormatError) {
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("id") {
                try once(!hasID)
                hasID = true
                id = try hex(&reader, count: 32, mayBeNone: true)
            } else if name.equals("pubkey") {
                try once(pubkey == nil)
                guard let key = try hex(&reader, count: 32, mayBeNone: false).flatMap({ XOnlyKey($0) }) else {
                    throw FormatError(.wrongType)
                }
                pubkey = key
            } else if name.equals("created_at") {
                try once(createdAt == nil)
                createdAt = try reader.readCount(upTo: .max)
            } else if name.equals("kind") {
                try once(kind == nil)
                kind = Int(try reader.readCount(upTo: 65_535))
            } else if name.equals("tags") {
                try once(tags == nil)
                tags = try reader.readTags()
            } else if name.equals("content") {
                try once(content == nil)
                content = try reader.readString().secret()
            } else if name.equals("sig") {
                try once(!hasSignature)
                hasSignature = true
                signature = try hex(&reader, count: 64, mayBeNone: true)
            } else {
                unknown += 1
                guard unknown <= MarmotLimits.unknownMembers else { throw FormatError(.tooLarge) }
                try reader.skipValue()
            }
        }
    }

    /// Two readers could read a member that occurs twice in two ways.
    private func once(_ isFirst: Bool) throws(FormatError) {
        guard isFirst else { throw FormatError(.malformedJSON) }
    }

    /// Bytes in lower-case hex. In a seal either case is accepted, and a placeholder gives `nil` if the
    /// member may be absent.
    private mutating func hex(
        _ reader: inout JSONReader, count: Int, mayBeNone: Bool
    ) throws(FormatError) -> [UInt8]? {
        guard isSealed else { return try reader.readHex(count: count) }
        if mayBeNone, try reader.readNull() { return none() }
        let text = try reader.readString()
        if mayBeNone, text.raw.isEmpty { return none() }
        guard !text.hasEscapes, text.raw.count == 2 * count else { throw FormatError(.malformedHex) }
        let bytes = try Hex.decode(text.raw)
        if mayBeNone, bytes.allSatisfy({ $0 == 0 }) { return none() }
        if text.raw.contains(where: { (0x41...0x46).contains($0) }) { isLoose = true }
        return bytes
    }

    private mutating func none() -> [UInt8]? {
        isLoose = true
        return nil
    }

    func event(_ completeness: NostrEvent.Completeness) throws(MarmotError) -> NostrEvent {
        guard let pubkey, let createdAt, let kind, let tags, let content,
            completeness != .signed || (id != nil && signature != nil)
        else { throw MarmotError(.malformedEvent) }
        return NostrEvent(
            id: id, pubkey: pubkey, createdAt: createdAt, kind: kind, tags: tags, content: content,
            signature: signature, isLoose: isLoose)
    }
}

extension JSONReader {
    /// A string of exactly `count` bytes in lower-case hex, unescaped.
    mutating func readHex(count: Int) throws(FormatError) -> [UInt8] {
        let text = try readString()
        guard let bytes = LowerHex.decode(text, count: count) else { throw FormatError(.malformedHex) }
        return bytes
    }

    /// An integer of 0 to `limit`, written without fraction or exponent.
    mutating func readCount(upTo limit: Int64) throws(FormatError) -> Int64 {
        guard let value = try readNumber().int64, (0...limit).contains(value) else {
            throw FormatError(.wrongType)
        }
        return value
    }

    /// An event's tags within their bounds: arrays of strings.
    mutating func readTags() throws(FormatError) -> [[String]] {
        var tags: [[String]] = []
        try beginArray()
        while try nextElement() {
            guard tags.count < MarmotLimits.tags else { throw FormatError(.tooLarge) }
            var values: [String] = []
            try beginArray()
            while try nextElement() {
                let value = try readString()
                guard values.count < MarmotLimits.tagValues, value.raw.count <= MarmotLimits.tagValueBytes
                else { throw FormatError(.tooLarge) }
                values.append(value.string())
            }
            tags.append(values)
        }
        return tags
    }
}

/// Nostr's hexadecimal: lower case only, so that a value has one spelling.
enum LowerHex {
    static func decode(_ text: JSONStringSlice, count: Int) -> [UInt8]? {
        guard !text.hasEscapes else { return nil }
        return decode(text.raw, count: count)
    }

    static func decode(_ text: [UInt8], count: Int) -> [UInt8]? {
        text.withUnsafeBytes { decode($0, count: count) }
    }

    static func decode(_ text: UnsafeRawBufferPointer, count: Int) -> [UInt8]? {
        guard text.count == 2 * count, !text.contains(where: { (0x41...0x46).contains($0) }) else {
            return nil
        }
        return try? Hex.decode(text)  // The answer here is the bytes or none.
    }
}
