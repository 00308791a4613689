import libsecp256k1
import PushModel

/// libsecp256k1 with nothing around it: what our own rooms are measured against.
///
/// Keys are parsed before the clock runs, results go into memory that is there, and the context is one of
/// its own. Scalars of the measurement alone lie in plain arrays.
struct BareCurve {
    private let context: OpaquePointer
    private let scalar: [UInt8]

    /// - Parameter scalar: 32 bytes, a valid private key.
    init(scalar: Secret) {
        guard let context = secp256k1_context_create(UInt32(SECP256K1_CONTEXT_NONE)) else {
            preconditionFailure("no memory for the curve's context")
        }
        // Blinded as ours is: the library's own advice, and its price belongs to both sides.
        var seed = scalar.reveal { Array($0) }
        seed[0] ^= 1
        _ = secp256k1_context_randomize(context, seed)
        self.context = context
        self.scalar = scalar.reveal { Array($0) }
    }

    func end() { secp256k1_context_destroy(context) }

    /// Lifts an X of 32 bytes to the point with even Y: one square root.
    func lift(_ x: UnsafeRawBufferPointer) -> secp256k1_pubkey {
        var point = secp256k1_pubkey()
        let isPoint = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 33) { text in
            text[0] = 2
            UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(text)[1...])
                .copyMemory(from: x)
            return secp256k1_ec_pubkey_parse(context, &point, text.baseAddress!, 33)
        }
        precondition(isPoint == 1, "the measurement's own keys are points")
        return point
    }

    func lift(_ x: [UInt8]) -> secp256k1_pubkey { x.withUnsafeBytes { lift($0) } }

    /// The X of scalar × point, raw. - Parameter out: 32 bytes.
    func multiply(_ point: inout secp256k1_pubkey, into out: UnsafeMutablePointer<UInt8>) {
        _ = secp256k1_ecdh(
            context, out, &point, scalar,
            { out, x, _, _ in
                guard let out, let x else { return 0 }
                out.update(from: x, count: 32)
                return 1
            }, nil)
    }

    /// The key by which signatures are verified.
    func verifier(_ point: inout secp256k1_pubkey) -> secp256k1_xonly_pubkey {
        var key = secp256k1_xonly_pubkey()
        _ = secp256k1_xonly_pubkey_from_pubkey(context, &key, nil, &point)
        return key
    }

    /// - Parameters: 64 and 32 bytes.
    func verify(_ signature: [UInt8], _ digest: [UInt8], _ key: inout secp256k1_xonly_pubkey) -> Bool {
        secp256k1_schnorrsig_verify(context, signature, digest, digest.count, &key) == 1
    }
}
