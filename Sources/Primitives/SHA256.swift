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

    public static func hash(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { hash($0) } }
    public static func hash(_ secret: Secret) -> [UInt8] { secret.reveal { hash($0) } }
}
