import libsecp256k1
import Primitives
public import PushModel

/// A point of secp256k1 other than infinity: a public key with both its coordinates.
public struct PublicPoint: Sendable {
    /// 02 or 03 ‖ X.
    public static let compressedBytes = 33
    /// 04 ‖ X ‖ Y.
    public static let uncompressedBytes = 65

    let point: HeldPoint
    /// 02 or 03 ‖ X: 33 bytes.
    public let compressed: [UInt8]

    /// - Parameter bytes: 33 (02 or 03 first) or 65 (04 first).
    /// - Returns: `nil` for anything else, and for what is not on the curve.
    public init?(_ bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        guard let point = bytes.withUnsafeBytes({ PublicPoint($0) }) else { return nil }
        self = point
    }

    /// The same from raw memory.
    public init?(_ raw: UnsafeRawBufferPointer) {
        // The library would take 06 and 07 too.
        switch (raw.count, raw.first) {
        case (Self.compressedBytes, 2), (Self.compressedBytes, 3), (Self.uncompressedBytes, 4): break
        default: return nil
        }
        var point = secp256k1_pubkey()
        guard secp256k1_ec_pubkey_parse(Secp256k1.context, &point, raw.octets, raw.count) == 1 else {
            return nil
        }
        self.init(point)
    }

    init(_ point: secp256k1_pubkey) {
        self.point = HeldPoint(point)
        compressed = Self.serialize(point, Self.compressedBytes, UInt32(SECP256K1_EC_COMPRESSED))
    }

    /// 04 ‖ X ‖ Y: 65 bytes.
    public var uncompressed: [UInt8] {
        Self.serialize(point.point, Self.uncompressedBytes, UInt32(SECP256K1_EC_UNCOMPRESSED))
    }

    /// 32 bytes, big-endian.
    public var x: ArraySlice<UInt8> { compressed[1...] }

    /// The key that signed a digest (SEC 1, §4.1.6). A high S is taken.
    ///
    /// - Parameter signature: r(32) ‖ s(32) ‖ v(1), v from 0 to 3; anything else recovers nothing.
    /// - Parameter digest: 32 bytes; any other number recovers nothing.
    public static func recovered(from signature: UnsafeRawBufferPointer, of digest: [UInt8]) -> PublicPoint? {
        guard signature.count == Secp256k1KeyPair.recoverableSignatureBytes, digest.count == 32,
            signature[64] < 4
        else { return nil }
        var parsed = secp256k1_ecdsa_recoverable_signature()
        var point = secp256k1_pubkey()
        guard
            secp256k1_ecdsa_recoverable_signature_parse_compact(
                Secp256k1.context, &parsed, signature.octets, Int32(signature[64])) == 1,
            secp256k1_ecdsa_recover(Secp256k1.context, &point, &parsed, digest) == 1
        else { return nil }
        return PublicPoint(point)
    }

    /// The same, for bytes in an array.
    public static func recovered(from signature: [UInt8], of digest: [UInt8]) -> PublicPoint? {
        signature.withUnsafeBytes { recovered(from: $0, of: digest) }
    }

    /// Whether a signature has the form of one: a key is recovered from it for every digest but one, which
    /// whoever made it may choose. It takes a fraction of what recovering takes.
    ///
    /// - Parameter signature: r(32) ‖ s(32) ‖ v(1).
    public static func mayRecover(from signature: UnsafeRawBufferPointer) -> Bool {
        guard signature.count == Secp256k1KeyPair.recoverableSignatureBytes, signature[64] < 4 else {
            return false
        }
        // One signature in 2^127 honest ones: not worth another way to know its point.
        guard signature[64] < 2 else {
            return recovered(from: signature, of: [UInt8](repeating: 1, count: 32)) != nil
        }
        var parsed = secp256k1_ecdsa_recoverable_signature()
        // Refuses what is not below the group's order.
        guard
            secp256k1_ecdsa_recoverable_signature_parse_compact(
                Secp256k1.context, &parsed, signature.octets, Int32(signature[64])) == 1,
            signature[32..<64].contains(where: { $0 != 0 })
        else { return false }
        // The nonce's point has r for its X. None has 0.
        return PublicPoint([2] + signature[..<32]) != nil
    }

    private static func serialize(_ point: secp256k1_pubkey, _ count: Int, _ form: UInt32) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { out, written in
            var point = point
            written = count
            _ = secp256k1_ec_pubkey_serialize(Secp256k1.context, out.baseAddress!, &written, &point, form)
        }
    }
}

extension PublicPoint: Hashable {
    /// Both are one point.
    public static func == (left: Self, right: Self) -> Bool { left.compressed == right.compressed }
    /// By ``compressed``.
    public func hash(into hasher: inout Hasher) { hasher.combine(compressed) }
}

extension Secp256k1KeyPair {
    /// r(32) ‖ s(32) ‖ v(1).
    public static let recoverableSignatureBytes = 65

    /// The X of the product of our scalar and the peer's point: 32 bytes, not hashed.
    public func sharedX(with peer: PublicPoint) -> Secret { sharedX(with: peer.point) }

    /// Signs a digest so that the key can be recovered: nonce by RFC 6979, low S.
    ///
    /// - Parameter digest: 32 bytes. Another length is a bug of ours.
    /// - Returns: r(32) ‖ s(32) ‖ v(1), v 0 or 1 but for one signature in 2^127.
    public func signRecoverable(_ digest: [UInt8]) -> [UInt8] {
        precondition(digest.count == 32)
        return [UInt8](unsafeUninitializedCapacity: Self.recoverableSignatureBytes) { out, count in
            var signature = secp256k1_ecdsa_recoverable_signature()
            var parity: Int32 = 0
            let result = secret.reveal { scalar in
                secp256k1_ecdsa_sign_recoverable(
                    Secp256k1.context, &signature, digest, scalar.octets, nil, nil)
            }
            precondition(result == 1, "a valid scalar signs")
            _ = secp256k1_ecdsa_recoverable_signature_serialize_compact(
                Secp256k1.context, out.baseAddress!, &parity, &signature)
            out[64] = UInt8(parity)
            count = Self.recoverableSignatureBytes
        }
    }
}
