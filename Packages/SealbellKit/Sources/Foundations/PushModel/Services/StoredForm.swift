/// Writes the fields of a stored form one behind the other into memory that is large enough: big-endian,
/// texts and secrets behind their length in four bytes.
package struct StoredWriter {
    private let out: UnsafeMutableRawBufferPointer
    /// Bytes written so far.
    package private(set) var count = 0

    package init(_ out: UnsafeMutableRawBufferPointer) { self.out = out }

    package mutating func put(_ byte: UInt8) {
        out[count] = byte
        count += 1
    }

    package mutating func put(_ bytes: UnsafeRawBufferPointer) {
        out.storeBytes(of: UInt32(bytes.count).bigEndian, toByteOffset: count, as: UInt32.self)
        UnsafeMutableRawBufferPointer(rebasing: out[(count + 4)...]).copyMemory(from: bytes)
        count += 4 + bytes.count
    }

    package mutating func put(_ secret: Secret) { secret.reveal { put($0) } }

    package mutating func put(_ text: String) {
        var text = text
        text.withUTF8 { put(UnsafeRawBufferPointer($0)) }
    }

    /// A byte says whether it is there.
    package mutating func put(_ word: Int64?) {
        put(UInt8(word == nil ? 0 : 1))
        guard let word else { return }
        out.storeBytes(of: word.bigEndian, toByteOffset: count, as: Int64.self)
        count += 8
    }

    /// A byte says whether it is there.
    package mutating func put(_ secret: Secret?) {
        put(UInt8(secret == nil ? 0 : 1))
        if let secret { put(secret) }
    }
}

/// How many bytes the fields of a stored form need at most.
package enum StoredSize {
    package static let byte = 1
    /// One that may be absent.
    package static let word = 9

    package static func of(_ secret: Secret) -> Int { 4 + secret.count }
    package static func of(_ text: String) -> Int { 4 + text.utf8.count }
    package static func of(optional secret: Secret?) -> Int { 5 + (secret?.count ?? 0) }
}

/// Reads the fields of a stored form; `nil` when the bytes end too early.
package struct StoredReader {
    private let bytes: UnsafeRawBufferPointer
    private var at = 0

    package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    package mutating func byte() -> UInt8? {
        guard at < bytes.count else { return nil }
        at += 1
        return bytes[at - 1]
    }

    package mutating func field() -> UnsafeRawBufferPointer? {
        guard bytes.count - at >= 4 else { return nil }
        let count = Int(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: at, as: UInt32.self)))
        guard bytes.count - at - 4 >= count else { return nil }
        defer { at += 4 + count }
        return UnsafeRawBufferPointer(rebasing: bytes[(at + 4)..<(at + 4 + count)])
    }

    package mutating func secret() -> Secret? { field().map { Secret(copying: $0) } }
    package mutating func text() -> String? { field().map { String(decoding: $0, as: UTF8.self) } }

    /// Outer `nil`: the bytes are wrong; inner: the field is absent.
    package mutating func optionalWord() -> Int64?? {
        switch byte() {
        case 0: return .some(nil)
        case 1:
            guard bytes.count - at >= 8 else { return nil }
            at += 8
            return Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: at - 8, as: Int64.self))
        default: return nil
        }
    }

    /// Outer `nil`: the bytes are wrong; inner: the field is absent.
    package mutating func optionalSecret() -> Secret?? {
        switch byte() {
        case 0: .some(nil)
        case 1: secret().map { .some($0) }
        default: nil
        }
    }

    package var isAtEnd: Bool { at == bytes.count }
}
