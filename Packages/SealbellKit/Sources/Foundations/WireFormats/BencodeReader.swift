import PushModel

/// The four types of bencode.
package enum BencodeKind: Sendable, Hashable { case integer, string, list, dictionary }

/// An integer as it was written, without its letters. Borrowed; valid as long as the reader's bytes.
package struct BencodeInteger {
    /// Digits, after a minus where the number has one.
    package let raw: UnsafeRawBufferPointer

    package var int64: Int64? {
        guard let magnitude else { return nil }
        guard isNegative else { return Int64(exactly: magnitude) }
        return magnitude <= 1 << 63 ? Int64(truncatingIfNeeded: 0 &- magnitude) : nil
    }

    package var uint64: UInt64? {
        guard let magnitude, !isNegative || magnitude == 0 else { return nil }
        return magnitude
    }

    private var isNegative: Bool { raw.first == 0x2D }

    private var magnitude: UInt64? {
        var value: UInt64 = 0
        let start = isNegative ? 1 : 0
        if raw.count - start <= Self.safeDigits {
            for at in start..<raw.count { value = 10 &* value &+ UInt64(raw[at] &- 0x30) }
            return value
        }
        for at in start..<raw.count {
            let (product, over) = value.multipliedReportingOverflow(by: 10)
            let (sum, overSum) = product.addingReportingOverflow(UInt64(raw[at] - 0x30))
            if over || overSum { return nil }
            value = sum
        }
        return value
    }

    /// So many fit 64 bits, whatever they are.
    fileprivate static let safeDigits = 18
}

/// Reads bencode by pulling, value by value; strings are lent where they stand.
///
/// The caller keeps the bytes alive. Dictionaries are walked forward only: ``find(_:)`` passes over smaller
/// keys and stops before a larger one, so a key out of order is not found.
///
/// ```swift
/// try reader.beginDictionary()
/// if try reader.find("h") { hash = try reader.readString() }
/// try reader.endDictionary()
/// try reader.end()
/// ```
package struct BencodeReader {
    /// How much a spelling matters.
    package enum Rule: Sendable {
        /// Leading zeros, `-0`, unsorted and repeated keys pass; integers must fit 64 bits. So the programs
        /// of the Oxen network read.
        case lenient
        /// One spelling for each value (BEP 3); integers of any size.
        case strict
    }

    package let bytes: UnsafeRawBufferPointer
    /// Offset of the next byte to read.
    package private(set) var position = 0
    private let rule: Rule
    private let depthLimit: Int
    private var depth = 0
    /// The key before, of each open dictionary; kept for the strict rule alone.
    private var keysBefore: [Range<Int>?] = []

    /// - Parameter depthLimit: deepest nesting of lists and dictionaries.
    package init(_ bytes: UnsafeRawBufferPointer, _ rule: Rule = .lenient, depthLimit: Int = 8) {
        self.bytes = bytes
        self.rule = rule
        self.depthLimit = depthLimit
    }

    /// The type of the next value, which stays unread.
    package func peek() throws(FormatError) -> BencodeKind {
        guard position < bytes.count else { throw FormatError(.malformedBencode) }
        switch bytes[position] {
        case 0x69: return .integer
        case 0x30...0x39: return .string
        case 0x6C: return .list
        case 0x64: return .dictionary
        default: throw FormatError(.malformedBencode)
        }
    }

    /// Enters a list. - Throws: `.wrongType` when the next value is another.
    package mutating func beginList() throws(FormatError) { try enter(.list) }

    /// Enters a dictionary.
    package mutating func beginDictionary() throws(FormatError) { try enter(.dictionary) }

    /// Whether the list has another element, which is next to read; false when it has ended.
    package mutating func nextElement() throws(FormatError) -> Bool { try !leaveAtEnd() }

    /// The next key, its value being next to read; `nil` when the dictionary has ended.
    package mutating func nextKey() throws(FormatError) -> UnsafeRawBufferPointer? {
        if try leaveAtEnd() { return nil }
        guard try peek() == .string else { throw FormatError(.malformedBencode) }
        let key = try scanString()
        if rule == .strict { try keepOrder(of: key) }
        return UnsafeRawBufferPointer(rebasing: bytes[key])
    }

    /// Walks on to a key. - Returns: whether it is there; its value is then next to read.
    ///
    /// Where it is not, the reader stands before the next larger key or at the dictionary's end.
    package mutating func find(_ wanted: StaticString) throws(FormatError) -> Bool {
        while true {
            // The lenient rule keeps no keys: nothing to hold on to.
            let (before, keys) = (position, rule == .strict ? keysBefore : [])
            guard position < bytes.count else { throw FormatError(.malformedBencode) }
            if bytes[position] == 0x65 { return false }
            guard let key = try nextKey() else { return false }
            switch Self.order(key, wanted) {
            case 0: return true
            case 1:
                (position, keysBefore) = (before, keys)
                return false
            default: try skipValue()
            }
        }
    }

    /// Passes over what is left of a dictionary, and its end.
    package mutating func endDictionary() throws(FormatError) {
        while try nextKey() != nil { try skipValue() }
    }

    package mutating func readInteger() throws(FormatError) -> BencodeInteger {
        guard try peek() == .integer else { throw FormatError(.wrongType) }
        return try scanInteger()
    }

    package mutating func readString() throws(FormatError) -> UnsafeRawBufferPointer {
        guard try peek() == .string else { throw FormatError(.wrongType) }
        return UnsafeRawBufferPointer(rebasing: bytes[try scanString()])
    }

    /// Checks and passes over the next value.
    ///
    /// - Returns: the value's bytes as written, for passing through.
    @discardableResult
    package mutating func skipValue() throws(FormatError) -> UnsafeRawBufferPointer {
        let start = position
        switch try peek() {
        case .integer: _ = try scanInteger()
        case .string: _ = try scanString()
        case .list:
            try beginList()
            while try nextElement() { try skipValue() }
        case .dictionary:
            try beginDictionary()
            try endDictionary()
        }
        return UnsafeRawBufferPointer(rebasing: bytes[start..<position])
    }

    /// Checks that nothing is left, and that all that was entered has ended.
    package func end() throws(FormatError) {
        guard position == bytes.count, depth == 0 else { throw FormatError(.malformedBencode) }
    }

    // MARK: scanning

    private mutating func enter(_ kind: BencodeKind) throws(FormatError) {
        guard try peek() == kind else { throw FormatError(.wrongType) }
        depth += 1
        guard depth <= depthLimit else { throw FormatError(.tooDeep) }
        position += 1
        if rule == .strict { keysBefore.append(nil) }
    }

    private mutating func leaveAtEnd() throws(FormatError) -> Bool {
        guard position < bytes.count else { throw FormatError(.malformedBencode) }
        guard bytes[position] == 0x65 else { return false }
        position += 1
        depth -= 1
        if rule == .strict { keysBefore.removeLast() }
        return true
    }

    private mutating func keepOrder(of key: Range<Int>) throws(FormatError) {
        if let before = keysBefore[keysBefore.count - 1],
            !bytes[before].lexicographicallyPrecedes(bytes[key])
        {
            throw FormatError(.malformedBencode)
        }
        keysBefore[keysBefore.count - 1] = key
    }

    private mutating func scanInteger() throws(FormatError) -> BencodeInteger {
        position += 1
        let start = position
        if position < bytes.count, bytes[position] == 0x2D { position += 1 }
        let digits = try scanDigits()
        guard position < bytes.count, bytes[position] == 0x65 else { throw FormatError(.malformedBencode) }
        let integer = BencodeInteger(raw: UnsafeRawBufferPointer(rebasing: bytes[start..<position]))
        position += 1
        switch rule {
        case .lenient:
            let isShort = digits.count <= BencodeInteger.safeDigits
            guard isShort || integer.int64 != nil || integer.uint64 != nil else {
                throw FormatError(.malformedBencode)
            }
        case .strict:
            let isZero = bytes[digits.lowerBound] == 0x30
            guard !isZero || start == digits.lowerBound else { throw FormatError(.malformedBencode) }
        }
        return integer
    }

    private mutating func scanString() throws(FormatError) -> Range<Int> {
        let digits = try scanDigits()
        guard position < bytes.count, bytes[position] == 0x3A else { throw FormatError(.malformedBencode) }
        position += 1
        var count = 0
        // What is longer than the input is refused before the sum can overflow.
        for at in digits {
            count = 10 * count + Int(bytes[at] - 0x30)
            guard count <= bytes.count - position else { throw FormatError(.malformedBencode) }
        }
        let string = position..<position + count
        position = string.upperBound
        return string
    }

    /// One digit at least; by the strict rule none before it that says nothing.
    private mutating func scanDigits() throws(FormatError) -> Range<Int> {
        let start = position
        while position < bytes.count, (0x30...0x39).contains(bytes[position]) { position += 1 }
        guard position > start, rule == .lenient || position == start + 1 || bytes[start] != 0x30 else {
            throw FormatError(.malformedBencode)
        }
        return start..<position
    }

    /// -1, 0 or 1, as byte strings are ordered.
    private static func order(_ key: UnsafeRawBufferPointer, _ wanted: StaticString) -> Int {
        for at in 0..<min(key.count, wanted.utf8CodeUnitCount) where key[at] != wanted.utf8Start[at] {
            return key[at] < wanted.utf8Start[at] ? -1 : 1
        }
        return (key.count - wanted.utf8CodeUnitCount).signum()
    }
}
