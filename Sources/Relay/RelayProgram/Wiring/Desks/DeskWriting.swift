import WireFormats

/// How calls at the admin listener write what they answer, and commands what they ask.
extension JSONWriter {
    /// The bytes of one object.
    static func object(_ write: (inout JSONWriter) -> Void) -> [UInt8] {
        var json = JSONWriter(reserving: 512)
        json.beginObject()
        write(&json)
        json.endObject()
        return json.bytes
    }

    /// An object of a value's members; `null` where there is none.
    mutating func object<Value>(
        _ name: StaticString, _ value: Value?, _ write: (Value, inout JSONWriter) -> Void
    ) {
        key(name)
        guard let value else { return null() }
        beginObject()
        write(value, &self)
        endObject()
    }

    /// A list of objects, each of one value's members.
    mutating func objects<Value>(
        _ name: StaticString, _ values: [Value], _ write: (Value, inout JSONWriter) -> Void
    ) {
        beginArray(name)
        for value in values {
            beginObject()
            write(value, &self)
            endObject()
        }
        endArray()
    }

    /// Members of those that have a value.
    mutating func texts(_ members: [(name: String, value: String?)]) {
        for case (let name, let value?) in members {
            key(name)
            string(value)
        }
    }

    mutating func counts(_ counts: [NamedCount]) {
        for (name, count) in counts { member(name, count) }
    }
}
