import PushModel

/// A JSON number that keeps its text.
package struct JSONNumber: Sendable, Hashable {
    /// As written, RFC 8259 §6.
    package let text: String

    package init(_ value: Int64) { text = String(value) }
    init(text: String) { self.text = text }

    /// True when it was written without fraction and exponent.
    package var isInteger: Bool { text.utf8.allSatisfy { $0 == 0x2D || (0x30...0x39).contains($0) } }
    /// The value when it was written as an integer and fits.
    package var int64: Int64? { isInteger ? Int64(text) : nil }
    /// The value when it was written as an integer of 0 to 4294967295.
    package var uint32: UInt32? { int64.flatMap { UInt32(exactly: $0) } }
    /// The nearest double.
    package var double: Double? { Double(text) }
}

/// A whole JSON text in memory, for cold paths. Its strings are `String`: not for secrets, which go through
/// ``JSONReader``.
package indirect enum JSONValue: Sendable, Hashable {
    case null
    case bool(Bool)
    case number(JSONNumber)
    case string(String)
    case array([JSONValue])
    /// Members in the order of their first appearance; of duplicates the last value.
    case object(JSONObject)

    /// Reads one JSON text.
    ///
    /// - Parameter limitBytes: more is `.tooLarge`.
    /// - Parameter depthLimit: deeper is `.tooDeep`.
    package static func parse(
        _ bytes: UnsafeRawBufferPointer, limitBytes: Int = 1 << 20, depthLimit: Int = 32
    ) throws(FormatError) -> JSONValue {
        guard bytes.count <= limitBytes else { throw FormatError(.tooLarge) }
        var reader = JSONReader(bytes, depthLimit: depthLimit)
        let value = try JSONValue(reading: &reader)
        try reader.end()
        return value
    }

    package static func parse(
        _ bytes: [UInt8], limitBytes: Int = 1 << 20, depthLimit: Int = 32
    ) throws(FormatError) -> JSONValue {
        try withBytes(bytes) { (raw) throws(FormatError) in
            try parse(raw, limitBytes: limitBytes, depthLimit: depthLimit)
        }
    }

    /// Reads the next value of a reader.
    package init(reading reader: inout JSONReader) throws(FormatError) {
        switch try reader.peek() {
        case .null:
            _ = try reader.readNull()
            self = .null
        case .bool: self = .bool(try reader.readBool())
        case .number:
            self = .number(JSONNumber(text: String(decoding: try reader.readNumber().raw, as: UTF8.self)))
        case .string: self = .string(try reader.readString().string())
        case .array:
            var elements: [JSONValue] = []
            try reader.beginArray()
            while try reader.nextElement() { elements.append(try JSONValue(reading: &reader)) }
            self = .array(elements)
        case .object:
            var object = JSONObject()
            try reader.beginObject()
            while let name = try reader.nextMember() {
                object[name.string()] = try JSONValue(reading: &reader)
            }
            self = .object(object)
        }
    }

    /// A member of an object; `nil` when there is none, or this is no object.
    package subscript(_ name: String) -> JSONValue? { object?[name] }
    /// An element of an array; `nil` out of bounds, or when this is no array.
    package subscript(_ index: Int) -> JSONValue? {
        guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
        return elements[index]
    }

    package var isNull: Bool { self == .null }
    package var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    package var number: JSONNumber? { if case .number(let value) = self { value } else { nil } }
    package var int64: Int64? { number?.int64 }
    package var uint32: UInt32? { number?.uint32 }
    package var double: Double? { number?.double }
    package var string: String? { if case .string(let value) = self { value } else { nil } }
    package var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
    package var object: JSONObject? { if case .object(let value) = self { value } else { nil } }

    /// Compact text, as ``JSONWriter`` writes.
    package func serialized() -> [UInt8] {
        var writer = JSONWriter()
        writer.value(self)
        return writer.bytes
    }
}

/// The members of an object, in order, each name once.
package struct JSONObject: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    package private(set) var members: [(name: String, value: JSONValue)] = []
    private var places: [String: Int] = [:]

    package init() {}

    package init(dictionaryLiteral elements: (String, JSONValue)...) {
        for (name, value) in elements { self[name] = value }
    }

    package var count: Int { members.count }
    package var names: [String] { members.map(\.name) }

    /// Reads a member; writing replaces it in its place or appends it. Writing `nil` changes nothing.
    package subscript(_ name: String) -> JSONValue? {
        get { places[name].map { members[$0].value } }
        set {
            guard let newValue else { return }
            if let place = places[name] {
                members[place].value = newValue
            } else {
                places[name] = members.count
                members.append((name, newValue))
            }
        }
    }

    /// Order does not matter for equality.
    package static func == (left: Self, right: Self) -> Bool {
        left.count == right.count && left.members.allSatisfy { right[$0.name] == $0.value }
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(count) }
}
