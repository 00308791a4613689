import Clibsodium
import Primitives
public import PushModel

/// A public key of Ed25519 (RFC 8032): 32 bytes, not yet known to be a point of the curve.
public struct Ed25519PublicKey: Sendable {
    /// A public key: 32 bytes (RFC 8032 §5.1.5).
    public static let keyBytes = 32
    /// A signature: 64 bytes (RFC 8032 §5.1.6).
    public static let signatureBytes = 64
    /// 32 bytes.
    public let bytes: Secret

    /// - Returns: `nil` unless there are exactly 32 bytes.
    public init?(_ bytes: Secret) {
        guard bytes.count == Self.keyBytes else { return nil }
        self.bytes = bytes
    }

    /// Whether a signature of this key is over exactly this text.
    public func isValid(_ signature: UnsafeRawBufferPointer, over text: UnsafeRawBufferPointer) -> Bool {
        guard signature.count == Self.signatureBytes else { return false }
        return bytes.reveal {
            crypto_sign_verify_detached(
                signature.octets, text.octets, UInt64(text.count), $0.octets)
        } == 0
    }
}
