import Crypto
import CryptoExtras
public import PushModel

/// An RSA public key of 2048 bits.
public struct RSAPublicKey: Sendable {
    /// `SubjectPublicKeyInfo` (RFC 5280 §4.1), in the one spelling that DER has.
    public let der: [UInt8]
    private let signing: _RSA.Signing.PublicKey

    /// Reads PEM of label `PUBLIC KEY`, with line ends of any kind, lines of any width, and a line end behind
    /// it or none.
    ///
    /// - Throws: `.malformedRSAKey` for any other text, and for what ``init(der:)`` refuses.
    public init(pem: UnsafeRawBufferPointer) throws(RSAError) {
        guard let der = PEMText.der(pem, label: "PUBLIC KEY") else { throw RSAError(.malformedRSAKey) }
        let bytes = der.reveal { Array($0) }
        try self.init(der: bytes)
    }

    /// - Throws: `.malformedRSAKey` for a key of another kind or of other than 2048 bits, and for a second
    ///   spelling of one.
    public init(der: [UInt8]) throws(RSAError) {
        // The library's own words are dropped. It takes a bare PKCS#1 key too, and longer spellings.
        guard let key = try? _RSA.Signing.PublicKey(derRepresentation: der),
            key.keySizeInBits == RSAForm.bits, Array(key.derRepresentation) == der,
            let modulus = try? key.getKeyPrimitives().modulus, modulus.count == RSAForm.blockBytes,
            modulus.first.map({ $0 >= 0x80 }) == true
        else { throw RSAError(.malformedRSAKey) }
        self.der = der
        signing = key
    }

    init(_ key: _RSA.Signing.PublicKey) {
        der = Array(key.derRepresentation)
        signing = key
    }

    /// As OpenSSL writes it: 451 characters.
    public var pem: String {
        der.withUnsafeBytes { PEMText.text($0, label: "PUBLIC KEY") }.reveal {
            String(decoding: $0, as: UTF8.self)
        }
    }

    /// SHA-256 of the DER: what the key is known by.
    package var digest: [UInt8] { SHA256.hash(data: der).withUnsafeBytes { Array($0) } }

    /// RSASSA-PKCS1-v1_5 with SHA-512 (RFC 8017 §8.2.2).
    public func isValid(
        _ signature: UnsafeRawBufferPointer, over message: UnsafeRawBufferPointer
    ) -> Bool {
        guard signature.count == RSAForm.blockBytes else { return false }
        var hash = SHA512()
        hash.update(bufferPointer: message)
        return signing.isValidSignature(
            _RSA.Signing.RSASignature(rawRepresentation: signature), for: hash.finalize(),
            padding: .insecurePKCS1v1_5)
    }

    /// The same over a message of which only the SHA-512 digest is known.
    ///
    /// - Parameter digest: 64 bytes; it is not hashed again.
    public func isValid(
        _ signature: UnsafeRawBufferPointer, overDigest digest: UnsafeRawBufferPointer
    ) -> Bool {
        guard signature.count == RSAForm.blockBytes, let digest = GivenDigest.sha512(digest) else {
            return false
        }
        return signing.isValidSignature(
            _RSA.Signing.RSASignature(rawRepresentation: signature), for: digest,
            padding: .insecurePKCS1v1_5)
    }

    /// Whether given digests can be verified at all with this build. Looked at once in a process.
    package static var verifiesDigests: Bool { GivenDigest.isSound }

    /// Encrypts with randomness of the library's own.
    ///
    /// - Throws: `.plaintextTooLong` when there is more than ``RSAPadding/plaintextBytes``.
    public func encrypt(_ plaintext: Secret, padding: RSAPadding) throws(RSAError) -> [UInt8] {
        guard plaintext.count <= padding.plaintextBytes else { throw RSAError(.plaintextTooLong) }
        // The library's own words are dropped.
        guard let key = try? _RSA.Encryption.PublicKey(derRepresentation: der),
            // As above.
            let sealed = plaintext.reveal({ try? key.encrypt($0, padding: padding.library) })
        else { throw RSAError(.libraryFailed) }
        return Array(sealed)
    }
}

extension RSAPublicKey: Equatable {
    public static func == (left: RSAPublicKey, right: RSAPublicKey) -> Bool { left.der == right.der }
}

extension RSAPadding {
    var library: _RSA.Encryption.Padding {
        switch self {
        case .pkcs1v15: ._WEAK_AND_INSECURE_PKCS_V1_5
        case .oaepSHA1: .PKCS1_OAEP
        }
    }
}
