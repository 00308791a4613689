import libsecp256k1
import Primitives
import PushModel

/// libsecp256k1, made ready once for the process.
enum Secp256k1 {
    /// The blinding never shows in a result.
    // Safety: the context is blinded once, before anybody else can see it, and only read from then on, which
    // the library allows from any thread.
    nonisolated(unsafe) private static let shared: OpaquePointer = {
        guard let context = secp256k1_context_create(UInt32(SECP256K1_CONTEXT_NONE)) else {
            preconditionFailure("no memory for the curve's context")
        }
        withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { seed in
            var generator = SystemRandomNumberGenerator()
            for at in 0..<4 {
                seed.storeBytes(of: generator.next(), toByteOffset: 8 * at, as: UInt64.self)
            }
            _ = secp256k1_context_randomize(context, seed.octets)
            wipe(seed)
        }
        return context
    }()

    @inline(__always)
    static var context: OpaquePointer { shared }
}

/// A point in the library's own form, in a block of its own.
///
/// Bytes that lie in a value are copied into the frames of every task that holds it, where they stay for as
/// long as the task. The relay wipes each block when it is given back.
final class HeldPoint: Sendable {
    let point: secp256k1_pubkey

    init(_ point: secp256k1_pubkey) { self.point = point }
}

/// A public key of secp256k1 as Nostr has it: the X coordinate of a point, whose Y is taken to be even
/// (BIP-340, "Public Key Generation").
public struct XOnlyKey: Sendable {
    /// The X coordinate.
    public static let byteCount = 32

    /// 32 bytes, big-endian; may be shown to anybody.
    public let bytes: [UInt8]
    /// The point itself, so that its square root is taken once.
    let point: HeldPoint

    /// - Returns: `nil` unless these are 32 bytes and the X of a point on the curve.
    public init?(_ bytes: some Collection<UInt8>) {
        self.init(owned: Array(bytes))
    }

    /// The same from raw memory: what boxes are opened with.
    package init?(_ raw: UnsafeRawBufferPointer) { self.init(owned: Array(raw)) }

    private init?(owned bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        var point = secp256k1_pubkey()
        // The compressed form of a point with even Y is 02 ‖ X.
        let isPoint = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 1 + Self.byteCount) { text in
            text[0] = 2
            for at in 0..<Self.byteCount { text[1 + at] = bytes[at] }
            return secp256k1_ec_pubkey_parse(Secp256k1.context, &point, text.baseAddress!, text.count) == 1
        }
        guard isPoint else { return nil }
        self.bytes = bytes
        self.point = HeldPoint(point)
    }

    /// Reads 64 lower-case hex digits.
    public init?(hex: some StringProtocol) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.byteCount)
        var pending: UInt8?
        for digit in hex.utf8 {
            let value: UInt8
            switch digit {
            case 0x30...0x39: value = digit - 0x30
            case 0x61...0x66: value = digit - 0x57
            default: return nil
            }
            if let first = pending {
                guard bytes.count < Self.byteCount else { return nil }
                bytes.append(first << 4 | value)
                pending = nil
            } else {
                pending = value
            }
        }
        guard pending == nil else { return nil }
        self.init(bytes)
    }

    /// 64 lower-case digits.
    public var hex: String {
        String(unsafeUninitializedCapacity: 2 * bytes.count) { out in
            for at in 0..<bytes.count {
                out[2 * at] = Self.digit(bytes[at] >> 4)
                out[2 * at + 1] = Self.digit(bytes[at] & 15)
            }
            return 2 * bytes.count
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }

    /// Whether this key signed the digest (BIP-340, "Verification").
    ///
    /// - Parameter signature: 64 bytes; any other number never verifies.
    /// - Parameter digest: 32 bytes; any other number never verifies.
    public func verifies(_ signature: some Collection<UInt8>, of digest: [UInt8]) -> Bool {
        guard signature.count == 64, digest.count == 32 else { return false }
        var key = secp256k1_xonly_pubkey()
        return withUnsafePointer(to: point.point) { point in
            guard secp256k1_xonly_pubkey_from_pubkey(Secp256k1.context, &key, nil, point) == 1 else {
                return false
            }
            return secp256k1_schnorrsig_verify(
                Secp256k1.context, Array(signature), digest, digest.count, &key) == 1
        }
    }
}

extension XOnlyKey: Hashable {
    /// Both have one X.
    public static func == (left: Self, right: Self) -> Bool { left.bytes == right.bytes }
    /// By ``bytes``.
    public func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}
