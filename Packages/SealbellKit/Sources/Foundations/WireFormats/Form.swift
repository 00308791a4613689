import PushModel

/// `application/x-www-form-urlencoded` (WHATWG URL §5), over bytes.
package struct Form: Sendable {
    /// Fields in order; values are whatever bytes were sent.
    package let fields: [(name: String, value: [UInt8])]

    package init(_ fields: [(name: String, value: [UInt8])]) { self.fields = fields }

    /// Reads a body.
    ///
    /// - Parameter fieldLimit: more fields are `.tooLarge`.
    /// - Throws: `.malformedForm` for a broken percent escape, `.invalidUTF8` for a name or value that is not
    ///   UTF-8.
    package static func parse(_ body: UnsafeRawBufferPointer, fieldLimit: Int = 64) throws(FormatError)
        -> Form
    {
        var fields: [(name: String, value: [UInt8])] = []
        var start = 0
        while start < body.count {
            let end = body[start...].firstIndex(of: 0x26) ?? body.count
            if end > start {
                guard fields.count < fieldLimit else { throw FormatError(.tooLarge) }
                let middle = body[start..<end].firstIndex(of: 0x3D) ?? end
                let name = try decode(body[start..<middle])
                let value = try decode(body[min(middle + 1, end)..<end])
                fields.append((String(decoding: name, as: UTF8.self), value))
            }
            start = end + 1
        }
        return Form(fields)
    }

    package static func parse(_ body: [UInt8], fieldLimit: Int = 64) throws(FormatError) -> Form {
        try withBytes(body) { (raw) throws(FormatError) in try parse(raw, fieldLimit: fieldLimit) }
    }

    /// The last value of a name, as Django's `QueryDict` gives it.
    package subscript(_ name: String) -> [UInt8]? { fields.last { $0.name == name }?.value }

    /// The last value of a name as text. Not for secrets.
    package func text(_ name: String) -> String? { self[name].map { String(decoding: $0, as: UTF8.self) } }

    /// The body that stands for these fields: spaces as `+`, all but letters, digits and `*-._` escaped.
    package func encoded() -> [UInt8] {
        var out: [UInt8] = []
        for (index, field) in fields.enumerated() {
            if index > 0 { out.append(0x26) }
            Self.encode(field.name.utf8, into: &out)
            out.append(0x3D)
            Self.encode(field.value, into: &out)
        }
        return out
    }

    private static func decode(_ text: Slice<UnsafeRawBufferPointer>) throws(FormatError) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(text.count)
        var at = text.startIndex
        while at < text.endIndex {
            switch text[at] {
            case 0x2B: out.append(0x20)
            case 0x25:
                guard at + 2 < text.endIndex, let high = Hex.value(ofDigit: text[at + 1]),
                    let low = Hex.value(ofDigit: text[at + 2])
                else { throw FormatError(.malformedForm) }
                out.append(high << 4 | low)
                at += 2
            default: out.append(text[at])
            }
            at += 1
        }
        guard withBytes(out, { UTF8Check.holds($0) }) else { throw FormatError(.invalidUTF8) }
        return out
    }

    private static func encode(_ bytes: some Sequence<UInt8>, into out: inout [UInt8]) {
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in bytes {
            switch byte {
            case 0x20: out.append(0x2B)
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2A, 0x2D, 0x2E, 0x5F: out.append(byte)
            default:
                out.append(0x25)
                out.append(digits[Int(byte >> 4)])
                out.append(digits[Int(byte & 15)])
            }
        }
    }
}
