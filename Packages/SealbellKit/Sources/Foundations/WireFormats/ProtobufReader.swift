import PushModel

/// The value of one field. Bytes are borrowed; valid as long as the reader's bytes.
package enum ProtobufValue {
    case varint(UInt64)
    case fixed32(UInt32)
    case fixed64(UInt64)
    /// A string, bytes, an embedded message or packed numbers.
    case bytes(UnsafeRawBufferPointer)
    /// Passed over: nothing of ours has groups.
    case group
}

package struct ProtobufField {
    package let number: UInt32
    package let value: ProtobufValue

    /// Of a wire type of its own; `nil` for another, which the readers of proto3 pass over as unknown.
    package var varint: UInt64? { if case .varint(let value) = value { value } else { nil } }
    package var bytes: UnsafeRawBufferPointer? { if case .bytes(let value) = value { value } else { nil } }

    /// A field declared as `string`.
    ///
    /// - Throws: `.invalidUTF8`, as every reader of proto3 must.
    package func text() throws(FormatError) -> UnsafeRawBufferPointer? {
        guard let bytes else { return nil }
        guard ProtobufReader.isUTF8(bytes) else { throw FormatError(.invalidUTF8) }
        return bytes
    }
}

/// Reads protobuf's wire format field by field, forward only; bytes are lent where they stand.
///
/// The caller keeps the bytes alive. Fields may come in any order and more than once: of a field that is not
/// repeated the last one counts.
///
/// ```swift
/// while let field = try reader.next() {
///     switch field.number {
///     case 1: version = field.varint ?? version
///     default: break
///     }
/// }
/// ```
package struct ProtobufReader {
    /// Groups in groups that are passed over; who writes none reads none deeper.
    package static let groupDepth = 8
    private static let largestNumber: UInt64 = (1 << 29) - 1

    package let bytes: UnsafeRawBufferPointer
    /// Offset of the next byte to read.
    package private(set) var position = 0
    private var fieldsLeft: Int

    /// - Parameter fieldLimit: most fields, those that are passed over among them.
    package init(_ bytes: UnsafeRawBufferPointer, fieldLimit: Int) {
        self.bytes = bytes
        fieldsLeft = fieldLimit
    }

    /// - Returns: `nil` at the end.
    /// - Throws: `.malformedProtobuf`; `.tooLarge` for more fields than the limit; `.tooDeep`.
    package mutating func next() throws(FormatError) -> ProtobufField? {
        guard position < bytes.count else { return nil }
        try countField()
        let (number, wireType) = try readTag()
        return ProtobufField(number: number, value: try readValue(of: number, wireType))
    }

    private mutating func countField() throws(FormatError) {
        guard fieldsLeft > 0 else { throw FormatError(.tooLarge) }
        fieldsLeft -= 1
    }

    private mutating func readTag() throws(FormatError) -> (number: UInt32, wireType: UInt8) {
        let tag = try readVarint()
        guard (1...Self.largestNumber).contains(tag >> 3) else { throw FormatError(.malformedProtobuf) }
        return (UInt32(tag >> 3), UInt8(tag & 7))
    }

    private mutating func readValue(
        of number: UInt32, _ wireType: UInt8
    ) throws(FormatError) -> ProtobufValue {
        switch wireType {
        case 0: return .varint(try readVarint())
        case 1: return .fixed64(UInt64(littleEndian: try take(8).loadUnaligned(as: UInt64.self)))
        case 2:
            let count = try readVarint()
            guard count <= UInt64(bytes.count - position) else { throw FormatError(.malformedProtobuf) }
            return .bytes(try take(Int(count)))
        case 3:
            try skipGroup(number)
            return .group
        case 5: return .fixed32(UInt32(littleEndian: try take(4).loadUnaligned(as: UInt32.self)))
        // The end of a group that nobody began, or no wire type.
        default: throw FormatError(.malformedProtobuf)
        }
    }

    private mutating func skipGroup(_ number: UInt32) throws(FormatError) {
        var open = [number]
        while let innermost = open.last {
            try countField()
            let (number, wireType) = try readTag()
            switch wireType {
            case 3:
                guard open.count < Self.groupDepth else { throw FormatError(.tooDeep) }
                open.append(number)
            case 4:
                guard number == innermost else { throw FormatError(.malformedProtobuf) }
                open.removeLast()
            default: _ = try readValue(of: number, wireType)
            }
        }
    }

    /// At most ten bytes, 64 bits; a spelling longer than need be is taken.
    private mutating func readVarint() throws(FormatError) -> UInt64 {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 70, by: 7) {
            guard position < bytes.count else { throw FormatError(.malformedProtobuf) }
            let byte = bytes[position]
            position += 1
            guard shift < 63 || byte <= 1 else { throw FormatError(.malformedProtobuf) }
            value |= UInt64(byte & 0x7F) << shift
            if byte & 0x80 == 0 { return value }
        }
        throw FormatError(.malformedProtobuf)
    }

    private mutating func take(_ count: Int) throws(FormatError) -> UnsafeRawBufferPointer {
        guard count <= bytes.count - position else { throw FormatError(.malformedProtobuf) }
        defer { position += count }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
    }

    /// Well-formed UTF-8 (RFC 3629), told without a copy.
    package static func isUTF8(_ text: UnsafeRawBufferPointer) -> Bool {
        var at = 0
        while at < text.count {
            let first = text[at]
            let (length, second): (Int, ClosedRange<UInt8>)
            switch first {
            case 0...0x7F: (length, second) = (1, 0...0)
            case 0xC2...0xDF: (length, second) = (2, 0x80...0xBF)
            case 0xE0: (length, second) = (3, 0xA0...0xBF)
            case 0xED: (length, second) = (3, 0x80...0x9F)
            case 0xE1...0xEF: (length, second) = (3, 0x80...0xBF)
            case 0xF0: (length, second) = (4, 0x90...0xBF)
            case 0xF1...0xF3: (length, second) = (4, 0x80...0xBF)
            case 0xF4: (length, second) = (4, 0x80...0x8F)
            default: return false
            }
            guard at + length <= text.count else { return false }
            if length > 1 {
                guard second.contains(text[at + 1]) else { return false }
                for follower in text[(at + 2)..<(at + length)] where follower & 0xC0 != 0x80 { return false }
            }
            at += length
        }
        return true
    }
}
