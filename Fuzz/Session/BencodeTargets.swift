import PushModel
import WireFormats

/// The bencode reader, by both rules.
let bencodeTargets: [String: Body] = [
    "session-bencode": { bytes in
        let (strict, lenient) = (Bencode(bytes, .strict), Bencode(bytes, .lenient))
        precondition((strict == nil) == !isStrict(bytes), "passed over as it is read")
        if let strict {
            precondition(strict.written.elementsEqual(bytes), "one spelling for one value")
            precondition(strict == lenient || lenient == nil && strict.hasHugeNumber)
        }
        guard let lenient else { return }
        precondition(!lenient.hasHugeNumber)
        // Without its liberties it is strict.
        if lenient.hasRisingKeys {
            let text = lenient.written
            guard let again = withBytes(text, { Bencode($0, .strict) }) else {
                preconditionFailure("what we write we can read")
            }
            precondition(again.written == text)
        }
        find(bytes, lenient)
    }
]

/// Whether it is one value, and nothing behind it.
func isStrict(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var reader = BencodeReader(bytes, .strict)
    guard let value = try? reader.skipValue(), (try? reader.end()) != nil else { return false }
    return value.count == bytes.count
}

/// What is found walking forward stands in the dictionary; in one whose keys rise, all that stands there is.
private func find(_ bytes: UnsafeRawBufferPointer, _ value: Bencode) {
    guard case .dictionary(let members) = value else { return }
    var reader = BencodeReader(bytes)
    do throws(FormatError) {
        try reader.beginDictionary()
        for name: StaticString in ["#", "a", "n", "t", "~"] {
            let known = members.filter { $0.key.elementsEqual([name.utf8Start.pointee]) }.map(\.value)
            let isFound = try reader.find(name)
            precondition(isFound ? !known.isEmpty : known.isEmpty || !value.hasRisingKeys)
            guard isFound else { continue }
            let read = try Bencode(&reader)
            precondition(known.contains(read))
        }
        try reader.endDictionary()
        try reader.end()
    } catch { preconditionFailure("what was read before is read again") }
}

/// A value with all its spellings.
private enum Bencode: Equatable {
    struct Member: Equatable {
        let key: [UInt8]
        let value: Bencode
    }

    case integer([UInt8])
    case string([UInt8])
    case list([Bencode])
    case dictionary([Member])

    init?(_ bytes: UnsafeRawBufferPointer, _ rule: BencodeReader.Rule) {
        var reader = BencodeReader(bytes, rule)
        guard let value = try? Bencode(&reader), (try? reader.end()) != nil else { return nil }
        self = value
    }

    init(_ reader: inout BencodeReader) throws(FormatError) {
        switch try reader.peek() {
        case .integer:
            let number = try reader.readInteger()
            let text = String(decoding: number.raw, as: UTF8.self)
            precondition(number.int64 == Int64(text), "as the language reads it")
            precondition(number.raw.first == 0x2D || number.uint64 == UInt64(text))
            self = .integer(Array(number.raw))
        case .string: self = .string(Array(try reader.readString()))
        case .list:
            var items: [Bencode] = []
            try reader.beginList()
            while try reader.nextElement() { items.append(try Bencode(&reader)) }
            self = .list(items)
        case .dictionary:
            var members: [Member] = []
            try reader.beginDictionary()
            while let key = try reader.nextKey() {
                members.append(Member(key: Array(key), value: try Bencode(&reader)))
            }
            self = .dictionary(members)
        }
    }

    var written: [UInt8] {
        var writer = BencodeWriter()
        write(to: &writer)
        return writer.bytes
    }

    private func write(to writer: inout BencodeWriter) {
        switch self {
        case .integer(let digits):
            let text = String(decoding: digits, as: UTF8.self)
            if let number = Int64(text) {
                writer.int(number)
            } else if let number = UInt64(text) {
                writer.int(number)
            } else {
                withBytes([0x69] + digits + [0x65]) { writer.raw($0) }
            }
        case .string(let bytes): writer.string(bytes)
        case .list(let items):
            writer.beginList()
            for item in items { item.write(to: &writer) }
            writer.endList()
        case .dictionary(let members):
            writer.beginDictionary()
            for member in members {
                withBytes(member.key) { writer.key($0) }
                member.value.write(to: &writer)
            }
            writer.endDictionary()
        }
    }

    var hasHugeNumber: Bool {
        switch self {
        case .integer(let digits):
            let text = String(decoding: digits, as: UTF8.self)
            return Int64(text) == nil && UInt64(text) == nil
        case .string: return false
        case .list(let items): return items.contains { $0.hasHugeNumber }
        case .dictionary(let members): return members.contains { $0.value.hasHugeNumber }
        }
    }

    var hasRisingKeys: Bool {
        switch self {
        case .integer, .string: true
        case .list(let items): items.allSatisfy { $0.hasRisingKeys }
        case .dictionary(let members):
            zip(members, members.dropFirst()).allSatisfy { $0.key.lexicographicallyPrecedes($1.key) }
                && members.allSatisfy { $0.value.hasRisingKeys }
        }
    }
}
