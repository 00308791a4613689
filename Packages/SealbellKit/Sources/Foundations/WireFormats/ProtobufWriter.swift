package import PushModel

/// Writes protobuf's wire format. Who writes fields in the order of their numbers, and leaves defaults out,
/// gets the bytes that other implementations of proto3 write.
package struct ProtobufWriter {
    /// What was written so far.
    package private(set) var bytes: [UInt8] = []

    package init(reserving capacity: Int = 256) { bytes.reserveCapacity(capacity) }

    /// A number, an enum's value or a flag; left out when it is zero.
    package mutating func varint(_ number: UInt32, _ value: UInt64) {
        guard value != 0 else { return }
        append(UInt64(number) << 3)
        append(value)
    }

    package mutating func flag(_ number: UInt32, _ value: Bool) { varint(number, value ? 1 : 0) }

    /// `sint64`: small numbers of either sign are short.
    package mutating func signed(_ number: UInt32, _ value: Int64) {
        varint(number, UInt64(bitPattern: value << 1 ^ value >> 63))
    }

    /// Bytes, a string or an embedded message; left out when empty.
    package mutating func bytes(_ number: UInt32, _ value: UnsafeRawBufferPointer) {
        if value.count > 0 { element(number, value) }
    }

    package mutating func bytes(_ number: UInt32, _ value: [UInt8]) { withBytes(value) { bytes(number, $0) } }
    package mutating func bytes(_ number: UInt32, _ value: Secret) { value.reveal { bytes(number, $0) } }

    /// One of a repeated field, written even when empty.
    package mutating func element(_ number: UInt32, _ value: UnsafeRawBufferPointer) {
        append(UInt64(number) << 3 | 2)
        append(UInt64(value.count))
        bytes.append(contentsOf: value)
    }

    package mutating func element(_ number: UInt32, _ value: [UInt8]) {
        withBytes(value) { element(number, $0) }
    }
    package mutating func element(_ number: UInt32, _ value: Secret) { value.reveal { element(number, $0) } }

    /// Hands the bytes over as a secret and wipes this buffer.
    ///
    /// Reserve enough at the start: a buffer that grew has left unwiped memory behind.
    package mutating func takeSecret() -> Secret {
        let secret = bytes.withUnsafeBytes { Secret(copying: $0) }
        bytes.withUnsafeMutableBytes { wipe($0) }
        bytes.removeAll(keepingCapacity: true)
        return secret
    }

    private mutating func append(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}
