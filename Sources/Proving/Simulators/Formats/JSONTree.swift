/// A JSON value (RFC 8259) as the simulators read it. Numbers keep their text.
indirect enum JSONTree: Equatable, Sendable {
    case null
    case bool(Bool)
    case number(String)
    case string(String)
    case array([JSONTree])
    case object([Member])

    struct Member: Equatable, Sendable {
        var name: String
        var value: JSONTree
    }

    /// Deeper nesting is refused: no sender of pushes needs it, and the reader is recursive.
    static let depthLimit = 64

    /// `nil` if the bytes are not JSON, or are nested too deep.
    init?(_ bytes: [UInt8]) {
        let tree = bytes.withUnsafeBufferPointer { bytes -> JSONTree? in
            var reader = SimulatorJSONReader(bytes)
            guard let tree = reader.read(depth: 0) else { return nil }
            return reader.isAtEnd() ? tree : nil
        }
        guard let tree else { return nil }
        self = tree
    }

    /// Whether the bytes are a JSON object, without building it.
    static func isObject(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBufferPointer { bytes in
            var reader = SimulatorJSONReader(bytes)
            return reader.peek() == UInt8(ascii: "{") && reader.skip(depth: 0) && reader.isAtEnd()
        }
    }

    /// The first member with that name; `nil` if there is none, or the value is not an object.
    subscript(name: String) -> JSONTree? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    var text: String? { if case .string(let text) = self { text } else { nil } }
    var members: [Member]? { if case .object(let members) = self { members } else { nil } }
    var flag: Bool? { if case .bool(let flag) = self { flag } else { nil } }
    var items: [JSONTree]? { if case .array(let items) = self { items } else { nil } }
    /// A whole number; one with a fraction or an exponent is read as a double and must be whole.
    var integer: Int64? {
        guard case .number(let text) = self else { return nil }
        return Int64(text) ?? Double(text).flatMap { Int64(exactly: $0) }
    }
    var double: Double? { if case .number(let text) = self { Double(text) } else { nil } }

    /// The value as JSON text.
    var bytes: [UInt8] {
        var out: [UInt8] = []
        write(into: &out)
        return out
    }

    private func write(into out: inout [UInt8]) {
        switch self {
        case .null: out += "null".utf8
        case .bool(let flag): out += (flag ? "true" : "false").utf8
        case .number(let text): out += text.utf8
        case .string(let text): Self.write(text, into: &out)
        case .array(let items):
            out.append(UInt8(ascii: "["))
            for (index, item) in items.enumerated() {
                if index > 0 { out.append(UInt8(ascii: ",")) }
                item.write(into: &out)
            }
            out.append(UInt8(ascii: "]"))
        case .object(let members):
            out.append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { out.append(UInt8(ascii: ",")) }
                Self.write(member.name, into: &out)
                out.append(UInt8(ascii: ":"))
                member.value.write(into: &out)
            }
            out.append(UInt8(ascii: "}"))
        }
    }

    private static func write(_ text: String, into out: inout [UInt8]) {
        let digits = Array("0123456789abcdef".utf8)
        out.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): out += [UInt8(ascii: "\\"), byte]
            case UInt8(ascii: "\n"): out += "\\n".utf8
            case 0..<32: out += "\\u00".utf8 + [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: out.append(byte)
            }
        }
        out.append(UInt8(ascii: "\""))
    }
}

extension JSONTree: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    init(stringLiteral text: String) { self = .string(text) }
    init(integerLiteral number: Int64) { self = .number(String(number)) }
    init(booleanLiteral flag: Bool) { self = .bool(flag) }
    init(arrayLiteral items: JSONTree...) { self = .array(items) }
    init(dictionaryLiteral members: (String, JSONTree)...) {
        self = .object(members.map { Member(name: $0.0, value: $0.1) })
    }
    static func number(_ number: some BinaryInteger) -> JSONTree { .number(String(number)) }
}
