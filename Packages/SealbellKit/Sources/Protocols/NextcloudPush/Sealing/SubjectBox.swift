public import PushModel
import RSAKeys
import WireFormats

/// A ciphertext for one device, and the user's signature over it: `subject` and `signature` of an entry and
/// of a push (§4.4).
public struct SealedSubject: Sendable {
    /// Base64 of 256 bytes.
    public let subject: Secret
    /// Base64 of 256 bytes: RSASSA-PKCS1-v1_5 with SHA-512 over the ciphertext, not over its base64.
    public let signature: Secret

    /// - Parameter subject: Base64, 344 characters; what is none is refused when it is opened.
    /// - Parameter signature: the same.
    public init(subject: Secret, signature: Secret) {
        self.subject = subject
        self.signature = signature
    }
}

/// Encrypts to a device's key and signs with a user's; verifies with the user's key and opens with the
/// device's.
enum SubjectBox {
    /// - Throws: `.plaintextTooLong` for a plaintext that the padding leaves no room for;
    ///   `.sealingFailed` when the library refuses a key.
    static func seal(
        _ plain: Secret, to device: RSAPublicKey, padding: RSAPadding, signedBy user: RSAPrivateKey
    ) throws(NextcloudError) -> SealedSubject {
        guard plain.count <= padding.plaintextBytes else { throw NextcloudError(.plaintextTooLong) }
        do {
            let sealed = try device.encrypt(plain, padding: padding)
            let signature = try withBytes(sealed) { (bytes) throws(RSAError) in try user.sign(bytes) }
            return SealedSubject(
                subject: Secret(Base64.encode(sealed)), signature: Secret(Base64.encode(signature)))
        } catch { throw NextcloudError(.sealingFailed) }
    }

    /// The ciphertext, if the user's key has signed it.
    ///
    /// - Throws: `.foreignSignature`, whatever the reason.
    static func verified(_ sealed: SealedSubject, by user: RSAPublicKey) throws(NextcloudError) -> [UInt8] {
        guard let ciphertext = block(sealed.subject), let signature = block(sealed.signature),
            ciphertext.withUnsafeBytes({ message in
                signature.withUnsafeBytes { user.isValid($0, over: message) }
            })
        else { throw NextcloudError(.foreignSignature) }
        return ciphertext
    }

    /// Opens a ciphertext: OAEP first, because some libraries answer a wrong PKCS#1 v1.5 padding with random
    /// bytes instead of an error (implicit rejection). For the same reason nothing but JSON counts as open.
    ///
    /// - Returns: `nil` for JSON of an unknown form.
    /// - Throws: `.doesNotOpen`, whatever the reason.
    static func open(_ ciphertext: [UInt8], with device: RSAPrivateKey) throws(NextcloudError)
        -> NextcloudContent?
    {
        for padding in [RSAPadding.oaepSHA1, .pkcs1v15] {
            do {
                let plain = try withBytes(ciphertext) { (bytes) throws(RSAError) in
                    try device.decrypt(bytes, padding: padding)
                }
                return try NextcloudContent.read(plain)
            } catch { continue }
        }
        throw NextcloudError(.doesNotOpen)
    }

    private static func block(_ base64: Secret) -> [UInt8]? {
        base64.reveal { text in
            guard Base64.decodedCount(text) == RSAForm.blockBytes else { return nil }
            return try? Base64.decode(text)  // No ciphertext and no signature; the caller says so.
        }
    }
}
