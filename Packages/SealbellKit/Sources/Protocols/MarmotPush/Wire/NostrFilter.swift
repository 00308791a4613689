import PushModel
public import Secp256k1Keys
package import WireFormats

/// The events that a subscription asks for (NIP-01). All given lists must match; a list that is not given
/// matches anything.
public struct NostrFilter: Sendable, Hashable {
    /// Ids of 32 bytes.
    public var ids: [[UInt8]]?
    /// Authors' keys of 32 bytes. They need not be on the curve; then no event matches.
    public var authors: [[UInt8]]?
    /// 0 to 65535 each.
    public var kinds: [Int]?
    /// Values by the letter of their tag: `#p` under `p`.
    public var tags: [Character: [String]]
    /// Seconds; both ends belong to the span.
    public var since: Int64?
    /// Unix seconds; the second itself belongs to the span.
    public var until: Int64?
    /// Most stored events that are wanted; live ones do not count.
    public var limit: Int?

    /// Everything, less what is given: ids and keys of 32 bytes, times in Unix seconds.
    public init(
        ids: [[UInt8]]? = nil, authors: [[UInt8]]? = nil, kinds: [Int]? = nil,
        tags: [Character: [String]] = [:], since: Int64? = nil, until: Int64? = nil, limit: Int? = nil
    ) {
        self.ids = ids
        self.authors = authors
        self.kinds = kinds
        self.tags = tags
        self.since = since
        self.until = until
        self.limit = limit
    }

    /// What a notification server subscribes to (docs/conformance/marmot.md): wraps for these keys.
    ///
    /// - Parameter since: Unix seconds.
    /// - Parameter limit: number of stored events.
    public static func wraps(for keys: [XOnlyKey], since: Int64?, limit: Int? = nil) -> NostrFilter {
        NostrFilter(kinds: [NostrKind.giftWrap], tags: ["p": keys.map(\.hex)], since: since, limit: limit)
    }

    /// The filter that a sender uses before it publishes (§4.6): the server's relay list.
    public static func relayList(of key: XOnlyKey) -> NostrFilter {
        NostrFilter(authors: [key.bytes], kinds: [NostrKind.relayList])
    }

    /// Whether the event matches; `limit` is not considered.
    public func matches(_ event: NostrEvent) -> Bool {
        if let ids, !ids.contains(event.id) { return false }
        if let authors, !authors.contains(event.pubkey.bytes) { return false }
        if let kinds, !kinds.contains(event.kind) { return false }
        if let since, event.createdAt < since { return false }
        if let until, event.createdAt > until { return false }
        return tags.allSatisfy { letter, values in
            let name = String(letter)
            return event.tags.contains { $0.count > 1 && $0[0] == name && values.contains($0[1]) }
        }
    }

    package func write(to writer: inout JSONWriter) {
        writer.beginObject()
        list("ids", ids?.map(Hex.encode), to: &writer)
        list("authors", authors?.map(Hex.encode), to: &writer)
        if let kinds {
            writer.beginArray("kinds")
            for kind in kinds { writer.int(Int64(kind)) }
            writer.endArray()
        }
        for (letter, values) in tags.sorted(by: { $0.key < $1.key }) {
            writer.key("#\(letter)")
            write(values, to: &writer)
        }
        number("since", since, to: &writer)
        number("until", until, to: &writer)
        number("limit", limit.map(Int64.init), to: &writer)
        writer.endObject()
    }

    private func list(_ name: StaticString, _ values: [String]?, to writer: inout JSONWriter) {
        guard let values else { return }
        writer.key(name)
        write(values, to: &writer)
    }

    private func write(_ values: [String], to writer: inout JSONWriter) {
        writer.beginArray()
        for value in values { writer.string(value) }
        writer.endArray()
    }

    private func number(_ name: StaticString, _ value: Int64?, to writer: inout JSONWriter) {
        guard let value else { return }
        writer.key(name)
        writer.int(value)
    }
}

extension NostrFilter {
    /// Reads the reader's next value.
    ///
    /// Unknown members are ignored, which NIP-01 leaves to the relay; a member that occurs twice is refused.
    ///
    /// - Throws: `.malformedFilter` for every reason.
    package static func parse(_ reader: inout JSONReader) throws(MarmotError) -> NostrFilter {
        var filter = NostrFilter()
        do { try filter.read(&reader) } catch { throw MarmotError(.malformedFilter) }
        return filter
    }

    private mutating func read(_ reader: inout JSONReader) throws(FormatError) {
        var seen: Set<String> = []
        try reader.beginObject()
        while let member = try reader.nextMember() {
            guard member.raw.count <= MarmotLimits.subscriptionCharacters else {
                throw FormatError(.tooLarge)
            }
            let name = member.string()
            guard seen.insert(name).inserted else { throw FormatError(.malformedJSON) }
            guard seen.count <= MarmotLimits.unknownMembers + 8 else { throw FormatError(.tooLarge) }
            switch name {
            case "ids": ids = try reader.readKeys()
            case "authors": authors = try reader.readKeys()
            case "kinds": kinds = try reader.readKinds()
            case "since": since = try reader.readCount(upTo: .max)
            case "until": until = try reader.readCount(upTo: .max)
            case "limit": limit = Int(try reader.readCount(upTo: Int64(UInt32.max)))
            default:
                guard name.utf8.count == 2, name.hasPrefix("#"), let letter = name.last, letter.isLetter
                else {
                    try reader.skipValue()
                    continue
                }
                tags[letter] = try reader.readValues()
            }
        }
    }
}

extension JSONReader {
    fileprivate mutating func readKeys() throws(FormatError) -> [[UInt8]] {
        var keys: [[UInt8]] = []
        try beginArray()
        while try nextElement() {
            guard keys.count < MarmotLimits.filterValues else { throw FormatError(.tooLarge) }
            keys.append(try readHex(count: 32))
        }
        return keys
    }

    fileprivate mutating func readKinds() throws(FormatError) -> [Int] {
        var kinds: [Int] = []
        try beginArray()
        while try nextElement() {
            guard kinds.count < MarmotLimits.filterValues else { throw FormatError(.tooLarge) }
            kinds.append(Int(try readCount(upTo: 65_535)))
        }
        return kinds
    }

    fileprivate mutating func readValues() throws(FormatError) -> [String] {
        var values: [String] = []
        try beginArray()
        while try nextElement() {
            let value = try readString()
            guard values.count < MarmotLimits.filterValues, value.raw.count <= MarmotLimits.tagValueBytes
            else { throw FormatError(.tooLarge) }
            values.append(value.string())
        }
        return values
    }
}
