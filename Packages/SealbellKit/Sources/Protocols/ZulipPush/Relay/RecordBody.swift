import PushModel

/// Bodies of records: a format byte, then fields in fixed order. Variable fields have a two-byte length.
///
/// Above the engines the store seals every body, so nothing in here is ever at rest in clear.
struct BodyWriter {
    private var bytes: [UInt8]

    init(format: UInt8) { bytes = [format] }

    mutating func fixed(_ field: [UInt8]) { bytes += field }
    mutating func fixed(_ field: Secret) { field.reveal { bytes.append(contentsOf: $0) } }
    mutating func byte(_ field: UInt8) { bytes.append(field) }
    mutating func int(_ field: Int64) {
        withUnsafeBytes(of: field.bigEndian) { bytes.append(contentsOf: $0) }
    }

    /// At most 65,535 bytes, which every field of ours is by its limit.
    mutating func variable(_ field: Secret) {
        precondition(field.count <= 0xFFFF)
        bytes.append(UInt8(field.count >> 8))
        bytes.append(UInt8(field.count & 0xFF))
        fixed(field)
    }

    mutating func variable(_ field: String) { variable(Secret(field.utf8)) }

    /// Hands over the body and wipes this buffer.
    mutating func take() -> Secret {
        let body = Secret(bytes)
        bytes.withUnsafeMutableBytes { wipe($0) }
        return body
    }
}

/// Reads what ``BodyWriter`` wrote. Every read fails with `nil` at the end of the bytes.
struct BodyReader {
    private let bytes: UnsafeRawBufferPointer
    private var position = 0

    /// `nil` when the format is another.
    init?(_ bytes: UnsafeRawBufferPointer, format: UInt8) {
        guard bytes.first == format else { return nil }
        self.bytes = bytes
        position = 1
    }

    mutating func fixed(_ count: Int) -> UnsafeRawBufferPointer? {
        guard bytes.count - position >= count else { return nil }
        defer { position += count }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
    }

    mutating func byte() -> UInt8? { fixed(1)?.first }
    mutating func int() -> Int64? { fixed(8).map { Int64(bigEndian: $0.loadUnaligned(as: Int64.self)) } }

    mutating func variable() -> UnsafeRawBufferPointer? {
        guard let length = fixed(2) else { return nil }
        return fixed(Int(length[0]) << 8 | Int(length[1]))
    }

    var isAtEnd: Bool { position == bytes.count }
}
