import Crypto
import CryptoExtras
public import PushModel

/// An RSA private key of 2048 bits. It is a device's or a server's: the relay has none.
public struct RSAPrivateKey: Sendable {
    /// The half that others encrypt to and verify with: 2048 bits.
    public let publicKey: RSAPublicKey
    private let signing: _RSA.Signing.PrivateKey

    /// Makes a pair from the library's own randomness; takes about a tenth of a second.
    ///
    /// - Throws: `.libraryFailed` when it yields none.
    public static func generate() throws(RSAError) -> RSAPrivateKey {
        guard let key = try? _RSA.Signing.PrivateKey(keySize: .bits2048) else {
            throw RSAError(.libraryFailed)
        }
        return RSAPrivateKey(key)
    }

    private init(_ key: _RSA.Signing.PrivateKey) {
        signing = key
        publicKey = RSAPublicKey(key.publicKey)
    }

    /// Reads PKCS#8 PEM (`PRIVATE KEY`).
    ///
    /// - Throws: `.malformedRSAKey` for any other text, and for a key of other than 2048 bits.
    public init(pem: Secret) throws(RSAError) {
        guard let der = pem.reveal({ PEMText.der($0, label: "PRIVATE KEY") }),
            let key = der.reveal({ try? _RSA.Signing.PrivateKey(derRepresentation: Array($0)) }),
            key.keySizeInBits == RSAForm.bits
        else { throw RSAError(.malformedRSAKey) }
        self.init(key)
    }

    /// PKCS#8 PEM.
    public var pem: Secret {
        Array(signing.pkcs8DERRepresentation).withUnsafeBytes { PEMText.text($0, label: "PRIVATE KEY") }
    }

    /// RSASSA-PKCS1-v1_5 with SHA-512 (RFC 8017 §8.2.1): 256 bytes.
    ///
    /// - Throws: `.libraryFailed`.
    public func sign(_ message: UnsafeRawBufferPointer) throws(RSAError) -> [UInt8] {
        var hash = SHA512()
        hash.update(bufferPointer: message)
        // The library's own words are dropped.
        guard let signature = try? signing.signature(for: hash.finalize(), padding: .insecurePKCS1v1_5)
        else { throw RSAError(.libraryFailed) }
        return signature.withUnsafeBytes { Array($0) }
    }

    /// - Throws: `.ciphertextDoesNotOpen`, whatever the cause. With PKCS#1 v1.5 the absence of an error shows
    ///   nothing: whatever opens must be checked for its form.
    public func decrypt(
        _ ciphertext: UnsafeRawBufferPointer, padding: RSAPadding
    ) throws(RSAError) -> Secret {
        guard ciphertext.count == RSAForm.blockBytes,
            // One word for every cause.
            let key = try? _RSA.Encryption.PrivateKey(derRepresentation: signing.derRepresentation),
            // The same.
            let plain = try? key.decrypt(ciphertext, padding: padding.library)
        else { throw RSAError(.ciphertextDoesNotOpen) }
        return Secret(Array(plain))
    }
}
