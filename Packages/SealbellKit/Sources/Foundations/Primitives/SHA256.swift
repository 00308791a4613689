import Clibsodium
import Crypto
public import PushModel

/// SHA-256 (FIPS 180-4).
///
/// Short inputs, keys among them, go through libsodium, whose state we wipe. Longer ones go through
/// swift-crypto, which uses the processor's own instructions and is several times as fast (decision 0032).
public enum SHA256 {
    public static let digestBytes = 32
    /// From so many bytes on the processor's instructions outweigh the other library's allocation.
    static let bulkBytes = 256

    /// - Returns: 32 bytes.
    public static func hash(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        if bytes.count >= bulkBytes { return bulk([bytes]) }
        Sodium.prepare()
        return [UInt8](unsafeUninitializedCapacity: digestBytes) { out, count in
            _ = crypto_hash_sha256(out.baseAddress!, bytes.octets, UInt64(bytes.count))
            count = digestBytes
        }
    }

    /// Hashes several parts as if they were one.
    package static func hash(joining parts: [UnsafeRawBufferPointer]) -> [UInt8] {
        if parts.reduce(0, { $0 + $1.count }) >= bulkBytes { return bulk(parts) }
        Sodium.prepare()
        var state = crypto_hash_sha256_state()
        defer { sodium_memzero(&state, MemoryLayout<crypto_hash_sha256_state>.size) }
        _ = crypto_hash_sha256_init(&state)
        for part in parts { _ = crypto_hash_sha256_update(&state, part.octets, UInt64(part.count)) }
        return [UInt8](unsafeUninitializedCapacity: digestBytes) { out, count in
            _ = crypto_hash_sha256_final(&state, out.baseAddress!)
            count = digestBytes
        }
    }

    static func bulk(_ parts: [UnsafeRawBufferPointer]) -> [UInt8] {
        var state = Crypto.SHA256()
        for part in parts { state.update(bufferPointer: part) }
        return state.finalize().withUnsafeBytes { Array($0) }
    }

    public static func hash(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { hash($0) } }
    public static func hash(_ secret: Secret) -> [UInt8] { secret.reveal { hash($0) } }
}
