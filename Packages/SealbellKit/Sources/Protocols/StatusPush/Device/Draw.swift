package import PushModel
package import Secp256k1Keys
import WireFormats

/// What both ends draw.
package enum Draw {
    package static func secret(_ count: Int, _ generator: inout some RandomNumberGenerator) -> Secret {
        Secret(count: count) { room in
            for at in 0..<count { room[at] = UInt8.random(in: 0...255, using: &generator) }
        }
    }

    package static func bytes(_ count: Int, _ generator: inout some RandomNumberGenerator) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }

    /// A random UUID (RFC 9562, version 4) as text.
    package static func uuid(_ generator: inout some RandomNumberGenerator) -> Secret {
        var raw = secret(16, &generator)
        raw = raw.reveal { bytes in
            Secret(count: 16) { room in
                room.copyMemory(from: bytes)
                room[6] = room[6] & 0x0F | 0x40
                room[8] = room[8] & 0x3F | 0x80
            }
        }
        let digits = raw.hexDigits
        return Secret(count: 36) { room in
            digits.reveal { digits in
                var at = 0
                for place in 0..<36 {
                    if place == 8 || place == 13 || place == 18 || place == 23 {
                        room[place] = UInt8(ascii: "-")
                    } else {
                        room[place] = digits[at]
                        at += 1
                    }
                }
            }
        }
    }

    package static func keyPair(_ generator: inout some RandomNumberGenerator) -> Secp256k1KeyPair {
        // A draw fails once in 2^128; four in a row would be a broken generator.
        for _ in 0..<4 {
            if let pair = try? Secp256k1KeyPair(secret: secret(32, &generator)) { return pair }
        }
        preconditionFailure("the source of randomness yields no private key")
    }
}

extension AccessToken {
    /// 36 characters, digits of either case: what is ours has this spelling.
    static func isCanonical(_ text: Secret) -> Bool { text.reveal { UUIDText(anyCase: $0) != nil } }
}
