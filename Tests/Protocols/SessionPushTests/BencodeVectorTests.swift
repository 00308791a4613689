import PushModel
import PushTesting
import Testing
import WireFormats

@Suite("Bencode by Session's vectors", .timeLimit(.minutes(30)))
struct BencodeVectorTests {
    private static let file = Result { try VectorFile.load("session.json") }
    private static let set: VectorSet? = try? file.get().map { file in
        let bencode = file.json["bencode"]
        return VectorSet(
            "session/" + file.set,
            ["decode", "encode"].flatMap { VectorCase.each(of: bencode?[$0], "bencode", part: $0) })
    }

    @Test("There is a file of vectors, or other vectors were named")
    func found() throws { #expect(try Self.file.get() != nil || VectorFile.isNamed) }

    @Test("holds", arguments: set?.cases ?? [])
    func holds(vector: VectorCase) async throws {
        #expect(
            try await Self.set?.run(vector) { vector in
                try (vector.part == "decode" ? Self.decodes(vector.row) : Self.encodes(vector.row)) ? 1 : 0
            } == true)
    }

    /// Both rules say what the file says, and find the value that it names.
    private static func decodes(_ row: JSONValue) throws -> Bool {
        let bytes = try Hex.decode(Array(try #require(row["hex"]?.string).utf8))
        return withBytes(bytes) { raw in
            let lenient = try? BencodeValue.parse(raw, .lenient)
            let strict = try? BencodeValue.parse(raw, .strict)
            guard (lenient != nil) == row["lenient"]?.bool, (strict != nil) == row["strict"]?.bool else {
                return false
            }
            let value = row["value"].map { BencodeValue(json: $0) }
            return value == nil || (lenient ?? value == value && strict ?? value == value)
        }
    }

    private static func encodes(_ row: JSONValue) throws -> Bool {
        let value = BencodeValue(json: try #require(row["value"]))
        var writer = BencodeWriter()
        value.write(to: &writer)
        return Hex.encode(writer.bytes) == row["hex"]?.string
    }
}

/// A whole value, as a vector file writes it down.
private indirect enum BencodeValue: Equatable {
    case int(String)
    case bytes([UInt8])
    case list([BencodeValue])
    /// Sorted by key.
    case dict([[UInt8]: BencodeValue])

    init(json: JSONValue) {
        let hex = { (text: String?) in (try? Hex.decode(Array((text ?? "").utf8))) ?? [] }
        if let digits = json["int"]?.string {
            self = .int(digits)
        } else if let elements = json["list"]?.array {
            self = .list(elements.map { BencodeValue(json: $0) })
        } else if let members = json["dict"]?.array {
            let pairs = members.compactMap { $0.array }.map { (hex($0[0].string), BencodeValue(json: $0[1])) }
            self = .dict(Dictionary(pairs) { $1 })
        } else {
            self = .bytes(hex(json["bytes"]?.string))
        }
    }

    static func parse(_ raw: UnsafeRawBufferPointer, _ rule: BencodeReader.Rule) throws(FormatError) -> Self {
        var reader = BencodeReader(raw, rule)
        let value = try read(&reader)
        try reader.end()
        return value
    }

    private static func read(_ reader: inout BencodeReader) throws(FormatError) -> Self {
        switch try reader.peek() {
        case .integer:
            return .int(String(decoding: try reader.readInteger().raw, as: UTF8.self))
        case .string: return .bytes(Array(try reader.readString()))
        case .list:
            var elements: [BencodeValue] = []
            try reader.beginList()
            while try reader.nextElement() { elements.append(try read(&reader)) }
            return .list(elements)
        case .dictionary:
            var members: [[UInt8]: BencodeValue] = [:]
            try reader.beginDictionary()
            while let key = try reader.nextKey() { members[Array(key)] = try read(&reader) }
            return .dict(members)
        }
    }

    func write(to writer: inout BencodeWriter) {
        switch self {
        case .int(let digits):
            if let value = Int64(digits) { writer.int(value) } else { writer.int(UInt64(digits) ?? 0) }
        case .bytes(let bytes): writer.string(bytes)
        case .list(let elements):
            writer.beginList()
            for element in elements { element.write(to: &writer) }
            writer.endList()
        case .dict(let members):
            writer.beginDictionary()
            for (key, value) in members.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
                withBytes(key) { writer.key($0) }
                value.write(to: &writer)
            }
            writer.endDictionary()
        }
    }
}
