import Clibsodium
import Primitives
package import PushModel

/// Numbers modulo the order of Ed25519's group, L, as 32 bytes, little-endian. All of them may be secret.
package enum EdwardsScalar {
    package static let byteCount = 32

    /// - Parameter wide: exactly 64 bytes. Another length is a bug of ours.
    package static func reduced(_ wide: Secret) -> Secret {
        precondition(wide.count == 64)
        return Secret(count: byteCount) { out in
            wide.reveal { crypto_core_ed25519_scalar_reduce(out.octets, $0.octets) }
        }
    }

    /// Each of both may be any 32 bytes.
    package static func product(_ left: Secret, _ right: Secret) -> Secret {
        combined(left, right) { crypto_core_ed25519_scalar_mul($0, $1, $2) }
    }

    /// Both below L.
    package static func sum(_ left: Secret, _ right: Secret) -> Secret {
        combined(left, right) { crypto_core_ed25519_scalar_add($0, $1, $2) }
    }

    package static func negated(_ scalar: Secret) -> Secret {
        combined(scalar, scalar) { out, scalar, _ in crypto_core_ed25519_scalar_negate(out, scalar) }
    }

    /// The base point times a scalar below L, without clamping.
    ///
    /// - Returns: `nil` for zero.
    package static func basePoint(times scalar: Secret) -> Secret? {
        precondition(scalar.count == byteCount)
        var isPoint = false
        let point = Secret(count: byteCount) { out in
            isPoint = scalar.reveal { crypto_scalarmult_ed25519_base_noclamp(out.octets, $0.octets) } == 0
        }
        return isPoint ? point : nil
    }

    private static func combined(
        _ left: Secret, _ right: Secret,
        _ body: (UnsafeMutablePointer<UInt8>, UnsafePointer<UInt8>, UnsafePointer<UInt8>) -> Void
    ) -> Secret {
        precondition(left.count == byteCount && right.count == byteCount)
        return Secret(count: byteCount) { out in
            left.reveal { left in right.reveal { right in body(out.octets, left.octets, right.octets) } }
        }
    }
}

/// BLAKE2b of 32 or 64 bytes (RFC 7693) with a key that may be a short word, and SHA-512: what scalars are
/// drawn from.
package enum ScalarHash {
    /// - Parameter key: at most 64 bytes; none: unkeyed. `count`: 16 to 64. Another length is a bug of ours.
    package static func blake2b(_ parts: [Secret], key: Secret = Secret([]), count: Int) -> Secret {
        precondition(key.count <= 64 && (16...64).contains(count))
        return Secret(count: count) { out in
            // The C type asks for an alignment of 64, which only an explicit allocation grants.
            withUnsafeTemporaryAllocation(byteCount: crypto_generichash_statebytes(), alignment: 64) { room in
                let state = OpaquePointer(room.baseAddress!)
                key.reveal { _ = crypto_generichash_init(state, $0.octets, $0.count, count) }
                for part in parts {
                    part.reveal { _ = crypto_generichash_update(state, $0.octets, UInt64($0.count)) }
                }
                _ = crypto_generichash_final(state, out.octets, count)
                wipe(room)
            }
        }
    }

    /// - Returns: 64 bytes.
    package static func sha512(_ parts: [Secret]) -> Secret {
        Secret(count: 64) { out in
            var state = crypto_hash_sha512_state()
            defer { withUnsafeMutableBytes(of: &state) { wipe($0) } }
            _ = crypto_hash_sha512_init(&state)
            for part in parts {
                part.reveal { _ = crypto_hash_sha512_update(&state, $0.octets, UInt64($0.count)) }
            }
            _ = crypto_hash_sha512_final(&state, out.octets)
        }
    }
}
