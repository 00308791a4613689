import Primitives
public import PushModel
import WireFormats

/// What a trigger (kind 446) carries: encrypted tokens of one format.
public struct TriggerContent: Sendable {
    /// How ``chunks`` are made and how long each is.
    public let format: TokenFormat
    /// The encrypted tokens, decoded, in order; each has the bytes that its format has.
    public let chunks: [Secret]
    /// Items of a `seed` array that cannot be tokens: they wake nobody, like any decoy.
    public let unusable: Int

    /// SHA-256 over the decoded tokens in order, which identifies a trigger that was wrapped again
    /// (docs/conformance/marmot.md).
    public var digest: [UInt8] {
        SHA256.hash(joined)
    }

    /// How many items the trigger has.
    public var count: Int { chunks.count + unusable }

    /// - Parameter chunks: at most ``TokenFormat/mostTokens``, each of ``TokenFormat/tokenBytes`` if the
    ///   format has a fixed size; at least one, except in `seed`.
    /// - Throws: `.tooMuchContent`, or `.malformedTrigger` for a chunk of another size.
    public init(_ format: TokenFormat, _ chunks: [Secret]) throws(MarmotError) {
        guard chunks.count <= format.mostTokens else { throw MarmotError(.tooMuchContent) }
        if let size = format.tokenBytes {
            guard !chunks.isEmpty, chunks.allSatisfy({ $0.count == size }) else {
                throw MarmotError(.malformedTrigger)
            }
        }
        self.format = format
        self.chunks = chunks
        unusable = 0
    }

    private init(_ format: TokenFormat, _ chunks: [Secret], unusable: Int) {
        self.format = format
        self.chunks = chunks
        self.unusable = unusable
    }

    /// Recognises the format from the event (docs/conformance/marmot.md) and takes the content apart.
    ///
    /// - Parameter formats: the formats that are switched on.
    /// - Throws: `.wrongKind`; `.unknownVersion` if the tags name no format; `.formatSwitchedOff`;
    ///   `.malformedTrigger` if the content does not match the format or holds too much.
    public init(
        reading event: NostrEvent, formats: Set<TokenFormat> = Set(TokenFormat.allCases)
    ) throws(MarmotError) {
        guard event.kind == NostrKind.trigger else { throw MarmotError(.wrongKind) }
        self = try event.content.reveal { (content) throws(MarmotError) in
            let trimmed = Self.trimmed(content)
            let format = try Self.format(of: event.tags, trimmed)
            guard formats.contains(format) else { throw MarmotError(.formatSwitchedOff) }
            guard let size = format.tokenBytes else { return try Self.readArray(trimmed) }
            // The only specification that forbids everything besides its tokens.
            return try Self.readBlob(format == .pushV1 ? content : trimmed, format, size)
        }
    }

    /// The content as it goes into an event: JSON of `seed`, Base64 of the others.
    public func serialized() -> Secret {
        if format == .seed {
            let size = chunks.reduce(0) { $0 + $1.count }
            var writer = JSONWriter(reserving: 2 * size + 3 * chunks.count + 2)
            writer.beginArray()
            for chunk in chunks { chunk.reveal { writer.hex($0) } }
            writer.endArray()
            return writer.takeSecret()
        }
        return joined.reveal { bytes in
            var text = Base64.encode(bytes)
            defer { text.withUnsafeMutableBytes { wipe($0) } }
            return Secret(text)
        }
    }

    private var joined: Secret {
        Secret(count: chunks.reduce(0) { $0 + $1.count }) { out in
            var at = 0
            for chunk in chunks {
                chunk.reveal { UnsafeMutableRawBufferPointer(rebasing: out[at...]).copyMemory(from: $0) }
                at += chunk.count
            }
        }
    }

    // MARK: recognition

    /// `push-v1` is recognised by its single tag and nothing else. For the older formats deployed servers
    /// look for two tags, in any place and among any others; so do we.
    private static func format(
        of tags: [[String]], _ content: UnsafeRawBufferPointer
    ) throws(MarmotError) -> TokenFormat {
        if tags == TokenFormat.pushV1.triggerTags { return .pushV1 }
        let versions = tags.filter { $0.first == "v" }
        guard versions.allSatisfy({ $0.count > 1 && $0[1] == "mip05-v1" }),
            tags.allSatisfy({ $0.first != "encoding" || ($0.count > 1 && $0[1] == "base64") })
        else { throw MarmotError(.unknownVersion) }
        if versions.isEmpty {
            if content.first == 0x5B { return .seed }
            let count = Base64.decodedCount(content) ?? 0
            guard content.isEmpty || count.isMultiple(of: TokenFormat.shortTokenBytes) else {
                throw MarmotError(.unknownVersion)
            }
            return .mip05Short
        }
        guard let count = Base64.decodedCount(content) else { throw MarmotError(.malformedTrigger) }
        return count.isMultiple(of: TokenFormat.longTokenBytes) ? .mip05Long : .mip05Short
    }

    /// Without the white space of JSON around it.
    private static func trimmed(_ content: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) && byte != 0x0B }
        guard let first = content.firstIndex(where: { !isSpace($0) }),
            let last = content.lastIndex(where: { !isSpace($0) })
        else { return UnsafeRawBufferPointer(rebasing: content[..<0]) }
        return UnsafeRawBufferPointer(rebasing: content[first...last])
    }

    // MARK: content

    /// Base64 of the concatenated tokens. The length is checked before anything is decoded.
    private static func readBlob(
        _ text: UnsafeRawBufferPointer, _ format: TokenFormat, _ size: Int
    ) throws(MarmotError) -> TriggerContent {
        guard let count = Base64.decodedCount(text), count > 0, count.isMultiple(of: size),
            count / size <= format.mostTokens
        else { throw MarmotError(.malformedTrigger) }
        let blob: Secret
        do {
            blob = try Secret(count: count) { (out) throws(FormatError) in
                try Base64.decode(text, .standard, into: out)
            }
        } catch { throw MarmotError(.malformedTrigger) }
        let chunks = blob.reveal { raw in
            stride(from: 0, to: count, by: size).map { start in
                Secret(copying: UnsafeRawBufferPointer(rebasing: raw[start..<start + size]))
            }
        }
        return TriggerContent(format, chunks, unusable: 0)
    }

    /// A JSON array of hex strings; any other item is a decoy, not an error (docs/conformance/marmot.md).
    private static func readArray(_ text: UnsafeRawBufferPointer) throws(MarmotError) -> TriggerContent {
        var reader = JSONReader(text, depthLimit: MarmotLimits.jsonDepth)
        var chunks: [Secret] = []
        var unusable = 0
        do {
            try reader.beginArray()
            while try reader.nextElement() {
                guard chunks.count + unusable < TokenFormat.seed.mostTokens else {
                    throw FormatError(.tooLarge)
                }
                if let chunk = try reader.readHexChunk() { chunks.append(chunk) } else { unusable += 1 }
            }
            try reader.end()
        } catch { throw MarmotError(.malformedTrigger) }
        return TriggerContent(.seed, chunks, unusable: unusable)
    }
}

extension TokenFormat {
    static let shortTokenBytes = 280
    static let longTokenBytes = 1084
    /// Longest encrypted token of the unpadded format: platform and NUL, device token, frame.
    static let longestSeedTokenBytes = 5 + MarmotLimits.deviceTokenBytes + overheadBytes
}

extension JSONReader {
    /// The next value if it is hex of a possible token; `nil` for any other value, which is ignored.
    fileprivate mutating func readHexChunk() throws(FormatError) -> Secret? {
        guard try peek() == .string else {
            try skipValue()
            return nil
        }
        let text = try readString()
        guard !text.hasEscapes, text.raw.count <= 2 * TokenFormat.longestSeedTokenBytes else { return nil }
        return Hex.secret(text.raw)
    }
}

extension JSONWriter {
    /// A string of hex digits.
    fileprivate mutating func hex(_ bytes: UnsafeRawBufferPointer) {
        withUnsafeTemporaryAllocation(byteCount: 2 * bytes.count, alignment: 1) { digits in
            for (at, byte) in bytes.enumerated() {
                digits[2 * at] = Self.digit(byte >> 4)
                digits[2 * at + 1] = Self.digit(byte & 15)
            }
            string(escaped: UnsafeRawBufferPointer(digits))
            wipe(digits)
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
}
