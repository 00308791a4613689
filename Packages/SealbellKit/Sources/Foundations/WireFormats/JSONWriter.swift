package import PushModel

/// Writes compact JSON: no spaces; UTF-8 as it is; escaped only what must be, with the short forms of
/// Python's
/// `json.dumps(…, ensure_ascii=False)`. Commas come by themselves.
package struct JSONWriter {
    /// The text so far.
    package private(set) var bytes: [UInt8] = []
    private var needsComma = false

    package init(reserving capacity: Int = 256) { bytes.reserveCapacity(capacity) }

    package mutating func beginObject() { open(0x7B) }
    package mutating func endObject() { close(0x7D) }
    package mutating func beginArray() { open(0x5B) }
    package mutating func endArray() { close(0x5D) }

    /// A member's name; the value must follow. The name is written as it is and must need no escape.
    package mutating func key(_ name: StaticString) {
        separate()
        bytes.append(0x22)
        literal(name)
        bytes.append(0x22)
        bytes.append(0x3A)
        needsComma = false
    }

    /// A member's name of any text.
    package mutating func key(_ name: String) {
        string(name)
        bytes.append(0x3A)
        needsComma = false
    }

    /// A member that is an object, or an array, and is ended as such.
    package mutating func beginObject(_ name: StaticString) {
        key(name)
        beginObject()
    }

    package mutating func beginArray(_ name: StaticString) {
        key(name)
        beginArray()
    }

    // A member whole.

    package mutating func member(_ name: StaticString, _ value: String) {
        key(name)
        string(value)
    }

    package mutating func member(_ name: StaticString, _ value: Int64) {
        key(name)
        int(value)
    }

    package mutating func member(_ name: StaticString, _ value: Int) { member(name, Int64(value)) }

    package mutating func member(_ name: StaticString, _ value: Bool) {
        key(name)
        bool(value)
    }

    /// - Parameter text: UTF-8, which the caller has checked.
    package mutating func member(_ name: StaticString, utf8 text: Secret) {
        key(name)
        text.reveal { string(utf8: $0) }
    }

    /// - Parameter text: already escaped, or it needs no escape: hexadecimal digits, base64.
    package mutating func member(_ name: StaticString, escaped text: Secret) {
        key(name)
        text.reveal { string(escaped: $0) }
    }

    /// `null` where there is no value.
    package mutating func optional(_ name: StaticString, _ value: String?) {
        key(name)
        if let value { string(value) } else { null() }
    }

    package mutating func optional(_ name: StaticString, _ value: Int64?) {
        key(name)
        if let value { int(value) } else { null() }
    }

    package mutating func string(_ text: String) {
        var text = text
        text.withUTF8 { string(utf8: UnsafeRawBufferPointer($0)) }
    }

    /// A string given as UTF-8, which the caller has checked.
    package mutating func string(utf8 text: UnsafeRawBufferPointer) {
        separate()
        bytes.append(0x22)
        // Most text needs no escape, and is appended whole.
        var start = text.startIndex
        for index in text.indices where Self.isEscaped(text[index]) {
            bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: text[start..<index]))
            escape(text[index])
            start = index + 1
        }
        bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: text[start...]))
        bytes.append(0x22)
    }

    /// A string that is already escaped, or needs no escape: base64, or a ``JSONStringSlice``'s raw bytes.
    package mutating func string(escaped text: UnsafeRawBufferPointer) {
        separate()
        bytes.append(0x22)
        bytes.append(contentsOf: text)
        bytes.append(0x22)
    }

    package mutating func int(_ value: Int64) {
        separate()
        if value < 0 { bytes.append(0x2D) }
        digits(value.magnitude)
    }

    /// An integer as a decimal string, for a push service that takes strings alone.
    package mutating func stringOfInt(_ value: Int64) {
        separate()
        bytes.append(0x22)
        if value < 0 { bytes.append(0x2D) }
        digits(value.magnitude)
        bytes.append(0x22)
    }

    package mutating func bool(_ value: Bool) {
        separate()
        literal(value ? "true" : "false")
    }

    package mutating func null() {
        separate()
        literal("null")
    }

    /// A value that is JSON already.
    package mutating func raw(_ json: UnsafeRawBufferPointer) {
        separate()
        bytes.append(contentsOf: json)
    }

    package mutating func raw(_ json: [UInt8]) {
        separate()
        bytes.append(contentsOf: json)
    }

    package mutating func value(_ value: JSONValue) {
        switch value {
        case .null: null()
        case .bool(let flag): bool(flag)
        case .number(let number): raw(Array(number.text.utf8))
        case .string(let text): string(text)
        case .array(let elements):
            beginArray()
            for element in elements { self.value(element) }
            endArray()
        case .object(let object):
            beginObject()
            for member in object.members {
                key(member.name)
                self.value(member.value)
            }
            endObject()
        }
    }

    /// Hands the text over as a secret and wipes this buffer.
    ///
    /// Reserve enough at the start: a buffer that grew has left unwiped memory behind.
    package mutating func takeSecret() -> Secret {
        let secret = bytes.withUnsafeBytes { Secret(copying: $0) }
        bytes.withUnsafeMutableBytes { wipe($0) }
        bytes.removeAll(keepingCapacity: true)
        needsComma = false
        return secret
    }

    // MARK: parts

    private mutating func separate() {
        if needsComma { bytes.append(0x2C) }
        needsComma = true
    }

    private mutating func open(_ bracket: UInt8) {
        separate()
        bytes.append(bracket)
        needsComma = false
    }

    private mutating func close(_ bracket: UInt8) {
        bytes.append(bracket)
        needsComma = true
    }

    private mutating func digits(_ value: UInt64) {
        // At most twenty, from the last to the first, and appended at once.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { room in
            var (left, start) = (value, room.count)
            repeat {
                start -= 1
                room[start] = 0x30 + UInt8(left % 10)
                left /= 10
            } while left > 0
            bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(room)[start...]))
        }
    }

    private mutating func literal(_ text: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    @inline(__always)
    private static func isEscaped(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x22 || byte == 0x5C }

    /// - Parameter byte: one that ``isEscaped(_:)``.
    private mutating func escape(_ byte: UInt8) {
        switch byte {
        case 0x22, 0x5C:
            bytes.append(0x5C)
            bytes.append(byte)
        case 0x08: short("b")
        case 0x09: short("t")
        case 0x0A: short("n")
        case 0x0C: short("f")
        case 0x0D: short("r")
        default:
            literal("\\u00")
            bytes.append(0x30 + byte >> 4)
            bytes.append(byte & 15 < 10 ? 0x30 + byte & 15 : 0x57 + byte & 15)
        }
    }

    private mutating func short(_ letter: Unicode.Scalar) {
        bytes.append(0x5C)
        bytes.append(UInt8(ascii: letter))
    }
}
