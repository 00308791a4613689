import Crypto
import EdwardsKeys
package import Primitives
package import PushModel

/// The ciphers of one layer of an onion request (§7.1). What is sealed is nonce ‖ ciphertext ‖ tag.
package enum OnionCipher: String, Sendable, Hashable, CaseIterable {
    /// XChaCha20-Poly1305 with a nonce of 24 bytes: today's apps.
    case xchacha20
    /// AES-256-GCM with a nonce of 12 bytes: older ones.
    case aesGCM = "aes-gcm"

    /// Chosen by `enc_type`; AES-GCM if it is absent.
    package init?(encType: String?) {
        switch encType {
        case "xchacha20", "xchacha20-poly1305": self = .xchacha20
        case nil, "aes-gcm", "gcm": self = .aesGCM
        default: return nil
        }
    }

    package var nonceBytes: Int { self == .xchacha20 ? XChaCha20Poly1305.nonceBytes : 12 }
    package static let tagBytes = 16

    /// The key for both directions. Its derivation needs to know which side is the client.
    ///
    /// - Parameter isClient: whether the private key is the client's.
    /// - Returns: 32 bytes; `nil` for an unusable public key.
    package func key(
        _ own: X25519KeyPair, with other: UnsafeRawBufferPointer, isClient: Bool
    ) -> Secret? {
        guard let shared = own.sharedSecret(with: other) else { return nil }
        switch self {
        case .xchacha20:
            let keys = [Secret(own.publicKey), Secret(copying: other)]
            return ScalarHash.blake2b([shared] + (isClient ? keys : keys.reversed()), count: 32)
        case .aesGCM:
            return shared.reveal { HMAC256.code(key: Secret("LOKI".utf8), $0) }
        }
    }

    /// - Parameter key: 32 bytes. `nonce`: ``nonceBytes``, never used twice with one key. Another length is a
    ///   programming error.
    package func seal(_ plain: UnsafeRawBufferPointer, key: Secret, nonce: [UInt8]) -> Secret {
        precondition(nonce.count == nonceBytes)
        return Secret(count: nonce.count + plain.count + Self.tagBytes) { out in
            out.copyBytes(from: nonce)
            let room = UnsafeMutableRawBufferPointer(rebasing: out[nonce.count...])
            switch self {
            case .xchacha20:
                key.reveal { key in
                    nonce.withUnsafeBytes {
                        XChaCha20Poly1305.seal(plain, with: Self.nothing, key: key, nonce: $0, into: room)
                    }
                }
            case .aesGCM: Self.sealGCM(plain, key, nonce, into: room)
            }
        }
    }

    /// - Returns: `nil` for another key, and for changed or truncated bytes.
    package func open(_ sealed: UnsafeRawBufferPointer, key: Secret) -> Secret? {
        guard sealed.count >= nonceBytes + Self.tagBytes else { return nil }
        let nonce = UnsafeRawBufferPointer(rebasing: sealed[..<nonceBytes])
        let rest = UnsafeRawBufferPointer(rebasing: sealed[nonceBytes...])
        switch self {
        case .xchacha20:
            var isOpen = false
            let plain = Secret(count: rest.count - Self.tagBytes) { out in
                isOpen = key.reveal {
                    XChaCha20Poly1305.open(rest, with: Self.nothing, key: $0, nonce: nonce, into: out)
                }
            }
            return isOpen ? plain : nil
        case .aesGCM: return Self.openGCM(rest, key, nonce)
        }
    }

    private static var nothing: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

    private static func sealGCM(
        _ plain: UnsafeRawBufferPointer, _ key: Secret, _ nonce: [UInt8],
        into room: UnsafeMutableRawBufferPointer
    ) {
        var text = Array(plain)
        defer { text.withUnsafeMutableBytes { wipe($0) } }
        // A nonce of 12 bytes and a key of 32 are never refused.
        guard let nonce = try? AES.GCM.Nonce(data: nonce),
            let box = try? AES.GCM.seal(
                text, using: key.reveal { SymmetricKey(data: Array($0)) }, nonce: nonce)
        else { preconditionFailure("AES-GCM seals with 12 bytes of nonce and 32 of key") }
        room.copyBytes(from: box.ciphertext)
        UnsafeMutableRawBufferPointer(rebasing: room[text.count...]).copyBytes(from: box.tag)
    }

    private static func openGCM(
        _ sealed: UnsafeRawBufferPointer, _ key: Secret, _ nonce: UnsafeRawBufferPointer
    ) -> Secret? {
        let end = sealed.count - tagBytes
        do {
            let box = try AES.GCM.SealedBox(
                nonce: AES.GCM.Nonce(data: Array(nonce)), ciphertext: Array(sealed[..<end]),
                tag: Array(sealed[end...]))
            return Secret(try AES.GCM.open(box, using: key.reveal { SymmetricKey(data: Array($0)) }))
        } catch {
            // The peer gets the same answer whatever the reason was.
            return nil
        }
    }
}
