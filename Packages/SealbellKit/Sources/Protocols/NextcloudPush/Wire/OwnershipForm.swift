package import PushModel
package import RSAKeys
import WireFormats

/// Who a device says it is: an identifier, and a signature over it by a key that is sent along (§5.2, §5.4).
///
/// The signature is not yet believed: anyone may sign an identifier that they have guessed with a key of
/// their own.
package struct OwnershipForm: Sendable {
    package let identifier: DeviceIdentifier
    /// 256 bytes.
    package let signature: Secret
    package let key: RSAPublicKey

    init(_ fields: DeviceFields) throws(NextcloudError) {
        let identifier = try fields.required(.deviceIdentifier)
        let signature = try fields.required(.deviceIdentifierSignature)
        let key = try fields.required(.userPublicKey)
        try self.init(identifier: identifier, signature: signature, key: key)
    }

    init(identifier: Secret, signature: Secret, key: Secret) throws(NextcloudError) {
        guard key.count <= NextcloudLimits.keyTextBytes,
            let read = key.reveal({ try? RSAPublicKey(pem: $0) })  // One word for every fault of a key.
        else { throw NextcloudError(.invalidUserKey) }
        guard let named = identifier.reveal({ DeviceIdentifier(base64: $0) }) else {
            throw NextcloudError(.invalidIdentifier)
        }
        guard signature.reveal({ Base64.decodedCount($0) }) == NextcloudLimits.blockBytes else {
            throw NextcloudError(.invalidSignature)
        }
        do throws(FormatError) {
            self.signature = try Secret(count: NextcloudLimits.blockBytes) { (out) throws(FormatError) in
                try signature.reveal { (text) throws(FormatError) in try Base64.decode(text, into: out) }
            }
        } catch {
            throw NextcloudError(.invalidSignature)
        }
        self.identifier = named
        self.key = read
    }

    /// Whether the signature is the key's over the identifier, which is a digest itself (§4.2).
    package var isSigned: Bool {
        signature.reveal { signature in
            identifier.withBytes { key.isValid(signature, overDigest: $0) }
        }
    }
}
