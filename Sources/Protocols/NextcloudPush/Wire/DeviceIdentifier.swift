import WireFormats

/// `deviceIdentifier`: the SHA-512 of something that only the server writes down (§4.2). It can be guessed, so
/// it opens nothing.
package struct DeviceIdentifier: Sendable, Hashable, CustomStringConvertible {
    private typealias Words = (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)

    private let words: Words

    /// `nil` unless there are 64 bytes.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == NextcloudLimits.identifierBytes else { return nil }
        var words: Words = (0, 0, 0, 0, 0, 0, 0, 0)
        withUnsafeMutableBytes(of: &words) { $0.copyMemory(from: bytes) }
        self.words = words
    }

    /// Reads the standard base64 of 64 bytes, in its one spelling.
    package init?(base64 text: UnsafeRawBufferPointer) {
        guard Base64.decodedCount(text) == NextcloudLimits.identifierBytes else { return nil }
        var words: Words = (0, 0, 0, 0, 0, 0, 0, 0)
        let isRead = withUnsafeMutableBytes(of: &words) { out in
            (try? Base64.decode(text, into: out)) != nil  // What is no base64 is no identifier.
        }
        guard isRead else { return nil }
        self.words = words
    }

    package func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBytes(of: words) { (bytes) throws(Failure) in try body(bytes) }
    }

    /// As the wire has it.
    package var base64: [UInt8] { withBytes { Base64.encode($0) } }

    package var description: String { "‹device›" }

    package static func == (left: Self, right: Self) -> Bool {
        left.withBytes { left in right.withBytes { left.elementsEqual($0) } }
    }

    package func hash(into hasher: inout Hasher) {
        withBytes { hasher.combine(bytes: $0) }
    }
}
