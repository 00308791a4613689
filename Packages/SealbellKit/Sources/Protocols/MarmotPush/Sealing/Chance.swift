import PushModel
import Secp256k1Keys

/// Values that the device and the origin draw from the caller's generator.
extension RandomNumberGenerator {
    mutating func bytes(_ count: Int) -> [UInt8] {
        var bytes = [UInt8]()
        bytes.reserveCapacity(count + 7)
        while bytes.count < count { withUnsafeBytes(of: next()) { bytes.append(contentsOf: $0) } }
        bytes.removeLast(bytes.count - count)
        return bytes
    }

    /// A key pair for one use.
    mutating func keyPair() -> Secp256k1KeyPair {
        // A draw fails once in 2^128; four failures in a row would mean a broken generator.
        for _ in 0..<4 {
            let scalar = Secret(bytes(Secp256k1KeyPair.secretBytes))
            if let pair = try? Secp256k1KeyPair(secret: scalar) { return pair }
        }
        preconditionFailure("the source of randomness yields no private key")
    }

    /// A span of zero to `limit`, in whole milliseconds.
    mutating func span(upTo limit: Duration) -> Duration {
        .milliseconds(Int64.random(in: 0...limit.wholeMilliseconds, using: &self))
    }
}
