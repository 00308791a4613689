import Crypto
package import PushModel
package import Secp256k1Keys

/// AES-256-GCM in this protocol's form: nonce(12) ‖ ciphertext ‖ tag(16), no associated data. It seals
/// registrations and the entries of an allowed key list, with the X coordinate of a shared point as the key.
package enum StatusBox {
    /// - Parameter key: 32 bytes. `nonce`: 12, never used twice with one key. Another length is a
    /// programming error.
    package static func seal(_ plain: Secret, key: Secret, nonce: [UInt8]) -> Secret {
        let sealed = GCM.seal(plain, key: key, nonce: nonce)
        return Secret(count: nonce.count + sealed.count) { out in
            out.copyBytes(from: nonce)
            sealed.reveal {
                UnsafeMutableRawBufferPointer(rebasing: out[nonce.count...]).copyMemory(from: $0)
            }
        }
    }

    package static func seal(
        _ plain: Secret, from own: Secp256k1KeyPair, to peer: PublicPoint, _ world: World
    ) -> Secret {
        seal(plain, key: own.sharedX(with: peer), nonce: world.randomBytes(StatusLimits.nonceBytes))
    }

    /// - Throws: `.doesNotOpen` for every cause.
    package static func open(_ box: Secret, key: Secret) throws(StatusError) -> Secret {
        guard key.count == StatusLimits.keyBytes else { throw StatusError(.doesNotOpen) }
        let opened = box.reveal { box -> Secret? in
            guard box.count >= StatusLimits.nonceBytes + StatusLimits.tagBytes else { return nil }
            return GCM.open(
                UnsafeRawBufferPointer(rebasing: box[StatusLimits.nonceBytes...]),
                key: key, nonce: UnsafeRawBufferPointer(rebasing: box[..<StatusLimits.nonceBytes]))
        }
        guard let opened else { throw StatusError(.doesNotOpen) }
        return opened
    }
}

/// AES-256-GCM: ciphertext ‖ tag; callers decide where the nonce goes.
enum GCM {
    static func seal(_ plain: Secret, key: Secret, nonce: [UInt8]) -> Secret {
        precondition(key.count == StatusLimits.keyBytes && nonce.count == StatusLimits.nonceBytes)
        var text = plain.reveal { Array($0) }
        defer { text.withUnsafeMutableBytes { wipe($0) } }
        // A nonce of 12 bytes and a key of 32 are never refused.
        guard let nonce = try? AES.GCM.Nonce(data: nonce),
            let box = try? AES.GCM.seal(
                text, using: key.reveal { SymmetricKey(data: Array($0)) }, nonce: nonce)
        else { preconditionFailure("AES-GCM seals with 12 bytes of nonce and 32 of key") }
        return Secret(count: text.count + StatusLimits.tagBytes) { out in
            out.copyBytes(from: box.ciphertext)
            UnsafeMutableRawBufferPointer(rebasing: out[text.count...]).copyBytes(from: box.tag)
        }
    }

    /// - Returns: `nil` for another key, and for changed or truncated bytes.
    static func open(
        _ sealed: UnsafeRawBufferPointer, key: Secret, nonce: UnsafeRawBufferPointer
    ) -> Secret? {
        let end = sealed.count - StatusLimits.tagBytes
        guard end >= 0 else { return nil }
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
