package import PushModel
package import WireFormats

/// One protobuf message of this protocol.
package protocol StatusMessage: Sendable {
    /// Reads fields in any order and ignores unknown ones.
    init(reading fields: inout ProtobufReader) throws(FormatError)
    /// The largest number of fields that it has.
    static var fieldLimit: Int { get }
    func write(to writer: inout ProtobufWriter)
    /// The largest size of the encoded message, so that its buffer never grows.
    var room: Int { get }
}

extension StatusMessage {
    package static var fieldLimit: Int { StatusLimits.fewFields }

    /// - Throws: `.malformedMessage` for anything that is not such a message.
    package init(reading bytes: UnsafeRawBufferPointer) throws(StatusError) {
        do {
            var reader = ProtobufReader(bytes, fieldLimit: Self.fieldLimit)
            self = try Self(reading: &reader)
        } catch {
            throw StatusError(.malformedMessage)
        }
    }

    package init(reading bytes: Secret) throws(StatusError) {
        self = try bytes.reveal { bytes throws(StatusError) in try Self(reading: bytes) }
    }

    /// In ascending order of the fields, without defaults: the same bytes as other implementations write.
    package func encoded() -> Secret {
        var writer = ProtobufWriter(reserving: room)
        write(to: &writer)
        return writer.takeSecret()
    }
}

/// Room for the tags and lengths of a message with at most fifteen fields that are not repeated.
enum FieldRoom {
    static let heads = 15 * 12

    static func of(_ list: [Secret]) -> Int { list.reduce(0) { $0 + element($1) } }

    /// An element of a list.
    static func element(_ value: Secret) -> Int { value.count + 12 }
    static func element(_ message: some StatusMessage) -> Int { message.room + 12 }
}

extension ProtobufField {
    /// An enum's number as proto3 reads it; unknown numbers survive.
    var enumNumber: Int32? { varint.map { Int32(truncatingIfNeeded: $0) } }
    var flag: Bool? { varint.map { $0 != 0 } }
    var secret: Secret? { bytes.map { Secret(copying: $0) } }
    func secretText() throws(FormatError) -> Secret? { try text().map { Secret(copying: $0) } }
}

extension ProtobufWriter {
    mutating func enumNumber(_ number: UInt32, _ value: Int32) {
        varint(number, UInt64(bitPattern: Int64(value)))
    }
}

extension Secret {
    static var none: Secret { Secret([]) }
}
