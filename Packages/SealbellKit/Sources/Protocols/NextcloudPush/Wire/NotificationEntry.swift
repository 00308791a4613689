import PushModel
import WireFormats

/// One entry of a notifications call that has all the fields it needs, each of them a text (§5.5 step 1).
package struct NotificationEntry: Sendable {
    package enum Kind: Sendable, Hashable { case alert, background, voip }

    package let identifier: DeviceIdentifier
    /// `nil`: a text that is no hash, and so differs from every stored one.
    package let tokenHash: TokenHash?
    /// Where ``NotificationBatch/texts`` has base64 of ciphertext and signature, 344 characters each; `nil`:
    /// one of them has another length.
    let place: Int?
    package let isHigh: Bool
    package let kind: Kind
}

/// Reads entries one after the other, with memory that all of them share.
struct EntryReader {
    /// Where the texts of the next entry go.
    private(set) var written = 0

    /// Characters of both texts of one entry.
    static let textBytes = 2 * NextcloudLimits.blockCharacters

    /// What the texts of entries of these encoded lengths take at most: no encoding is shorter than the text
    /// itself. So a body of many tiny entries gets no memory that is larger than it.
    static func room(for lengths: some Sequence<Int>) -> Int {
        lengths.reduce(0) { $0 + ($1 < textBytes ? 0 : textBytes) }
    }

    /// - Parameter texts: ``room(for:)`` all entries.
    /// - Returns: `nil` for anything but an object that has the four texts; a fifth and sixth may be missing
    ///   (§5.5), but be nothing else than texts.
    mutating func read(
        _ json: UnsafeRawBufferPointer, into texts: UnsafeMutableRawBufferPointer
    ) -> NotificationEntry? {
        var reader = JSONReader(json, depthLimit: NextcloudLimits.jsonDepth)
        do throws(FormatError) {
            let fields = try Fields(&reader)
            try reader.end()
            return entry(fields, texts)
        } catch {
            return nil
        }
    }

    /// The same for an object that stands in a larger text.
    mutating func read(
        _ reader: inout JSONReader, into texts: UnsafeMutableRawBufferPointer
    ) throws(FormatError) -> NotificationEntry? {
        let raw = try reader.skipValue()
        return read(raw, into: texts)
    }

    private mutating func entry(
        _ fields: Fields, _ texts: UnsafeMutableRawBufferPointer
    ) -> NotificationEntry? {
        guard !fields.hasOtherTypes, let identifier = fields.identifier, let hash = fields.hash,
            let subject = fields.subject, let signature = fields.signature,
            // What names no device at all cannot be told to a server as gone.
            let named = Self.withText(identifier, { DeviceIdentifier(base64: $0) })
        else { return nil }
        return NotificationEntry(
            identifier: named, tokenHash: Self.withText(hash) { TokenHash(hex: $0) },
            place: place(subject, signature, texts), isHigh: fields.priority?.equals("high") ?? false,
            kind: Self.kind(fields.type))
    }

    /// `nil` where a text has another length than a real one's.
    private mutating func place(
        _ subject: JSONStringSlice, _ signature: JSONStringSlice, _ texts: UnsafeMutableRawBufferPointer
    ) -> Int? {
        // An entry that is too short to have both texts was given no room.
        guard texts.count - written >= Self.textBytes else { return nil }
        let out = UnsafeMutableRawBufferPointer(rebasing: texts[written..<written + Self.textBytes])
        let half = NextcloudLimits.blockCharacters
        guard Self.copy(subject, to: UnsafeMutableRawBufferPointer(rebasing: out[..<half])),
            Self.copy(signature, to: UnsafeMutableRawBufferPointer(rebasing: out[half...]))
        else { return nil }
        defer { written += Self.textBytes }
        return written
    }

    /// Missing and unknown ones are alerts.
    private static func kind(_ type: JSONStringSlice?) -> NotificationEntry.Kind {
        guard let type else { return .alert }
        return type.equals("voip") ? .voip : type.equals("background") ? .background : .alert
    }

    private static func withText<Result>(
        _ text: JSONStringSlice, _ body: (UnsafeRawBufferPointer) -> Result?
    ) -> Result? {
        if !text.hasEscapes { return body(text.raw) }
        var plain = text.decoded()
        defer { plain.withUnsafeMutableBytes { wipe($0) } }
        return withBytes(plain) { body($0) }
    }

    /// Whether the text has exactly so many characters. Deployed servers escape slashes and nothing else.
    private static func copy(_ text: JSONStringSlice, to out: UnsafeMutableRawBufferPointer) -> Bool {
        if !text.hasEscapes {
            guard text.raw.count == out.count else { return false }
            out.copyMemory(from: text.raw)
            return true
        }
        guard text.raw.count <= 6 * out.count else { return false }
        var (at, count) = (0, 0)
        while at < text.raw.count {
            let end = FormText.end(of: 0x5C, in: text.raw, from: at)
            guard end - at <= out.count - count else { return false }
            UnsafeMutableRawBufferPointer(rebasing: out[count...])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: text.raw[at..<end]))
            count += end - at
            guard end < text.raw.count else { break }
            // Of all escapes only this one stands for a letter of base64 that anybody writes so.
            guard text.raw[end + 1] == 0x2F else { return copyRare(text, to: out) }
            guard count < out.count else { return false }
            out[count] = 0x2F
            count += 1
            at = end + 2
        }
        return count == out.count
    }

    private static func copyRare(_ text: JSONStringSlice, to out: UnsafeMutableRawBufferPointer) -> Bool {
        withText(text) { plain in
            guard plain.count == out.count else { return false }
            out.copyMemory(from: plain)
            return true
        } ?? false
    }

    /// Of doubles the last counts, as in PHP.
    private struct Fields {
        var identifier: JSONStringSlice?
        var hash: JSONStringSlice?
        var subject: JSONStringSlice?
        var signature: JSONStringSlice?
        var priority: JSONStringSlice?
        var type: JSONStringSlice?
        /// A known field is no text.
        var hasOtherTypes = false

        init(_ reader: inout JSONReader) throws(FormatError) {
            try reader.beginObject()
            while let name = try reader.nextMember() {
                if name.equals("deviceIdentifier") {
                    identifier = try text(&reader)
                } else if name.equals("pushTokenHash") {
                    hash = try text(&reader)
                } else if name.equals("subject") {
                    subject = try text(&reader)
                } else if name.equals("signature") {
                    signature = try text(&reader)
                } else if name.equals("priority") {
                    priority = try text(&reader)
                } else if name.equals("type") {
                    type = try text(&reader)
                } else {
                    try reader.skipValue()
                }
            }
        }

        private mutating func text(_ reader: inout JSONReader) throws(FormatError) -> JSONStringSlice? {
            if try reader.peek() == .string { return try reader.readString() }
            try reader.skipValue()
            hasOtherTypes = true
            return nil
        }
    }
}
