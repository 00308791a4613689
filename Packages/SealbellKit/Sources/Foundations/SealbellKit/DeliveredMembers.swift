package import PushModel
package import WireFormats

/// What a protocol looks for in what was delivered.
package protocol DeliveredMembers {
    init()

    /// Reads the member whose value is next, if it is one of the protocol's. Of doubled ones the last counts.
    mutating func read(
        _ name: JSONStringSlice, _ kind: JSONKind, _ reader: inout JSONReader
    ) throws(FormatError) -> DeliveredMember

    /// Whether this object has them; else they are looked for in its `data` or `message`.
    var areThere: Bool { get }
}

/// What a protocol says of a member of what was delivered.
package enum DeliveredMember {
    /// It was read.
    case own
    /// It is none of the protocol's, and its value is still next.
    case foreign
    /// It was read, and is JSON that has all there is to find.
    case whole(Secret)
}

extension Delivered {
    /// Finds a protocol's members in what a push service delivered, as JSON: beside `aps`, as FCM's data or
    /// in its `data` or `message`, or in a text that is JSON again.
    ///
    /// - Parameter limit: bytes of JSON.
    /// - Returns: `nil` for what is not of this protocol, which an app may have use for elsewhere.
    package static func find<Members: DeliveredMembers>(
        _: Members.Type, in json: Secret, atMost limit: Int = KitLimits.deliveredBytes
    ) -> Members? {
        guard json.count <= limit else { return nil }
        // Whatever cannot be read is not of this protocol.
        return json.reveal { try? find($0, KitLimits.deliveredPlaces) }
    }

    private static func find<Members: DeliveredMembers>(
        _ json: UnsafeRawBufferPointer, _ places: Int
    ) throws(FormatError) -> Members {
        guard places > 0 else { throw FormatError(.tooDeep) }
        var reader = JSONReader(json)
        if try reader.peek() == .string {
            let text = try reader.readString().secret()
            try reader.end()
            return try text.reveal { (text) throws(FormatError) in try find(text, places - 1) }
        }
        var members = Members()
        var inner: UnsafeRawBufferPointer?
        try reader.beginObject()
        while let name = try reader.nextMember() {
            let kind = try reader.peek()
            switch try members.read(name, kind, &reader) {
            case .own: break
            case .whole(let text):
                return try text.reveal { (text) throws(FormatError) in try find(text, places - 1) }
            case .foreign:
                let value = try reader.skipValue()
                if name.equals("data") || name.equals("message"), kind == .object || kind == .string {
                    inner = value
                }
            }
        }
        try reader.end()
        if members.areThere { return members }
        guard let inner else { throw FormatError(.wrongType) }
        return try find(inner, places - 1)
    }
}
