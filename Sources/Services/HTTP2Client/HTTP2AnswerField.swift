import CNghttp2

/// A header field of an answer, where the session has it.
struct HTTP2AnswerField {
    let name: UnsafeBufferPointer<UInt8>
    let value: UnsafeBufferPointer<UInt8>
    private let buffer: OpaquePointer?

    init(_ name: OpaquePointer?, _ value: OpaquePointer?) {
        self.name = Self.bytes(name)
        self.value = Self.bytes(value)
        buffer = value
    }

    /// It is not of the table that stands in the library itself.
    private var isOurs: Bool { buffer.map { nghttp2_rcbuf_is_static($0) == 0 } ?? false }

    private static func bytes(_ buffer: OpaquePointer?) -> UnsafeBufferPointer<UInt8> {
        guard let buffer else { return UnsafeBufferPointer(start: nil, count: 0) }
        let vector = nghttp2_rcbuf_get_buf(buffer)
        return UnsafeBufferPointer(start: vector.base, count: vector.len)
    }

    /// Blanks a value that is not read, in the memory of the session.
    ///
    /// A peer may put fields into the connection's table (RFC 7541 §2.3.2), where they stay as long as the
    /// connection, even if they identify a push: its id at the service, or a trace id. The blanked value
    /// keeps its number and length in the table, as digits, which any field may have; a later field that
    /// refers to that number is not read either. A table of size zero would do the same, if every peer could
    /// work without one.
    func forget() {
        guard !value.isEmpty, !isRead, isOurs, let start = value.baseAddress else { return }
        UnsafeMutablePointer(mutating: start).update(repeating: UInt8(ascii: "0"), count: value.count)
    }

    /// Read by us, or by the session, which compares a body with its length and knows one value of `te`.
    private var isRead: Bool {
        if name.first == UInt8(ascii: ":") { return true }
        // By length first: few names are as long as one of these.
        switch name.count {
        case 2: return name.is("te")
        case 11: return name.is("retry-after")
        case 14: return name.is("content-length")
        default: return false
        }
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Whether these are the word's bytes. By hand, byte by byte: the library's comparison of two sequences
    /// costs five hundred instructions, and each answer has two.
    func `is`(_ word: StaticString) -> Bool {
        guard count == word.utf8CodeUnitCount else { return false }
        let start = word.utf8Start
        return indices.allSatisfy { self[$0] == start[$0] }
    }
}
