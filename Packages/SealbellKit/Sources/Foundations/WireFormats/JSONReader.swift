package import PushModel

/// The six types of RFC 8259 §3.
package enum JSONKind: Sendable, Hashable { case object, array, string, number, bool, null }

/// A number as it was written. Borrowed; valid as long as the reader's bytes.
package struct JSONNumberSlice {
    package let raw: UnsafeRawBufferPointer

    /// True when there is neither fraction nor exponent.
    package var isInteger: Bool { raw.allSatisfy { $0 == 0x2D || (0x30...0x39).contains($0) } }

    /// The value when it was written as an integer and fits.
    package var int64: Int64? {
        var magnitude: UInt64 = 0
        let negative = raw.first == 0x2D
        for byte in raw.dropFirst(negative ? 1 : 0) {
            guard (0x30...0x39).contains(byte) else { return nil }
            let (product, over) = magnitude.multipliedReportingOverflow(by: 10)
            let (sum, overSum) = product.addingReportingOverflow(UInt64(byte - 0x30))
            if over || overSum { return nil }
            magnitude = sum
        }
        if negative { return magnitude <= 1 << 63 ? Int64(truncatingIfNeeded: 0 &- magnitude) : nil }
        return Int64(exactly: magnitude)
    }

    /// The value when it was written as an integer of 0 to 4294967295.
    package var uint32: UInt32? { int64.flatMap { UInt32(exactly: $0) } }
}

/// A string as it was written, without its quotes. Borrowed; valid as long as the reader's bytes.
///
/// The bytes have been checked: UTF-8, no control characters, every escape complete.
@usableFromInline
package struct JSONStringSlice {
    @usableFromInline package let raw: UnsafeRawBufferPointer
    /// When false, `raw` is the string's own UTF-8.
    @usableFromInline package let hasEscapes: Bool

    /// Whether the string is exactly this text, however it was escaped.
    ///
    /// Inlined, because a member's name is compared with one after the other, and most differ in length.
    @inlinable
    package func equals(_ text: StaticString) -> Bool {
        if hasEscapes { return equalsDecoded(text) }
        return raw.count == text.utf8CodeUnitCount && bytes(raw, equal: text)
    }

    @usableFromInline
    package func equalsDecoded(_ text: StaticString) -> Bool {
        withBytes(decoded()) { bytes($0, equal: text) }
    }

    /// The string's UTF-8 bytes.
    package func decoded() -> [UInt8] {
        if !hasEscapes { return Array(raw) }
        var out: [UInt8] = []
        out.reserveCapacity(raw.count)
        JSONEscapes.decode(raw, into: &out)
        return out
    }

    /// The string's UTF-8 bytes as a secret; no other copy remains.
    package func secret() -> Secret {
        if !hasEscapes { return Secret(copying: raw) }
        var plain = decoded()
        defer { plain.withUnsafeMutableBytes { wipe($0) } }
        return Secret(plain)
    }

    /// The string. Not for secrets.
    package func string() -> String {
        hasEscapes ? String(decoding: decoded(), as: UTF8.self) : String(decoding: raw, as: UTF8.self)
    }
}

/// Reads JSON (RFC 8259) by pulling, value by value, without allocating.
///
/// The caller keeps the bytes alive. Duplicate member names are handed out as they come; callers let the last
/// one win, as Python's `json` does. A byte order mark, `NaN`, lone surrogates and unescaped control
/// characters are refused.
///
/// ```swift
/// try reader.beginObject()
/// while let name = try reader.nextMember() {
///     if name.equals("user") { user = try reader.readString() } else { try reader.skipValue() }
/// }
/// try reader.end()
/// ```
package struct JSONReader {
    package let bytes: UnsafeRawBufferPointer
    /// Offset of the next byte to read.
    package private(set) var position = 0
    private let depthLimit: Int
    private var depth = 0
    private var isFirst = false

    /// - Parameter depthLimit: deepest nesting of objects and arrays.
    package init(_ bytes: UnsafeRawBufferPointer, depthLimit: Int = 32) {
        self.bytes = bytes
        self.depthLimit = depthLimit
    }

    /// The type of the next value, which stays unread.
    package mutating func peek() throws(FormatError) -> JSONKind {
        skipSpace()
        guard position < bytes.count else { throw FormatError(.malformedJSON) }
        switch bytes[position] {
        case 0x7B: return .object
        case 0x5B: return .array
        case 0x22: return .string
        case 0x74, 0x66: return .bool
        case 0x6E: return .null
        case 0x2D, 0x30...0x39: return .number
        default: throw FormatError(.malformedJSON)
        }
    }

    /// Enters an object. - Throws: `.wrongType` when the next value is another.
    package mutating func beginObject() throws(FormatError) { try enter(.object) }

    /// Enters an array.
    package mutating func beginArray() throws(FormatError) { try enter(.array) }

    /// The next member's name, its value being next to read; `nil` when the object has ended.
    package mutating func nextMember() throws(FormatError) -> JSONStringSlice? {
        guard try nextItem(closing: 0x7D) else { return nil }
        skipSpace()
        guard position < bytes.count, bytes[position] == 0x22 else { throw FormatError(.malformedJSON) }
        let name = try scanString()
        skipSpace()
        guard position < bytes.count, bytes[position] == 0x3A else { throw FormatError(.malformedJSON) }
        position += 1
        return name
    }

    /// Whether the array has another element, which is next to read; false when it has ended.
    package mutating func nextElement() throws(FormatError) -> Bool { try nextItem(closing: 0x5D) }

    package mutating func readString() throws(FormatError) -> JSONStringSlice {
        guard try peek() == .string else { throw FormatError(.wrongType) }
        return try scanString()
    }

    package mutating func readNumber() throws(FormatError) -> JSONNumberSlice {
        guard try peek() == .number else { throw FormatError(.wrongType) }
        return try scanNumber()
    }

    // Of members whose form may be wrong: each looks at the next value once.

    /// The next value if it is a string; any other is checked and passed over.
    package mutating func stringOrSkip() throws(FormatError) -> JSONStringSlice? {
        if try peek() == .string { return try scanString() }
        try skipValue()
        return nil
    }

    /// The next value if it is a number; any other is checked and passed over.
    package mutating func numberOrSkip() throws(FormatError) -> JSONNumberSlice? {
        if try peek() == .number { return try scanNumber() }
        try skipValue()
        return nil
    }

    /// Enters the next value if it is an object; any other is checked and passed over.
    ///
    /// - Returns: whether it was.
    package mutating func beginObjectOrSkip() throws(FormatError) -> Bool {
        if try peek() == .object {
            try descend()
            return true
        }
        try skipValue()
        return false
    }

    package mutating func readBool() throws(FormatError) -> Bool {
        guard try peek() == .bool else { throw FormatError(.wrongType) }
        if bytes[position] == 0x74 {
            try scan("true")
            return true
        }
        try scan("false")
        return false
    }

    /// Reads `null` when it is next. - Returns: whether it was.
    package mutating func readNull() throws(FormatError) -> Bool {
        guard try peek() == .null else { return false }
        try scan("null")
        return true
    }

    /// Checks and passes over the next value.
    ///
    /// - Returns: the value's bytes as written, for passing through.
    @discardableResult
    package mutating func skipValue() throws(FormatError) -> UnsafeRawBufferPointer {
        let kind = try peek()
        let start = position
        switch kind {
        case .string: _ = try scanString()
        case .number: _ = try scanNumber()
        case .bool: _ = try readBool()
        case .null: try scan("null")
        case .array:
            try descend()
            while try nextElement() { try skipValue() }
        case .object:
            try descend()
            while try nextMember() != nil { try skipValue() }
        }
        return UnsafeRawBufferPointer(rebasing: bytes[start..<position])
    }

    /// Checks that nothing but white space is left.
    package mutating func end() throws(FormatError) {
        skipSpace()
        guard position == bytes.count, depth == 0 else { throw FormatError(.malformedJSON) }
    }

    // MARK: scanning

    private mutating func enter(_ kind: JSONKind) throws(FormatError) {
        guard try peek() == kind else { throw FormatError(.wrongType) }
        try descend()
    }

    /// Enters what was seen to be next.
    private mutating func descend() throws(FormatError) {
        depth += 1
        guard depth <= depthLimit else { throw FormatError(.tooDeep) }
        position += 1
        isFirst = true
    }

    private mutating func nextItem(closing: UInt8) throws(FormatError) -> Bool {
        skipSpace()
        guard position < bytes.count else { throw FormatError(.malformedJSON) }
        if bytes[position] == closing {
            position += 1
            depth -= 1
            isFirst = false
            return false
        }
        if !isFirst {
            guard bytes[position] == 0x2C else { throw FormatError(.malformedJSON) }
            position += 1
        }
        isFirst = false
        return true
    }

    private mutating func skipSpace() {
        while position < bytes.count {
            switch bytes[position] {
            case 0x20, 0x09, 0x0A, 0x0D: position += 1
            default: return
            }
        }
    }

    private mutating func scan(_ word: StaticString) throws(FormatError) {
        let end = position + word.utf8CodeUnitCount
        guard end <= bytes.count,
            WireFormats.bytes(UnsafeRawBufferPointer(rebasing: bytes[position..<end]), equal: word)
        else { throw FormatError(.malformedJSON) }
        position = end
    }

    private mutating func scanString() throws(FormatError) -> JSONStringSlice {
        position += 1
        let start = position
        var hasEscapes = false
        while position < bytes.count {
            position += PlainText.run(bytes, from: position)
            guard position < bytes.count else { break }
            switch bytes[position] {
            case 0x22:
                let raw = UnsafeRawBufferPointer(rebasing: bytes[start..<position])
                position += 1
                return JSONStringSlice(raw: raw, hasEscapes: hasEscapes)
            case 0x5C:
                hasEscapes = true
                position = try JSONEscapes.skip(bytes, at: position)
            case 0x00..<0x20: throw FormatError(.malformedJSON)
            default: position = try UTF8Check.skip(bytes, at: position)
            }
        }
        throw FormatError(.malformedJSON)
    }

    private mutating func scanNumber() throws(FormatError) -> JSONNumberSlice {
        let start = position
        if bytes[position] == 0x2D { position += 1 }
        if position < bytes.count, bytes[position] == 0x30 {
            position += 1
        } else {
            try scanDigits()
        }
        if position < bytes.count, bytes[position] == 0x2E {
            position += 1
            try scanDigits()
        }
        if position < bytes.count, bytes[position] | 0x20 == 0x65 {
            position += 1
            if position < bytes.count, bytes[position] == 0x2B || bytes[position] == 0x2D { position += 1 }
            try scanDigits()
        }
        return JSONNumberSlice(raw: UnsafeRawBufferPointer(rebasing: bytes[start..<position]))
    }

    private mutating func scanDigits() throws(FormatError) {
        let start = position
        while position < bytes.count, (0x30...0x39).contains(bytes[position]) { position += 1 }
        guard position > start else { throw FormatError(.malformedJSON) }
    }
}
