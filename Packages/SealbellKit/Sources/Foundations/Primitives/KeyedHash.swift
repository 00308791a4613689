import Clibsodium
public import PushModel

/// BLAKE2b with a key (RFC 7693), over several parts, with a result of 16 or 32 bytes.
///
/// Parts are not delimited: a caller whose parts vary in length writes the lengths too (``update(count:)``).
public struct KeyedHash: ~Copyable {
    private let state: OpaquePointer
    private let count: Int

    /// - Parameter key: 16 to 64 bytes, or none. `count`: length of the result. Another length is a bug of
    ///   ours.
    private init(_ state: OpaquePointer, key: Secret?, count: Int) {
        precondition((16...64).contains(key?.count ?? 16) && (count == 16 || count == 32))
        self.state = state
        self.count = count
        if let key {
            key.reveal { _ = crypto_generichash_init(state, $0.octets, $0.count, count) }
        } else {
            crypto_generichash_init(state, nil, 0, count)
        }
    }

    public func update(_ part: UnsafeRawBufferPointer) {
        _ = crypto_generichash_update(state, part.octets, UInt64(part.count))
    }

    public func update(_ part: [UInt8]) { part.withUnsafeBytes { update($0) } }
    public func update(_ part: Secret) { part.reveal { update($0) } }
    /// UTF-8.
    public func update(_ part: String) {
        var part = part
        part.withUTF8 { update(UnsafeRawBufferPointer($0)) }
    }
    /// Eight bytes, big-endian.
    public func update(count: Int) { withUnsafeBytes(of: UInt64(count).bigEndian) { update($0) } }

    /// Hashes what `fill` puts in.
    ///
    /// - Returns: 16 bytes.
    package static func digest16(key: Secret, _ fill: (borrowing KeyedHash) -> Void) -> Digest16 {
        var words: (UInt64, UInt64) = (0, 0)
        withUnsafeMutableBytes(of: &words) { hash(key: key, into: $0, fill) }
        return Digest16(high: UInt64(bigEndian: words.0), low: UInt64(bigEndian: words.1))
    }

    /// - Returns: 32 bytes.
    public static func digest32(key: Secret, _ fill: (borrowing KeyedHash) -> Void) -> Secret {
        Secret(count: 32) { hash(key: key, into: $0, fill) }
    }

    static func hash(
        key: Secret?, into out: UnsafeMutableRawBufferPointer, _ fill: (borrowing KeyedHash) -> Void
    ) {
        Sodium.prepare()
        // The C type asks for an alignment of 64. Memory that is asked for with it comes from the heap, at a
        // fifth of a short hash; so there is room to begin at such an address on the stack.
        withUnsafeTemporaryAllocation(
            byteCount: crypto_generichash_statebytes() + 63, alignment: 16
        ) { memory in
            let state = OpaquePointer(memory.baseAddress!.alignedUp(toMultipleOf: 64))
            fill(KeyedHash(state, key: key, count: out.count))
            _ = crypto_generichash_final(state, out.octets, out.count)
            // The state holds the key block until it has been compressed.
            sodium_memzero(memory.baseAddress!, memory.count)
        }
    }
}
