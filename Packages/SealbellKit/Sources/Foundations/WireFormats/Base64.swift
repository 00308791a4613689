import PushModel

/// Base64 (RFC 4648 §4) and base64url (§5), each with exactly one spelling for a byte string.
///
/// Reading is strict: no character outside the alphabet, no white space, padding exactly as the spelling
/// demands, and unused trailing bits zero (§3.5). A second spelling of the same bytes would be a second name
/// for the same token.
package enum Base64 {
    /// The two alphabets.
    package enum Alphabet: Sendable {
        /// `+` and `/`, padded with `=`.
        case standard
        /// `-` and `_`, without padding.
        case url
    }

    /// Writes the canonical spelling.
    package static func encode(_ bytes: some Collection<UInt8>, _ alphabet: Alphabet = .standard) -> [UInt8] {
        var out: [UInt8] = []
        append(bytes, alphabet, to: &out)
        return out
    }

    /// The canonical spelling as text. Not for secrets.
    package static func text(_ bytes: some Collection<UInt8>, _ alphabet: Alphabet = .standard) -> String {
        String(decoding: encode(bytes, alphabet), as: UTF8.self)
    }

    /// Appends the canonical spelling to a buffer.
    package static func append(
        _ bytes: some Collection<UInt8>, _ alphabet: Alphabet = .standard, to out: inout [UInt8]
    ) {
        let isDone: Void? = bytes.withContiguousStorageIfAvailable {
            append(UnsafeRawBufferPointer($0), alphabet, to: &out)
        }
        if isDone != nil { return }
        var copy = Array(bytes)
        defer { copy.withUnsafeMutableBytes { wipe($0) } }
        copy.withUnsafeBytes { append($0, alphabet, to: &out) }
    }

    /// Apart from the generic one, which no other module's caller has specialised.
    private static func append(
        _ bytes: UnsafeRawBufferPointer, _ alphabet: Alphabet, to out: inout [UInt8]
    ) {
        let start = out.count
        let unpadded = (bytes.count * 8 + 5) / 6
        let count = alphabet == .standard ? encodedCount(bytes.count) : unpadded
        out.append(contentsOf: repeatElement(0x3D, count: count))
        out.withUnsafeMutableBytes { raw in
            write(bytes, alphabet, into: UnsafeMutableRawBufferPointer(rebasing: raw[start...]))
        }
    }

    /// How many characters the padded spelling of so many bytes has.
    package static func encodedCount(_ count: Int) -> Int { (count + 2) / 3 * 4 }

    /// Writes the padded spelling into memory of exactly ``encodedCount(_:)`` bytes. For hot paths.
    package static func encode(_ bytes: UnsafeRawBufferPointer, into out: UnsafeMutableRawBufferPointer) {
        precondition(out.count == encodedCount(bytes.count), "as many characters as the bytes need")
        write(bytes, .standard, into: out)
        switch bytes.count % 3 {
        case 1: (out[out.count - 2], out[out.count - 1]) = (0x3D, 0x3D)
        case 2: out[out.count - 1] = 0x3D
        default: break
        }
    }

    /// The digits without padding. Each three bytes are read before their four digits are written, so that
    /// these may stand over bytes that were read before.
    private static func write(
        _ bytes: UnsafeRawBufferPointer, _ alphabet: Alphabet, into out: UnsafeMutableRawBufferPointer
    ) {
        let pairs = alphabet == .standard ? standardPairs : urlPairs
        pairs.withUnsafeBufferPointer { pairs in
            let whole = bytes.count / 3
            for index in 0..<whole {
                let place = 3 * index
                let word = Int(bytes[place]) << 16 | Int(bytes[place + 1]) << 8 | Int(bytes[place + 2])
                out.storeBytes(of: pairs[word >> 12], toByteOffset: 4 * index, as: UInt16.self)
                out.storeBytes(of: pairs[word & 0xFFF], toByteOffset: 4 * index + 2, as: UInt16.self)
            }
            let left = bytes.count - 3 * whole
            guard left > 0 else { return }
            let (first, second) = (Int(bytes[3 * whole]), left == 2 ? Int(bytes[3 * whole + 1]) : 0)
            let word = first << 16 | second << 8
            out.storeBytes(of: pairs[word >> 12], toByteOffset: 4 * whole, as: UInt16.self)
            if left == 2 {
                let third = withUnsafeBytes(of: pairs[word & 0xFFF]) { $0[0] }
                out[4 * whole + 2] = third
            }
        }
    }

    /// Two digits for each twelve bits, as they stand in memory: 8 KiB.
    private static let standardPairs = pairs(standardDigits)
    private static let urlPairs = pairs(urlDigits)

    private static func pairs(_ digits: [UInt8]) -> [UInt16] {
        (0..<4_096).map { UInt16(littleEndian: UInt16(digits[$0 >> 6]) | UInt16(digits[$0 & 63]) << 8) }
    }

    /// Spells the last `count` bytes of a memory over all of it, which has exactly ``encodedCount(_:)`` bytes
    /// for them. What is read stands behind what is written all the way. For hot paths.
    package static func spell(last count: Int, in memory: UnsafeMutableRawBufferPointer) {
        encode(UnsafeRawBufferPointer(rebasing: memory[(memory.count - count)...]), into: memory)
    }

    /// Number of bytes that a canonical text stands for, or `nil` when no text of this form has that length.
    ///
    /// Looks at length and padding only.
    package static func decodedCount(_ text: UnsafeRawBufferPointer, _ alphabet: Alphabet = .standard) -> Int?
    {
        switch alphabet {
        case .standard:
            guard text.count.isMultiple(of: 4) else { return nil }
            guard let last = text.last, last == 0x3D else { return text.count / 4 * 3 }
            return text.count / 4 * 3 - (text[text.count - 2] == 0x3D ? 2 : 1)
        case .url:
            return text.count % 4 == 1 ? nil : text.count * 3 / 4
        }
    }

    /// Reads the canonical spelling into memory of exactly ``decodedCount(_:_:)`` bytes.
    ///
    /// - Throws: `.malformedBase64`; the memory may then be partly written.
    package static func decode(
        _ text: UnsafeRawBufferPointer, _ alphabet: Alphabet = .standard,
        into out: UnsafeMutableRawBufferPointer
    ) throws(FormatError) {
        guard let count = decodedCount(text, alphabet), count == out.count else {
            throw FormatError(.malformedBase64)
        }
        let digits = alphabet == .standard ? text.count - paddingCount(count) : text.count
        let table = alphabet == .standard ? standardValues : urlValues
        try table.withUnsafeBufferPointer { (values) throws(FormatError) in
            // Whole groups first: four digits, three bytes, one look at what is no digit.
            let groups = digits / 4
            for index in 0..<groups {
                let text = UnsafeRawBufferPointer(rebasing: text[4 * index..<4 * index + 4])
                let (first, second) = (values[Int(text[0])], values[Int(text[1])])
                let (third, fourth) = (values[Int(text[2])], values[Int(text[3])])
                guard first | second | third | fourth <= 63 else { throw FormatError(.malformedBase64) }
                out[3 * index] = first << 2 | second >> 4
                out[3 * index + 1] = second << 4 | third >> 2
                out[3 * index + 2] = third << 6 | fourth
            }
            var group: UInt32 = 0
            var held: UInt32 = 0
            var at = 3 * groups
            for index in 4 * groups..<digits {
                let value = values[Int(text[index])]
                if value > 63 { throw FormatError(.malformedBase64) }
                group = group << 6 | UInt32(value)
                held += 6
                if held >= 8 {
                    held -= 8
                    out[at] = UInt8(truncatingIfNeeded: group >> held)
                    at += 1
                }
            }
            if group & (1 << held - 1) != 0 { throw FormatError(.malformedBase64) }
        }
    }

    /// Reads the canonical spelling.
    package static func decode(
        _ text: UnsafeRawBufferPointer, _ alphabet: Alphabet = .standard
    ) throws(FormatError) -> [UInt8] {
        guard let count = decodedCount(text, alphabet) else { throw FormatError(.malformedBase64) }
        var out = [UInt8](repeating: 0, count: count)
        try out.withUnsafeMutableBufferPointer { (buffer) throws(FormatError) in
            try decode(text, alphabet, into: UnsafeMutableRawBufferPointer(buffer))
        }
        return out
    }

    /// Reads the canonical spelling.
    package static func decode(_ text: [UInt8], _ alphabet: Alphabet = .standard) throws(FormatError)
        -> [UInt8]
    {
        try withBytes(text) { (raw) throws(FormatError) in try decode(raw, alphabet) }
    }

    /// Reads the canonical spelling of something that is no secret.
    package static func decode(_ text: String, _ alphabet: Alphabet = .standard) throws(FormatError)
        -> [UInt8]
    {
        try decode(Array(text.utf8), alphabet)
    }

    private static func paddingCount(_ decoded: Int) -> Int { (3 - decoded % 3) % 3 }

    private static let standardDigits =
        Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let urlDigits =
        Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    private static let standardValues = values(of: standardDigits)
    private static let urlValues = values(of: urlDigits)

    private static func values(of digits: [UInt8]) -> [UInt8] {
        var table = [UInt8](repeating: 0xFF, count: 256)
        for (value, digit) in digits.enumerated() { table[Int(digit)] = UInt8(value) }
        return table
    }
}
