import Clibsodium
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
        var isSealed = false
        let length = plain.count + overheadBytes
        let sealed = [UInt8](unsafeUninitializedCapacity: length) { out, count in
            let room = UnsafeMutableRawBufferPointer(start: out.baseAddress, count: length)
            isSealed = write(plain, to: recipient, ephemeral, into: room)
            count = isSealed ? length : 0
        }
        guard isSealed else { throw CryptoError(.malformedKey) }
        return sealed
    }

    /// Seals into memory that is there, in the same way. For hot paths.
    ///
    /// - Parameter room: of exactly ``overheadBytes`` more bytes than `plain` has.
    /// - Throws: `.malformedKey`; then nothing of `plain` stands in the room.
    package static func seal(
        _ plain: Secret, to recipient: [UInt8], ephemeral: X25519KeyPair,
        into room: UnsafeMutableRawBufferPointer
    ) throws(CryptoError) {
        precondition(room.count == plain.count + overheadBytes, "room for the box")
        guard write(plain, to: recipient, ephemeral, into: room) else { throw CryptoError(.malformedKey) }
    }

    private static func write(
        _ plain: Secret, to recipient: [UInt8], _ ephemeral: X25519KeyPair,
        into room: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard recipient.count == X25519KeyPair.keyBytes else { return false }
        Sodium.prepare()
        let nonce = nonce(ephemeral.publicKey, recipient)
        room.copyBytes(from: ephemeral.publicKey)
        let box = UnsafeMutableRawBufferPointer(rebasing: room[X25519KeyPair.keyBytes...])
        let result = plain.reveal { plain in
            ephemeral.privateKey.reveal { scalar in
                crypto_box_easy(
                    box.octets, plain.octets, UInt64(plain.count), nonce, recipient, scalar.octets)
            }
        }
        return result == 0
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
