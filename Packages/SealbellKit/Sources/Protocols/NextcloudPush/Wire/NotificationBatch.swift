import PushModel
import WireFormats

/// The entries of one notifications call (§5.5). One that is malformed is counted and spoils no other.
package struct NotificationBatch: Sendable {
    /// In the order in which each first appeared.
    package let entries: [NotificationEntry]
    /// Those that are none: no object, or a needed field missing or no text.
    package let malformed: Int
    /// Ciphertexts and signatures of all of them, as base64.
    let texts: Secret

    /// - Throws: `.malformedForm`, `.malformedJSON`, `.tooManyEntries`; `.missingParameter` for a form
    ///   without any entry, which no server sends.
    package init(parsing body: UnsafeRawBufferPointer, isJSON: Bool) throws(NextcloudError) {
        self = try isJSON ? Self.json(body) : Self.form(body)
    }

    private init(_ read: [NotificationEntry], malformed: Int, _ texts: Secret) {
        entries = read
        self.malformed = malformed
        self.texts = texts
    }

    /// Base64 of the ciphertext, then of the signature.
    func texts(at place: Int) -> (subject: Range<Int>, signature: Range<Int>) {
        let middle = place + NextcloudLimits.blockCharacters
        return (place..<middle, middle..<middle + NextcloudLimits.blockCharacters)
    }

    // MARK: form

    /// `notifications[0]=…&notifications[1]=…`, with the brackets encoded or not, in any order. Of two with
    /// one index the last counts, and takes the place of the first, as in PHP.
    private static func form(_ body: UnsafeRawBufferPointer) throws(NextcloudError) -> NotificationBatch {
        let fields = try EntryFields(body)
        guard !fields.values.isEmpty else {
            throw NextcloudError(.missingParameter, parameter: "notifications")
        }
        var (entries, malformed) = ([NotificationEntry](), 0)
        entries.reserveCapacity(fields.values.count)
        var reader = EntryReader()
        let texts = Secret(count: EntryReader.room(for: fields.values.lazy.map { $0?.count ?? 0 })) { texts in
            // One memory for all of them, wiped once.
            var scratch = [UInt8](repeating: 0, count: NextcloudLimits.entryBytes)
            scratch.withUnsafeMutableBytes { scratch in
                for value in fields.values {
                    let entry = value.flatMap { FormText.decode(body[$0], into: scratch) }.flatMap {
                        reader.read(UnsafeRawBufferPointer(rebasing: scratch[..<$0]), into: texts)
                    }
                    if let entry { entries.append(entry) } else { malformed += 1 }
                }
                wipe(scratch)
            }
        }
        return NotificationBatch(entries, malformed: malformed, texts)
    }

    // MARK: JSON

    /// `{"notifications": […]}` of texts that are JSON themselves, or of objects.
    private static func json(_ body: UnsafeRawBufferPointer) throws(NextcloudError) -> NotificationBatch {
        do throws(FormatError) {
            let values = try values(body)
            guard values.count <= NextcloudLimits.entriesPerCall else { throw FormatError(.tooLarge) }
            var (entries, malformed) = ([NotificationEntry](), 0)
            var reader = EntryReader()
            let texts = Secret(count: EntryReader.room(for: values.lazy.map(\.count))) { texts in
                for value in values {
                    let entry = read(value, &reader, texts)
                    if let entry { entries.append(entry) } else { malformed += 1 }
                }
            }
            return NotificationBatch(entries, malformed: malformed, texts)
        } catch {
            throw NextcloudError(error.code == .tooLarge ? .tooManyEntries : .malformedJSON)
        }
    }

    private static func read(
        _ value: UnsafeRawBufferPointer, _ reader: inout EntryReader, _ texts: UnsafeMutableRawBufferPointer
    ) -> NotificationEntry? {
        guard value.count <= NextcloudLimits.entryBytes else { return nil }
        guard value.first == 0x22 else { return reader.read(value, into: texts) }
        var outer = JSONReader(value, depthLimit: 1)
        // It has been read as a value before.
        guard let text = try? outer.readString() else { return nil }
        if !text.hasEscapes { return reader.read(text.raw, into: texts) }
        var plain = text.decoded()
        defer { plain.withUnsafeMutableBytes { wipe($0) } }
        return withBytes(plain) { reader.read($0, into: texts) }
    }

    /// The elements as they stand in the body; of doubles of the member the last counts.
    private static func values(_ body: UnsafeRawBufferPointer) throws(FormatError) -> [UnsafeRawBufferPointer]
    {
        var values: [UnsafeRawBufferPointer] = []
        var reader = JSONReader(body, depthLimit: NextcloudLimits.jsonDepth)
        try reader.beginObject()
        while let name = try reader.nextMember() {
            guard name.equals("notifications") else {
                try reader.skipValue()
                continue
            }
            values = []
            guard try reader.peek() == .array else {
                try reader.skipValue()
                continue
            }
            try reader.beginArray()
            while try reader.nextElement() {
                guard values.count <= NextcloudLimits.entriesPerCall else { throw FormatError(.tooLarge) }
                values.append(try reader.skipValue())
            }
        }
        try reader.end()
        return values
    }
}

/// Where a form has the values of `notifications[…]`.
private struct EntryFields {
    /// Still encoded; `nil`: one that is itself an array, or too long for an entry.
    var values: [Range<Int>?] = []

    private enum Index: Hashable {
        case number(Int)
        case word([UInt8])
    }

    private var places: [Index: Int] = [:]
    private var next = 0

    /// The longest name that is looked at: the word and an index, percent-encoded.
    private static let nameBytes = 256
    private static let word = Array("notifications[".utf8)

    init(_ body: UnsafeRawBufferPointer) throws(NextcloudError) {
        var start = 0
        while start < body.count {
            let end = FormText.end(of: 0x26, in: body, from: start)
            if end > start { try read(body, start..<end) }
            start = end + 1
        }
    }

    private mutating func read(_ body: UnsafeRawBufferPointer, _ field: Range<Int>) throws(NextcloudError) {
        // A cheap look first: a body of many small fields must not cost more than one of real ones.
        guard field.count >= Self.word.count, body[field.lowerBound] == 0x6E || body[field.lowerBound] == 0x25
        else { return }
        let offset = field.lowerBound
        let field = UnsafeRawBufferPointer(rebasing: body[field])
        let middle = FormText.end(of: 0x3D, in: field, from: 0)
        guard middle <= Self.nameBytes, let (index, isNested) = index(field[..<middle]) else { return }
        let value = min(middle + 1, field.count)..<field.count
        // Each character may be percent-encoded.
        let isUsable = !isNested && value.count <= 3 * NextcloudLimits.entryBytes
        let found = isUsable ? value.lowerBound + offset..<value.upperBound + offset : nil
        if let place = places[index] {
            values[place] = found
        } else {
            guard values.count < NextcloudLimits.entriesPerCall else { throw NextcloudError(.tooManyEntries) }
            places[index] = values.count
            values.append(found)
        }
    }

    /// `nil` for a name that is not `notifications[…]`.
    private mutating func index(_ name: Slice<UnsafeRawBufferPointer>) -> (Index, isNested: Bool)? {
        var bytes = [UInt8](repeating: 0, count: name.count)
        let count = bytes.withUnsafeMutableBytes { FormText.decode(name, into: $0) }
        guard let count else { return nil }
        bytes.removeLast(bytes.count - count)
        guard bytes.starts(with: Self.word), let close = bytes.firstIndex(of: 0x5D) else { return nil }
        let key = Array(bytes[Self.word.count..<close])
        let isNested = close + 1 < bytes.count && bytes[close + 1] == 0x5B
        if key.isEmpty {
            next += 1
            return (.number(next - 1), isNested)
        }
        guard let number = Self.number(key) else { return (.word(key), isNested) }
        next = max(next, number + 1)
        return (.number(number), isNested)
    }

    /// A number as PHP takes it for an index: decimal digits without leading zeros.
    private static func number(_ key: [UInt8]) -> Int? {
        guard key.count <= 9, key == [0x30] || key[0] != 0x30 else { return nil }
        var value = 0
        for digit in key {
            guard (0x30...0x39).contains(digit) else { return nil }
            value = 10 * value + Int(digit - 0x30)
        }
        return value
    }
}
