import PushModel
import WireFormats

/// A relay's public key, as `sealbell keys new` prints it and `public_keys` of a sandbox's `run.json` has it.
///
/// Which form it is follows from its length: 44 characters of Base64 (Zulip), 64 hex digits (Session,
/// Marmot), 66, 128 or 130 hex digits of a point (Status); hex digits of either case, with or without `0x`.
public struct RelayKey: Sendable, Hashable {
    /// The key's one spelling: canonical Base64 where it was Base64; else small hex digits without `0x`, of a
    /// point always the compressed form's 66 or the uncompressed one's 130.
    public let text: String
    /// 32 bytes; of a point 33 (02 or 03 before them) or 65 (04 before them).
    package let bytes: [UInt8]

    /// Reads a key. Whether it is a point of its curve, and one that can be sealed to, the `Setup` of each
    /// protocol says.
    ///
    /// - Parameter text: 44 to 132 characters; see above.
    /// - Throws: `.malformedKey` for any other length, digits that are none, and a first byte that is none of
    ///   a point.
    public init(text: some StringProtocol) throws(DeviceError) {
        if text.utf8.count == Self.base64Characters {
            guard let bytes = try? Base64.decode(Array(text.utf8)), bytes.count == 32 else {
                throw DeviceError(.malformedKey)  // No canonical Base64, whatever is wrong with it.
            }
            (self.bytes, self.text) = (bytes, String(text))
            return
        }
        let utf8 = Array(text.utf8)
        let isMarked = utf8.starts(with: [0x30, 0x78]) || utf8.starts(with: [0x30, 0x58])
        let digits = isMarked ? utf8[2...] : utf8[...]
        // What has other digits is no key, whatever is wrong with it.
        guard Self.hexDigits.contains(digits.count), let bytes = try? Hex.decode(digits),
            let key = Self.checked(bytes)
        else { throw DeviceError(.malformedKey) }
        (self.bytes, self.text) = (key, Hex.encode(key))
    }

    private static let base64Characters = 44
    private static let hexDigits: Set<Int> = [64, 66, 128, 130]

    /// A point's 64 bytes without the byte before them get it.
    private static func checked(_ bytes: [UInt8]) -> [UInt8]? {
        switch (bytes.count, bytes.first) {
        case (32, _): bytes
        case (33, 2), (33, 3), (65, 4): bytes
        case (64, _): [4] + bytes
        default: nil
        }
    }

    /// Two spellings of the same bytes are one key.
    public static func == (left: Self, right: Self) -> Bool { left.bytes == right.bytes }

    /// Of the bytes alone.
    public func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}
