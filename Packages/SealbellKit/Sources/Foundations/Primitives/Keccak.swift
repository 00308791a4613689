public import PushModel

/// Keccak-256 with the padding of the original submission, as Ethereum has it: not SHA3-256.
public enum Keccak {
    public static let digestBytes = 32

    /// - Returns: 32 bytes.
    public static func hash256(_ bytes: UnsafeRawBufferPointer) -> [UInt8] { hash256(joining: [bytes]) }
    public static func hash256(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { hash256($0) } }
    public static func hash256(_ secret: Secret) -> [UInt8] { secret.reveal { hash256($0) } }

    /// Hashes several parts as if they were one.
    package static func hash256(joining parts: [UnsafeRawBufferPointer]) -> [UInt8] {
        KeccakSponge.digest(parts, suffix: 0x01, count: digestBytes)
    }
}

/// SHAKE-256 (FIPS 202, §6.2) with 64 bytes of output.
public enum SHAKE256 {
    public static let digestBytes = 64

    /// - Returns: 64 bytes.
    public static func hash64(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        KeccakSponge.digest([bytes], suffix: 0x1F, count: digestBytes)
    }
    public static func hash64(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { hash64($0) } }
    public static func hash64(_ secret: Secret) -> [UInt8] { secret.reveal { hash64($0) } }
}

/// Keccak-f[1600] with a rate of 136 bytes (FIPS 202, §3 and §4). No library at hand has the original
/// padding.
enum KeccakSponge {
    static let rateBytes = 136
    private static let lanes = 25

    /// - Parameter suffix: what the padding begins with. `count`: at most the rate, so that one squeeze will
    /// do.
    static func digest(_ parts: [UnsafeRawBufferPointer], suffix: UInt8, count: Int) -> [UInt8] {
        precondition(count <= rateBytes)
        return withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 2 * lanes) { memory in
            memory.initialize(repeating: 0)
            // What was hashed may be a key, and the state would tell it.
            defer { wipe(UnsafeMutableRawBufferPointer(memory)) }
            let state = UnsafeMutableBufferPointer(rebasing: memory[..<lanes])
            let scratch = UnsafeMutableBufferPointer(rebasing: memory[lanes...])
            var filled = 0
            for part in parts { absorb(part, state, scratch, &filled) }
            mix(suffix, at: filled, into: state)
            mix(0x80, at: rateBytes - 1, into: state)
            permute(state, scratch)
            return (0..<count).map { UInt8(truncatingIfNeeded: state[$0 >> 3] >> UInt64(8 * ($0 & 7))) }
        }
    }

    private static func absorb(
        _ part: UnsafeRawBufferPointer, _ state: UnsafeMutableBufferPointer<UInt64>,
        _ scratch: UnsafeMutableBufferPointer<UInt64>, _ filled: inout Int
    ) {
        var at = 0
        while at < part.count {
            if filled & 7 == 0, at + 8 <= part.count {
                let word = part.loadUnaligned(fromByteOffset: at, as: UInt64.self)
                state[filled >> 3] ^= UInt64(littleEndian: word)
                at += 8
                filled += 8
            } else {
                mix(part[at], at: filled, into: state)
                at += 1
                filled += 1
            }
            if filled == rateBytes {
                permute(state, scratch)
                filled = 0
            }
        }
    }

    @inline(__always)
    private static func mix(_ byte: UInt8, at: Int, into state: UnsafeMutableBufferPointer<UInt64>) {
        state[at >> 3] ^= UInt64(byte) << UInt64(8 * (at & 7))
    }

    /// Twenty-four rounds. `moved` is room for the lanes after ρ and π.
    private static func permute(
        _ state: UnsafeMutableBufferPointer<UInt64>, _ moved: UnsafeMutableBufferPointer<UInt64>
    ) {
        for constant in roundConstants {
            let c0 = state[0] ^ state[5] ^ state[10] ^ state[15] ^ state[20]
            let c1 = state[1] ^ state[6] ^ state[11] ^ state[16] ^ state[21]
            let c2 = state[2] ^ state[7] ^ state[12] ^ state[17] ^ state[22]
            let c3 = state[3] ^ state[8] ^ state[13] ^ state[18] ^ state[23]
            let c4 = state[4] ^ state[9] ^ state[14] ^ state[19] ^ state[24]
            let theta = (
                c4 ^ rotate(c1, 1), c0 ^ rotate(c2, 1), c1 ^ rotate(c3, 1), c2 ^ rotate(c4, 1),
                c3 ^ rotate(c0, 1)
            )
            for y in 0..<5 {
                let row = 5 * y
                moved[places[row]] = rotate(state[row] ^ theta.0, rotations[row])
                moved[places[row + 1]] = rotate(state[row + 1] ^ theta.1, rotations[row + 1])
                moved[places[row + 2]] = rotate(state[row + 2] ^ theta.2, rotations[row + 2])
                moved[places[row + 3]] = rotate(state[row + 3] ^ theta.3, rotations[row + 3])
                moved[places[row + 4]] = rotate(state[row + 4] ^ theta.4, rotations[row + 4])
            }
            for y in 0..<5 {
                let row = 5 * y
                let (b0, b1) = (moved[row], moved[row + 1])
                let (b2, b3, b4) = (moved[row + 2], moved[row + 3], moved[row + 4])
                state[row] = b0 ^ (~b1 & b2)
                state[row + 1] = b1 ^ (~b2 & b3)
                state[row + 2] = b2 ^ (~b3 & b4)
                state[row + 3] = b3 ^ (~b4 & b0)
                state[row + 4] = b4 ^ (~b0 & b1)
            }
            state[0] ^= constant
        }
    }

    @inline(__always)
    private static func rotate(_ lane: UInt64, _ by: UInt64) -> UInt64 {
        by == 0 ? lane : lane &<< by | lane &>> (64 &- by)
    }

    /// ι (§3.2.5): bits of the shift register x⁸ + x⁶ + x⁵ + x⁴ + 1.
    private static let roundConstants: [UInt64] = {
        var register: UInt8 = 1
        return (0..<24).map { _ in
            var constant: UInt64 = 0
            for power in 0..<7 {
                if register & 1 == 1 { constant |= 1 << ((1 << UInt64(power)) - 1) }
                let isHigh = register & 0x80 != 0
                register = register &<< 1 ^ (isHigh ? 0x71 : 0)
            }
            return constant
        }
    }()

    /// ρ (§3.2.2): how far each lane turns, the lane (x, y) standing at x + 5y.
    private static let rotations: [UInt64] = {
        var offsets = [UInt64](repeating: 0, count: lanes)
        var (x, y) = (1, 0)
        for step in 0..<24 {
            offsets[x + 5 * y] = UInt64((step + 1) * (step + 2) / 2 % 64)
            (x, y) = (y, (2 * x + 3 * y) % 5)
        }
        return offsets
    }()

    /// π (§3.2.3): where each lane goes.
    private static let places: [Int] = (0..<lanes).map { lane in
        let (x, y) = (lane % 5, lane / 5)
        return y + 5 * ((2 * x + 3 * y) % 5)
    }
}
