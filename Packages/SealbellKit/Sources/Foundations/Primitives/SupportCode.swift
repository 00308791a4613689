package import PushModel

/// What a person reads to whoever runs the relay, so that this one finds the phone's registration (decision
/// 0144): a hash of the device token and of the day, which leads back to neither token nor phone.
///
/// Day: days since 1970-01-01, UTC. Digest: SHA-256 of `sealbell/support-code/1` ‖ 0 ‖ day (4 bytes,
/// big-endian) ‖ token. Code: the day's last 2 bits ‖ the digest's first 58 bits, as 12 digits of Crockford's
/// base32, with hyphens between each four.
package struct SupportCode: Sendable, Hashable {
    /// 60 bits.
    package let value: UInt64

    /// How many days after its own a code still counts: it is good for 72 hours, and for 96 at most.
    package static let daysGood: UInt32 = 3

    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
    private static let digits = 12
    private static let domain = Array("sealbell/support-code/1\0".utf8)

    /// - Parameter token: as protocols tell it: Apple's in small hex digits, Google's as its own text.
    package init(token: Secret, day: UInt32) {
        let digest = token.reveal { token in
            Self.domain.withUnsafeBytes { domain in
                withUnsafeBytes(of: day.bigEndian) { SHA256.hash(joining: [domain, $0, token]) }
            }
        }
        let head = digest.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        value = UInt64(day % 4) << 58 | head >> 6
    }

    /// Reads what a person has typed: either case, with or without hyphens and spaces; `I` and `L` are read
    /// as 1, `O` as 0.
    ///
    /// - Returns: `nil` for anything else.
    package init?(_ text: String) {
        var value: UInt64 = 0
        var count = 0
        for byte in text.utf8 where byte != UInt8(ascii: "-") && byte != UInt8(ascii: " ") {
            let upper = (0x61...0x7A).contains(byte) ? byte - 0x20 : byte
            let read: UInt8 =
                switch upper {
                case UInt8(ascii: "I"), UInt8(ascii: "L"): UInt8(ascii: "1")
                case UInt8(ascii: "O"): UInt8(ascii: "0")
                default: upper
                }
            guard let digit = Self.alphabet.firstIndex(of: read), count < Self.digits else { return nil }
            value = value << 5 | UInt64(digit)
            count += 1
        }
        guard count == Self.digits else { return nil }
        self.value = value
    }

    /// `7K3M-Q0XD-2HVA`.
    package var text: String {
        let digits = (0..<Self.digits).map { place in
            Self.alphabet[Int(value >> UInt64(5 * (Self.digits - 1 - place)) & 31)]
        }
        return stride(from: 0, to: Self.digits, by: 4)
            .map { String(decoding: digits[$0..<$0 + 4], as: UTF8.self) }.joined(separator: "-")
    }

    /// The day of a moment.
    package static func day(of time: UnixTime) -> UInt32 { UInt32(clamping: time.seconds / 86_400) }

    /// The day that the code is of, if it still counts: among the last four days there is one of its kind.
    package func day(at now: UnixTime) -> UInt32 {
        let today = Self.day(of: now)
        let back = (today &- UInt32(truncatingIfNeeded: value >> 58)) & Self.daysGood
        return today >= back ? today - back : today
    }
}
