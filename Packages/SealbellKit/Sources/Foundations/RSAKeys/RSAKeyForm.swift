/// Lengths of RSA-2048, the one size of this module.
public enum RSAForm {
    /// A modulus, and so a key: 2048 bits.
    public static let bits = 2_048
    /// A signature, a ciphertext, a modulus.
    public static let blockBytes = 256
    /// SHA-512.
    public static let digestBytes = 64
    /// A public key's text, as OpenSSL writes it: 64 characters a line, a newline at the end.
    public static let publicPEMBytes = 451
}

/// How a plaintext is padded (RFC 8017 §7).
public enum RSAPadding: Sendable, Hashable, CaseIterable {
    /// RSAES-PKCS1-v1_5, at most 245 bytes.
    case pkcs1v15
    /// RSAES-OAEP with SHA-1 and MGF1-SHA-1, at most 214 bytes.
    case oaepSHA1

    /// The longest plaintext in bytes: 245, and 214 with OAEP.
    public var plaintextBytes: Int { self == .pkcs1v15 ? 245 : 214 }
}
