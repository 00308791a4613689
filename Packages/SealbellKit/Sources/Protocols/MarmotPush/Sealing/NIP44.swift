import Primitives
package import PushModel
package import Secp256k1Keys
import WireFormats

/// NIP-44 version 2: base64 of 0x02 ‖ nonce (32 bytes) ‖ ciphertext ‖ authenticator (32 bytes).
///
/// We call it encrypt and decrypt, because in Nostr a *seal* is an event of kind 13.
package enum NIP44 {
    /// Nonce of one message, random.
    package static let nonceBytes = 32
    /// Version, nonce, authenticator.
    private static let frameBytes = 65
    /// The shortest possible payload, before and after base64 (NIP-44, "Decryption").
    private static let leastBytes = 99
    private static let leastCharacters = 132

    /// The form of the length in front of the plaintext.
    package enum Prefix: Sendable {
        /// Two bytes; up to 65,535 bytes of text. Every reader understands it.
        case short
        /// Two zero bytes and four more, for texts of 65,536 bytes and up (since June 2026). Shorter texts
        /// are written as with `.short`.
        case long
    }

    /// The key that two parties share: HKDF-extract of the raw shared X, salt `nip44-v2`.
    ///
    /// - Returns: 32 bytes.
    package static func conversationKey(_ pair: Secp256k1KeyPair, _ peer: XOnlyKey) -> Secret {
        HKDF256.extract(salt: Array("nip44-v2".utf8), input: pair.sharedX(with: peer))
    }

    /// Encrypts a text.
    ///
    /// - Parameter nonce: 32 random bytes, never used twice with one key.
    /// - Returns: the payload, in base64.
    /// - Throws: `.malformedKey` for a key or nonce of another length; `.tooMuchContent` for an empty text,
    ///   one whose length the prefix cannot express, or one whose payload would exceed
    ///   ``MarmotLimits/payloadBytes``.
    package static func encrypt(
        _ plain: Secret, key: Secret, nonce: [UInt8], prefix: Prefix = .short
    ) throws(MarmotError) -> Secret {
        guard key.count == 32, nonce.count == nonceBytes else { throw MarmotError(.malformedKey) }
        guard plain.count > 0, prefix == .long || plain.count <= MarmotLimits.shortPlaintextBytes,
            plain.count <= MarmotLimits.payloadBytes
        else { throw MarmotError(.tooMuchContent) }
        let padded = padded(plain)
        let count = frameBytes + padded.count
        guard (count + 2) / 3 * 4 <= MarmotLimits.payloadBytes else { throw MarmotError(.tooMuchContent) }
        let keys = messageKeys(key, nonce)
        let payload = Secret(count: count) { out in
            out[0] = 2
            UnsafeMutableRawBufferPointer(rebasing: out[1..<33]).copyBytes(from: nonce)
            let body = UnsafeMutableRawBufferPointer(rebasing: out[33..<count - 32])
            padded.reveal { padded in
                keys.reveal { keys in
                    ChaCha20.apply(padded, key: keys[0, 32], nonce: keys[32, 12], into: body)
                    HMAC256.code(
                        key: keys[44, 32], [UnsafeRawBufferPointer(rebasing: out[1..<count - 32])],
                        into: UnsafeMutableRawBufferPointer(rebasing: out[(count - 32)...]))
                }
            }
        }
        return payload.reveal { Secret(Base64.encode($0)) }
    }

    /// Decrypts a payload.
    ///
    /// - Parameter payload: base64.
    /// - Throws: `.doesNotOpen` for every reason; `.malformedKey` for a key of another length.
    package static func decrypt(_ payload: Secret, key: Secret) throws(MarmotError) -> Secret {
        guard key.count == 32 else { throw MarmotError(.malformedKey) }
        let bytes = try payload.reveal { (text) throws(MarmotError) in try decoded(text) }
        return try bytes.reveal { (bytes) throws(MarmotError) in
            let nonce = bytes[1, 32]
            let body = bytes[33, bytes.count - frameBytes]
            let keys = messageKeys(key, Array(nonce))
            let code = keys.reveal { keys in
                Secret(count: 32) { HMAC256.code(key: keys[44, 32], [nonce, body], into: $0) }
            }
            // The authenticator is checked before decryption, and compared without an early exit.
            guard code.reveal({ constantTimeEqual($0, bytes[bytes.count - 32, 32]) }) else {
                throw MarmotError(.doesNotOpen)
            }
            let padded = Secret(count: body.count) { out in
                keys.reveal { ChaCha20.apply(body, key: $0[0, 32], nonce: $0[32, 12], into: out) }
            }
            return try unpadded(padded)
        }
    }

    /// The bytes of a payload of version 2.
    private static func decoded(_ text: UnsafeRawBufferPointer) throws(MarmotError) -> Secret {
        // A leading # announces a version that is not in base64.
        guard text.count >= leastCharacters, text.count <= MarmotLimits.payloadBytes, text[0] != 0x23,
            let count = Base64.decodedCount(text), count >= leastBytes
        else { throw MarmotError(.doesNotOpen) }
        let bytes: Secret
        do {
            bytes = try Secret(count: count) { (out) throws(FormatError) in
                try Base64.decode(text, .standard, into: out)
            }
        } catch { throw MarmotError(.doesNotOpen) }
        guard bytes.reveal({ $0[0] == 2 }) else { throw MarmotError(.doesNotOpen) }
        return bytes
    }

    /// ChaCha20's key (32 bytes) and nonce (12), the authenticator's key (32).
    package static func messageKeys(_ key: Secret, _ nonce: [UInt8]) -> Secret {
        HKDF256.expand(key, info: nonce, count: 76)
    }

    // MARK: padding

    /// The padded size of a text of `count` bytes, without the length in front ("calc_padded_len").
    package static func paddedCount(_ count: Int) -> Int {
        guard count > 32 else { return 32 }
        let power = 1 << (Int.bitWidth - (count - 1).leadingZeroBitCount)
        let chunk = power <= 256 ? 32 : power / 8
        return (count + chunk - 1) / chunk * chunk
    }

    private static func padded(_ plain: Secret) -> Secret {
        let isShort = plain.count <= MarmotLimits.shortPlaintextBytes
        let prefix = isShort ? 2 : 6
        return Secret(count: prefix + paddedCount(plain.count)) { out in
            if isShort {
                withUnsafeBytes(of: UInt16(plain.count).bigEndian) { out.copyBytes(from: $0) }
            } else {
                withUnsafeBytes(of: UInt32(plain.count).bigEndian) {
                    UnsafeMutableRawBufferPointer(rebasing: out[2...]).copyBytes(from: $0)
                }
            }
            plain.reveal { UnsafeMutableRawBufferPointer(rebasing: out[prefix...]).copyMemory(from: $0) }
        }
    }

    package static func unpadded(_ padded: Secret) throws(MarmotError) -> Secret {
        try padded.reveal { (raw) throws(MarmotError) in
            var prefix = 2
            var count = Int(raw[0]) << 8 | Int(raw[1])
            if count == 0 {
                prefix = 6
                count = raw[2, 4].reduce(0) { $0 << 8 | Int($1) }
                // A text whose length fits the short form must use it, so that it has one spelling only.
                guard count > MarmotLimits.shortPlaintextBytes else { throw MarmotError(.doesNotOpen) }
            }
            guard count <= raw.count, raw.count == prefix + paddedCount(count) else {
                throw MarmotError(.doesNotOpen)
            }
            return Secret(copying: raw[prefix, count])
        }
    }
}

extension UnsafeRawBufferPointer {
    /// `count` bytes starting at an offset.
    @inline(__always)
    subscript(_ start: Int, _ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: self[start..<start + count])
    }
}
