import CSodium
public import PushModel

/// libsodium's sealed box: `epk (32) ‖ crypto_box_easy`, X25519 with XSalsa20-Poly1305.
///
/// The nonce is BLAKE2b-192(epk ‖ recipient's public key), so that it need not be sent, and no sender repeats
/// one: each box has an ephemeral key of its own.
public enum SealedBox {
    /// What a sealed box is longer than its content: 32 bytes of public key and 16 of authenticator.
    public static let overheadBytes = 48

    /// Opens a box.
    ///
    /// - Throws: `.doesNotOpen`, whatever the reason.
    public static func open(
        _ sealed: UnsafeRawBufferPointer, with pair: X25519KeyPair
    ) throws(CryptoError) -> Secret {
        guard sealed.count >= overheadBytes else { throw CryptoError(.doesNotOpen) }
        Sodium.prepare()
        return try Secret(count: sealed.count - overheadBytes) { out throws(CryptoError) in
            let result = pair.privateKey.reveal { scalar in
                crypto_box_seal_open(
                    out.octets, sealed.octets, UInt64(sealed.count), pair.publicKey,
                    scalar.octets)
            }
            guard result == 0 else { throw CryptoError(.doesNotOpen) }
        }
    }

    public static func open(_ sealed: [UInt8], with pair: X25519KeyPair) throws(CryptoError) -> Secret {
        try withBytes(sealed) { bytes throws(CryptoError) in try open(bytes, with: pair) }
    }

    /// Seals to a public key with an ephemeral pair that the caller brings.
    ///
    /// The same pair must never seal two different contents to one recipient: the nonce would repeat.
    ///
    /// - Returns: `overheadBytes` more bytes than `plain` has.
    /// - Throws: `.malformedKey` when the recipient's key is not 32 bytes or is a weak point.
    public static func seal(
        _ plain: Secret, to recipient: [UInt8], ephemeral: X25519KeyPair
    ) throws(CryptoError) -> [UInt8] {
        guard recipient.count == X25519KeyPair.keyBytes else { throw CryptoError(.malformedKey) }
        Sodium.prepare()
        let nonce = nonce(ephemeral.publicKey, recipient)
        var isSealed = false
        let sealed = [UInt8](unsafeUninitializedCapacity: plain.count + overheadBytes) { out, count in
            _ = out.initialize(from: ephemeral.publicKey)
            let result = plain.reveal { plain in
                ephemeral.privateKey.reveal { scalar in
                    crypto_box_easy(
                        out.baseAddress! + X25519KeyPair.keyBytes, plain.octets,
                        UInt64(plain.count), nonce, recipient, scalar.octets)
                }
            }
            isSealed = result == 0
            count = isSealed ? plain.count + overheadBytes : 0
        }
        guard isSealed else { throw CryptoError(.malformedKey) }
        return sealed
    }

    /// Seals with a fresh ephemeral pair.
    package static func seal(
        _ plain: Secret, to recipient: [UInt8], world: World
    ) throws(CryptoError) -> [UInt8] {
        try seal(plain, to: recipient, ephemeral: .generate(world))
    }

    private static func nonce(_ ephemeral: [UInt8], _ recipient: [UInt8]) -> [UInt8] {
        let input = ephemeral + recipient
        return [UInt8](unsafeUninitializedCapacity: 24) { out, count in
            _ = crypto_generichash(out.baseAddress!, 24, input, UInt64(input.count), nil, 0)
            count = 24
        }
    }
}

/// `withUnsafeBytes` with a typed error.
func withBytes<Result>(
    _ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws(CryptoError) -> Result
) throws(CryptoError) -> Result {
    let outcome = bytes.withUnsafeBytes { raw -> Swift.Result<Result, CryptoError> in
        do throws(CryptoError) { return .success(try body(raw)) } catch { return .failure(error) }
    }
    return try outcome.get()
}
