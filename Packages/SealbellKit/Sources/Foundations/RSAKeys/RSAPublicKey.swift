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

    /// RSASSA-PKCS1-v1_5 with SHA-512 (RFC 8017 §8.2.2).
    public func isValid(
        _ signature: UnsafeRawBufferPointer, over message: UnsafeRawBufferPointer
    ) -> Bool {
        guard signature.count == RSAForm.blockBytes else { return false }
        var hash = SHA512()
        hash.update(bufferPointer: message)
        return isValid(signature, for: hash.finalize())
    }

    /// Takes the same time for a signature that is no number below the modulus, which the library would
    /// refuse at once: so nobody learns by that time where the modulus lies.
    private func isValid(_ signature: UnsafeRawBufferPointer, for digest: SHA512Digest) -> Bool {
        let isInRange = isBelowModulus(signature)
        let verified =
            isInRange
            ? _RSA.Signing.RSASignature(rawRepresentation: signature)
            : _RSA.Signing.RSASignature(rawRepresentation: Self.belowAny)
        return signing.isValidSignature(verified, for: digest, padding: .insecurePKCS1v1_5) && isInRange
    }

    /// No modulus of 2048 bits is smaller.
    private static let belowAny = [UInt8](repeating: 0x55, count: RSAForm.blockBytes)

    /// RFC 8017 §5.2.2: whether a signature is one of the numbers that a key takes.
    package func isBelowModulus(_ signature: UnsafeRawBufferPointer) -> Bool {
        // Every DER of a key of this size begins with so many bytes.
        der.withUnsafeBytes { der in
            guard der.count >= Self.modulusStart + RSAForm.blockBytes, signature.count == RSAForm.blockBytes
            else { return false }
            var (isBelow, isDecided): (UInt8, UInt8) = (0, 0)
            for at in 0..<RSAForm.blockBytes {
                let (own, other) = (der[Self.modulusStart + at], signature[at])
                isBelow |= (other < own ? 1 : 0) & (isDecided ^ 1)
                isDecided |= own == other ? 0 : 1
            }
            return isBelow == 1
        }
    }

    /// `SEQUENCE { SEQUENCE { OID, NULL }, BIT STRING { SEQUENCE { INTEGER`, and the sign's zero.
    private static let modulusStart = 33

    /// A key whose private half nobody has.
    package static let nobodys: RSAPublicKey? = GivenDigest.publicKey

    /// The same over a message of which only the SHA-512 digest is known.
    ///
    /// - Parameter digest: 64 bytes; it is not hashed again.
    public func isValid(
        _ signature: UnsafeRawBufferPointer, overDigest digest: UnsafeRawBufferPointer
    ) -> Bool {
        guard signature.count == RSAForm.blockBytes, let digest = GivenDigest.sha512(digest) else {
            return false
        }
        return isValid(signature, for: digest)
    }

    /// Whether given digests can be verified at all with this build. Looked at once in a process.
    package static var verifiesDigests: Bool { GivenDigest.isSound }

    /// Encrypts with randomness of the library's own.
    ///
    /// - Parameter plaintext: at most ``RSAPadding/plaintextBytes``.
    /// - Returns: 256 bytes.
    /// - Throws: `.plaintextTooLong` when there is more; `.libraryFailed`.
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
