import Clibsodium
import Primitives
package import PushModel

/// The two forms of a public key: Ed25519's point, and the coordinate u that X25519 computes with.
package enum EdwardsPoint {
    /// u of a point (RFC 7748, §4.1).
    ///
    /// - Returns: 32 bytes; `nil` for what is no point of the group, and for one of small order.
    package static func x25519(of key: Ed25519PublicKey) -> Secret? {
        var isPoint = false
        let coordinate = Secret(count: 32) { out in
            isPoint =
                key.bytes.reveal { crypto_sign_ed25519_pk_to_curve25519(out.octets, $0.octets) } == 0
        }
        return isPoint ? coordinate : nil
    }

    /// A point times a scalar, without clamping.
    ///
    /// - Returns: `nil` for what is no point of the group, one of small order, and zero.
    package static func product(_ scalar: Secret, _ key: Ed25519PublicKey) -> Ed25519PublicKey? {
        guard scalar.count == EdwardsScalar.byteCount else { return nil }
        var isPoint = false
        let product = Secret(count: Ed25519PublicKey.keyBytes) { out in
            isPoint =
                scalar.reveal { scalar in
                    key.bytes.reveal {
                        crypto_scalarmult_ed25519_noclamp(out.octets, scalar.octets, $0.octets)
                    }
                } == 0
        }
        return isPoint ? Ed25519PublicKey(product) : nil
    }

    /// The point of sign 0 that belongs to u: y = (u − 1) / (u + 1). Whether there is one on the curve is
    /// not looked at.
    ///
    /// - Returns: 32 bytes; `nil` for another length and for u = −1.
    package static func unsigned(x25519 coordinate: Secret) -> Secret? {
        guard coordinate.count == 32 else { return nil }
        let u = coordinate.reveal { FieldElement($0) }
        let divisor = u.adding(.one)
        guard divisor != .zero else { return nil }
        return u.adding(.minusOne).multiplied(by: divisor.inverted).bytes
    }
}

/// A number modulo 2²⁵⁵ − 19, below it. For public keys alone: the time that a computation takes depends on
/// the numbers.
private struct FieldElement: Equatable {
    /// The least significant first.
    private var limbs: SIMD4<UInt64>

    private static let modulus = SIMD4<UInt64>(0xFFFF_FFFF_FFFF_FFED, .max, .max, 0x7FFF_FFFF_FFFF_FFFF)
    static let zero = FieldElement(limbs: .zero)
    static let one = FieldElement(limbs: SIMD4(1, 0, 0, 0))
    static let minusOne = FieldElement(limbs: modulus &- SIMD4(1, 0, 0, 0))

    private init(limbs: SIMD4<UInt64>) { self.limbs = limbs }

    /// - Parameter bytes: 32, little-endian; the top bit is not part of the number.
    init(_ bytes: UnsafeRawBufferPointer) {
        limbs = SIMD4.zero
        for place in 0..<4 {
            limbs[place] = UInt64(
                littleEndian: bytes.loadUnaligned(fromByteOffset: 8 * place, as: UInt64.self))
        }
        limbs[3] &= Self.modulus[3]
        reduce()
    }

    var bytes: Secret {
        Secret(count: 32) { out in
            for place in 0..<4 {
                out.storeBytes(of: limbs[place].littleEndian, toByteOffset: 8 * place, as: UInt64.self)
            }
        }
    }

    func adding(_ other: FieldElement) -> FieldElement {
        var sum = self
        var carry: UInt64 = 0
        // Both are below 2²⁵⁵: nothing is carried out.
        for place in 0..<4 { (sum.limbs[place], carry) = Self.sum(limbs[place], other.limbs[place], carry) }
        sum.reduce()
        return sum
    }

    func multiplied(by other: FieldElement) -> FieldElement {
        var wide = [UInt64](repeating: 0, count: 8)
        for left in 0..<4 {
            var carry: UInt64 = 0
            for right in 0..<4 {
                let product = limbs[left].multipliedFullWidth(by: other.limbs[right])
                let (low, first) = wide[left + right].addingReportingOverflow(product.low)
                let (sum, second) = low.addingReportingOverflow(carry)
                wide[left + right] = sum
                carry = product.high &+ (first ? 1 : 0) &+ (second ? 1 : 0)
            }
            wide[left + 4] = carry
        }
        // 2²⁵⁶ is 38 here; what is above it after the first step is below 38, and gone after the second.
        var folded = SIMD4(wide[0], wide[1], wide[2], wide[3])
        var above = Self.fold(SIMD4(wide[4], wide[5], wide[6], wide[7]), into: &folded)
        while above != 0 { above = Self.fold(SIMD4(above, 0, 0, 0), into: &folded) }
        var result = FieldElement(limbs: folded)
        result.reduce()
        return result
    }

    /// This number to the power of p − 2 (Fermat); of zero, zero.
    var inverted: FieldElement {
        var result = FieldElement.one
        for bit in (0..<255).reversed() {
            result = result.multiplied(by: result)
            // p − 2 is 255 ones in binary but for the bits 2 and 4.
            if bit != 2 && bit != 4 { result = result.multiplied(by: self) }
        }
        return result
    }

    private mutating func reduce() {
        // 2²⁵⁵ is 19 here.
        let top = limbs[3] >> 63
        limbs[3] &= Self.modulus[3]
        var carry = 19 * top
        for place in 0..<4 { (limbs[place], carry) = Self.sum(limbs[place], 0, carry) }
        while !isBelowModulus {
            var borrow = false
            for place in 0..<4 {
                let (first, one) = limbs[place].subtractingReportingOverflow(Self.modulus[place])
                let (second, two) = first.subtractingReportingOverflow(borrow ? 1 : 0)
                limbs[place] = second
                borrow = one || two
            }
        }
    }

    private var isBelowModulus: Bool {
        for place in (0..<4).reversed() where limbs[place] != Self.modulus[place] {
            return limbs[place] < Self.modulus[place]
        }
        return false
    }

    /// Adds 38 times `high`. - Returns: what is carried out.
    private static func fold(_ high: SIMD4<UInt64>, into low: inout SIMD4<UInt64>) -> UInt64 {
        var carry: UInt64 = 0
        for place in 0..<4 {
            let product = high[place].multipliedFullWidth(by: 38)
            let (first, one) = low[place].addingReportingOverflow(product.low)
            let (second, two) = first.addingReportingOverflow(carry)
            low[place] = second
            carry = product.high &+ (one ? 1 : 0) &+ (two ? 1 : 0)
        }
        return carry
    }

    private static func sum(_ left: UInt64, _ right: UInt64, _ carry: UInt64) -> (UInt64, UInt64) {
        let (first, one) = left.addingReportingOverflow(right)
        let (second, two) = first.addingReportingOverflow(carry)
        return (second, (one ? 1 : 0) + (two ? 1 : 0))
    }
}
