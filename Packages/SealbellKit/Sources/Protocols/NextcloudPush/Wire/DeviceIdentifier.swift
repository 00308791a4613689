import PushModel
import WireFormats

/// 64 bytes in place, because a batch has thousands of them.
struct Bytes64: Sendable, Hashable {
    private typealias Words = (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)

    static let count = NextcloudLimits.identifierBytes

    private var words: Words = (0, 0, 0, 0, 0, 0, 0, 0)

    /// `nil` unless `fill` writes all of them.
    init?(fill: (UnsafeMutableRawBufferPointer) -> Bool) {
        guard withUnsafeMutableBytes(of: &words, fill) else { return nil }
    }

    func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBytes(of: words) { (bytes) throws(Failure) in try body(bytes) }
    }

    /// In time that does not depend on them.
    static func == (left: Self, right: Self) -> Bool {
        left.withBytes { left in right.withBytes { constantTimeEqual(left, $0) } }
    }

    func hash(into hasher: inout Hasher) { withBytes { hasher.combine(bytes: $0) } }
}

/// `deviceIdentifier`: the SHA-512 of something that only the server writes down (§4.2). It can be guessed,
/// so it opens nothing.
package struct DeviceIdentifier: Sendable, Hashable, CustomStringConvertible {
    private let bytes: Bytes64

    /// `nil` unless there are 64 bytes.
    package init?(_ raw: UnsafeRawBufferPointer) {
        guard raw.count == Bytes64.count,
            let bytes = Bytes64(fill: {
                $0.copyMemory(from: raw); return true
            })
        else { return nil }
        self.bytes = bytes
    }

    /// Reads the standard base64 of 64 bytes, in its one spelling.
    package init?(base64 text: UnsafeRawBufferPointer) {
        guard Base64.decodedCount(text) == Bytes64.count,
            // What is no base64 is no identifier.
            let bytes = Bytes64(fill: { (try? Base64.decode(text, into: $0)) != nil })
        else { return nil }
        self.bytes = bytes
    }

    package func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result { try bytes.withBytes(body) }

    /// As the wire has it.
    package var base64: [UInt8] { withBytes { Base64.encode($0) } }

    package var description: String { "‹device›" }
}

/// `pushTokenHash`: the SHA-512 of `pushToken` as it was sent (§3.1), in lower-case hexadecimal.
package struct TokenHash: Sendable, Hashable, CustomStringConvertible {
    private let bytes: Bytes64

    package init?(_ raw: UnsafeRawBufferPointer) {
        guard raw.count == Bytes64.count,
            let bytes = Bytes64(fill: {
                $0.copyMemory(from: raw); return true
            })
        else { return nil }
        self.bytes = bytes
    }

    /// `nil` for any other text, upper case among it: a server compares none.
    package init?(hex text: UnsafeRawBufferPointer) {
        guard text.count == 2 * Bytes64.count else { return nil }
        let read = Bytes64 { out in
            for at in 0..<Bytes64.count {
                guard let high = Self.value(text[2 * at]), let low = Self.value(text[2 * at + 1]) else {
                    return false
                }
                out[at] = high << 4 | low
            }
            return true
        }
        guard let read else { return nil }
        bytes = read
    }

    package func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result { try bytes.withBytes(body) }

    package var description: String { "‹hash›" }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x61...0x66: digit - 0x57
        default: nil
        }
    }
}
