import CSodium
public import PushModel

/// SHA-256 (FIPS 180-4).
public enum SHA256 {
    public static let digestBytes = 32

    /// - Returns: 32 bytes.
    public static func hash(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        Sodium.prepare()
        return [UInt8](unsafeUninitializedCapacity: digestBytes) { out, count in
            _ = crypto_hash_sha256(out.baseAddress!, bytes.octets, UInt64(bytes.count))
            count = digestBytes
        }
    }

    /// Hashes several parts as if they were one.
    package static func hash(joining parts: [UnsafeRawBufferPointer]) -> [UInt8] {
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

    public static func hash(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { hash($0) } }
    public static func hash(_ secret: Secret) -> [UInt8] { secret.reveal { hash($0) } }
}
