import Crypto
import CryptoExtras
import Primitives
package import PushModel
package import Secp256k1Keys

/// 26/WAKU2-PAYLOAD, version 1. The bytes do not show how they are sealed; the topic decides it.
package enum WakuPayload {
    /// The content of a payload.
    package struct Opened: Sendable {
        package let data: Secret
        /// The body with its signature; `nil`: it is not signed.
        fileprivate let signed: Secret?

        /// Who signed the payload, if anybody did. Each read recovers the key again, which takes a seventh of
        /// the time of judging a request. Like status-go, the relay uses it only for a message without a
        /// signature of its own; otherwise the message's signature names the sender.
        package var signer: PublicPoint? {
            signed?.reveal { raw in
                let end = raw.count - StatusLimits.signatureBytes
                return PublicPoint.recovered(
                    from: UnsafeRawBufferPointer(rebasing: raw[end...]),
                    of: Keccak.hash256(UnsafeRawBufferPointer(rebasing: raw[..<end])))
            }
        }
    }

    private static let ivBytes = 16
    private static let macBytes = 32

    // MARK: to a key

    /// R(65) ‖ iv(16) ‖ ciphertext ‖ MAC(32).
    package static func sealAsymmetric(
        _ data: Secret, to recipient: PublicPoint, signer: Secp256k1KeyPair?, _ world: World
    ) -> Secret {
        sealAsymmetric(
            body(data, signer: signer, padding: world.randomBytes(padding(data, isSigned: signer != nil))),
            to: recipient, ephemeral: .generate(world), iv: world.randomBytes(ivBytes))
    }

    /// - Parameter iv: 16 bytes.
    package static func sealAsymmetric(
        _ body: Secret, to recipient: PublicPoint, ephemeral: Secp256k1KeyPair, iv: [UInt8]
    ) -> Secret {
        let keys = keys(ephemeral.sharedX(with: recipient))
        let ciphertext = body.reveal { crypt($0, keys.cipher, iv: iv) }
        let head = ephemeral.point.uncompressed + iv
        let code = iv.withUnsafeBytes { iv in
            ciphertext.reveal { ciphertext in
                Secret(count: macBytes) { out in
                    keys.mac.reveal { HMAC256.code(key: $0, [iv, ciphertext], into: out) }
                }
            }
        }
        return Secret(count: head.count + ciphertext.count + macBytes) { out in
            out.copyBytes(from: head)
            ciphertext.reveal {
                UnsafeMutableRawBufferPointer(rebasing: out[head.count...]).copyBytes(from: $0)
            }
            let end = head.count + ciphertext.count
            code.reveal { UnsafeMutableRawBufferPointer(rebasing: out[end...]).copyBytes(from: $0) }
        }
    }

    /// - Throws: `.doesNotOpen` for what is sealed to another key or changed, `.malformedPayload`.
    package static func openAsymmetric(
        _ payload: Secret, with key: Secp256k1KeyPair
    ) throws(StatusError) -> Opened {
        let body = payload.reveal { raw -> Secret? in
            let head = PublicPoint.uncompressedBytes + ivBytes
            guard raw.count >= head + macBytes, raw.count <= StatusLimits.payloadBytes,
                let point = PublicPoint(
                    UnsafeRawBufferPointer(rebasing: raw[..<PublicPoint.uncompressedBytes]))
            else { return nil }
            let end = raw.count - macBytes
            let keys = keys(key.sharedX(with: point))
            let signed = UnsafeRawBufferPointer(rebasing: raw[PublicPoint.uncompressedBytes..<end])
            let code = Secret(count: macBytes) { out in
                keys.mac.reveal { HMAC256.code(key: $0, [signed], into: out) }
            }
            let isWhole = code.reveal {
                constantTimeEqual($0, UnsafeRawBufferPointer(rebasing: raw[end...]))
            }
            guard isWhole else { return nil }
            return crypt(
                UnsafeRawBufferPointer(rebasing: raw[head..<end]), keys.cipher,
                iv: Array(raw[PublicPoint.uncompressedBytes..<head]))
        }
        guard let body else { throw StatusError(.doesNotOpen) }
        return try read(body)
    }

    /// SHA-256 of 00000001 ‖ S: the first half is the cipher's key, the hash of the second the code's.
    private static func keys(_ shared: Secret) -> (cipher: Secret, mac: Secret) {
        let counter: [UInt8] = [0, 0, 0, 1]
        var derived = counter.withUnsafeBytes { counter in
            shared.reveal { SHA256.hash(joining: [counter, $0]) }
        }
        defer { derived.withUnsafeMutableBytes { wipe($0) } }
        return derived.withUnsafeBytes { derived in
            let mac = SHA256.hash(UnsafeRawBufferPointer(rebasing: derived[16...]))
            return (Secret(copying: UnsafeRawBufferPointer(rebasing: derived[..<16])), Secret(mac))
        }
    }

    private static func crypt(_ text: UnsafeRawBufferPointer, _ key: Secret, iv: [UInt8]) -> Secret {
        guard text.count > 0 else { return .none }
        // A key of 16 bytes and a counter of 16 are never refused.
        guard let nonce = try? AES._CTR.Nonce(nonceBytes: iv),
            let out = try? AES._CTR.encrypt(
                Array(text), using: key.reveal { SymmetricKey(data: Array($0)) }, nonce: nonce)
        else { preconditionFailure("AES-CTR takes a key and a counter of 16 bytes") }
        return Secret(out)
    }

    // MARK: to a topic

    /// ciphertext ‖ tag(16) ‖ nonce(12).
    ///
    /// - Parameter key: the topic's (``TopicKey``).
    package static func sealSymmetric(
        _ data: Secret, key: Secret, signer: Secp256k1KeyPair?, _ world: World
    ) -> Secret {
        sealSymmetric(
            body(data, signer: signer, padding: world.randomBytes(padding(data, isSigned: signer != nil))),
            key: key, nonce: world.randomBytes(StatusLimits.nonceBytes))
    }

    package static func sealSymmetric(_ body: Secret, key: Secret, nonce: [UInt8]) -> Secret {
        let sealed = GCM.seal(body, key: key, nonce: nonce)
        return Secret(count: sealed.count + nonce.count) { out in
            sealed.reveal { out.copyBytes(from: $0) }
            UnsafeMutableRawBufferPointer(rebasing: out[sealed.count...]).copyBytes(from: nonce)
        }
    }

    /// - Throws: `.doesNotOpen` for another topic's or changed, `.malformedPayload`.
    package static func openSymmetric(_ payload: Secret, key: Secret) throws(StatusError) -> Opened {
        let body = payload.reveal { raw -> Secret? in
            guard key.count == StatusLimits.keyBytes, raw.count <= StatusLimits.payloadBytes,
                raw.count >= StatusLimits.nonceBytes + StatusLimits.tagBytes
            else { return nil }
            let end = raw.count - StatusLimits.nonceBytes
            return GCM.open(
                UnsafeRawBufferPointer(rebasing: raw[..<end]), key: key,
                nonce: UnsafeRawBufferPointer(rebasing: raw[end...]))
        }
        guard let body else { throw StatusError(.doesNotOpen) }
        return try read(body)
    }

    // MARK: the body

    private static let isSignedFlag: UInt8 = 4

    /// How many bytes of padding bring the body, its signature among it, to the next multiple of 256: never
    /// none.
    package static func padding(_ data: Secret, isSigned: Bool) -> Int {
        let size =
            1 + lengthBytes(data.count) + data.count + (isSigned ? StatusLimits.signatureBytes : 0)
        return StatusLimits.paddingBytes - size % StatusLimits.paddingBytes
    }

    private static func lengthBytes(_ count: Int) -> Int {
        count < 1 << 8 ? 1 : count < 1 << 16 ? 2 : 3
    }

    /// flags ‖ length ‖ data ‖ padding ‖ signature.
    ///
    /// - Parameter data: less than 16 MiB, which its length has room for; of more the body has nothing. No
    ///   node carries a hundredth of it.
    package static func body(_ data: Secret, signer: Secp256k1KeyPair?, padding: [UInt8]) -> Secret {
        guard data.count < 1 << 24 else { return body(.none, signer: signer, padding: padding) }
        let lengthBytes = lengthBytes(data.count)
        let unsigned = Secret(count: 1 + lengthBytes + data.count + padding.count) { out in
            out[0] = UInt8(lengthBytes) | (signer == nil ? 0 : isSignedFlag)
            for at in 0..<lengthBytes { out[1 + at] = UInt8(truncatingIfNeeded: data.count >> (8 * at)) }
            let start = 1 + lengthBytes
            data.reveal { UnsafeMutableRawBufferPointer(rebasing: out[start...]).copyBytes(from: $0) }
            UnsafeMutableRawBufferPointer(rebasing: out[(start + data.count)...]).copyBytes(from: padding)
        }
        guard let signer else { return unsigned }
        let signature = signer.signRecoverable(Keccak.hash256(unsigned))
        return Secret(count: unsigned.count + signature.count) { out in
            unsigned.reveal { out.copyBytes(from: $0) }
            UnsafeMutableRawBufferPointer(rebasing: out[unsigned.count...]).copyBytes(from: signature)
        }
    }

    /// Any padding is taken, and a length of no bytes means no data.
    private static func read(_ body: Secret) throws(StatusError) -> Opened {
        try body.reveal { raw throws(StatusError) in
            guard let flags = raw.first else { throw StatusError(.malformedPayload) }
            let lengthBytes = Int(flags & 3)
            let isSigned = flags & isSignedFlag != 0
            let end = raw.count - (isSigned ? StatusLimits.signatureBytes : 0)
            let start = 1 + lengthBytes
            guard start <= end else { throw StatusError(.malformedPayload) }
            let count = (0..<lengthBytes).reduce(0) { $0 | Int(raw[1 + $1]) << (8 * $1) }
            guard count <= end - start else { throw StatusError(.malformedPayload) }
            let data = Secret(copying: UnsafeRawBufferPointer(rebasing: raw[start..<start + count]))
            guard isSigned else { return Opened(data: data, signed: nil) }
            guard PublicPoint.mayRecover(from: UnsafeRawBufferPointer(rebasing: raw[end...])) else {
                throw StatusError(.malformedPayload)
            }
            return Opened(data: data, signed: body)
        }
    }
}
