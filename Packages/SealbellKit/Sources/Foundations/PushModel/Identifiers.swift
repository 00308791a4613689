/// A name from our own configuration: 1 to 64 of `a-z 0-9 - _ .`. It may be logged and be a
/// metric label.
package struct ConfiguredName: Sendable, Hashable, Comparable, CustomStringConvertible {
    package let text: String

    /// `nil` when the text has another form.
    package init?(_ text: String) {
        guard (1...64).contains(text.utf8.count), text.utf8.allSatisfy(Self.allows) else { return nil }
        self.text = text
    }

    package var description: String { text }
    package static func < (left: Self, right: Self) -> Bool { left.text < right.text }

    package func _rawHashValue(seed: Int) -> Int {
        var hash = NameHash(seed: seed)
        hash.add(text)
        return hash.value
    }

    private static func allows(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
            true
        default: false
        }
    }
}

/// A hash of names from our own configuration, by a secret of the process: it costs a fifth of the library's
/// own, and tables of lanes and instances are used several times a push. Strangers cannot enter names there.
struct NameHash {
    private var sum: UInt64

    init(seed: Int) { sum = UInt64(bitPattern: Int64(seed)) }

    /// - Parameter name: ASCII, so that equal names have equal bytes.
    mutating func add(_ name: String) {
        let start = sum &+ 1
        sum =
            name.utf8.withContiguousStorageIfAvailable { Self.adding($0, to: start) }
            ?? Self.adding(Array(name.utf8), to: start)
        add(UInt64(name.utf8.count))
    }

    mutating func add(_ number: UInt64) { sum = (sum ^ number) &* Self.factor }

    var value: Int {
        let product = sum.multipliedFullWidth(by: Self.factor)
        return Int(truncatingIfNeeded: product.high ^ product.low)
    }

    private static func adding(_ bytes: some Sequence<UInt8>, to start: UInt64) -> UInt64 {
        let factor = factor
        return bytes.reduce(start) { ($0 ^ UInt64($1)) &* factor }
    }

    /// A secret of the process, odd. Made of the library's own, so that a run whose hashes are fixed, as a
    /// simulation's are (`SWIFT_DETERMINISTIC_HASHING`), has the same order each time.
    fileprivate static let factor: UInt64 = {
        var hasher = Hasher()
        hasher.combine(0x6C61_6E65)
        return UInt64(truncatingIfNeeded: hasher.finalize()) | 1
    }()
}

/// Sixteen bytes that engines know instead of a name.
package struct Digest16: Sendable, Hashable, Comparable {
    package let high: UInt64
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// `nil` unless there are exactly 16 bytes; big-endian.
    package init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        var high: UInt64 = 0
        var low: UInt64 = 0
        for (index, byte) in bytes.enumerated() {
            if index < 8 { high = high << 8 | UInt64(byte) } else { low = low << 8 | UInt64(byte) }
        }
        self.init(high: high, low: low)
    }

    /// The same from raw memory: what engines read rows with, thousands a second.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == 16 else { return nil }
        high = UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
        low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }

    package var bytes: [UInt8] {
        withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { Array($0) }
    }

    package static func < (left: Self, right: Self) -> Bool {
        left.high != right.high ? left.high < right.high : left.low < right.low
    }

    /// Multiplied by a secret of the process instead of the library's own hash, which is four times as dear
    /// and is looked up with some twenty times a push. The bytes are random, or come from a keyed hash
    /// already: so a stranger can choose nothing.
    package func _rawHashValue(seed: Int) -> Int {
        // Test data counts up in one of the two halves.
        let both = low ^ high &* 0x9E37_79B9_7F4A_7C15 ^ UInt64(bitPattern: Int64(seed))
        let product = both.multipliedFullWidth(by: NameHash.factor)
        return Int(truncatingIfNeeded: product.high ^ product.low)
    }
}

/// The name of one owed push: a UUID that begins with the time, minted when the push is accepted.
///
/// Of a push with a row it is version 8 (RFC 9562 §5.8), and another name stands in its requests, so that the
/// id that a push service knows does not lead to the row (``OwedPush/sentAs``). Version 7 (§5.7) are pushes
/// that have no row, and rows of earlier versions: those are sent under it as it is.
package struct PushID: Sendable, Hashable, Comparable {
    package let value: Digest16

    package init(_ value: Digest16) { self.value = value }

    package func _rawHashValue(seed: Int) -> Int { value._rawHashValue(seed: seed) }

    /// 48 bits of `time`, version 7, 74 random bits.
    package init(at time: UnixTime, random first: UInt64, _ second: UInt64) {
        self.init(at: time, version: 7, first, second)
    }

    /// The same in version 8: of a push with a row.
    package init(ofRowAt time: UnixTime, random first: UInt64, _ second: UInt64) {
        self.init(at: time, version: 8, first, second)
    }

    private init(at time: UnixTime, version: UInt8, _ first: UInt64, _ second: UInt64) {
        let stamp = UInt64(bitPattern: time.milliseconds) & 0xFFFF_FFFF_FFFF
        self.init(version: version, left: stamp << 12 | first & 0x0FFF, right: second)
    }

    /// - Parameters:
    ///   - left: what stands before and behind the version; 60 bits of it count.
    ///   - right: what stands behind the variant; 62 bits of it count.
    package init(version: UInt8, left: UInt64, right: UInt64) {
        let form = UInt64(version & 0xF) << 12
        value = Digest16(
            high: (left >> 12 & 0xFFFF_FFFF_FFFF) << 16 | form | left & 0x0FFF,
            low: 0x8000_0000_0000_0000 | right & 0x3FFF_FFFF_FFFF_FFFF)
    }

    package var version: UInt8 { UInt8(truncatingIfNeeded: value.high >> 12 & 0xF) }
    /// The 122 bits that the form of a UUID leaves free.
    package var free: (left: UInt64, right: UInt64) {
        ((value.high >> 16) << 12 | value.high & 0x0FFF, value.low & 0x3FFF_FFFF_FFFF_FFFF)
    }

    /// When the push was accepted: the stamp of the id.
    package var acceptedAt: UnixTime { UnixTime(milliseconds: Int64(value.high >> 16)) }

    /// Canonical lower case, 8-4-4-4-12.
    package var text: String { UUIDDigits.text(high: value.high, low: value.low) }

    /// Reads the canonical form; `nil` for any other.
    package init?(text: String) {
        var bytes: [UInt8] = []
        var pending: UInt8?
        for (index, character) in text.utf8.enumerated() {
            if index == 8 || index == 13 || index == 18 || index == 23 {
                guard character == UInt8(ascii: "-") else { return nil }
                continue
            }
            guard let digit = Self.digit(character) else { return nil }
            if let first = pending {
                bytes.append(first << 4 | digit)
                pending = nil
            } else {
                pending = digit
            }
        }
        guard text.utf8.count == 36, let value = Digest16(bytes) else { return nil }
        self.value = value
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        default: nil
        }
    }

    package static func < (left: Self, right: Self) -> Bool { left.value < right.value }
}

/// One process of a relay: 128 random bits, made at start.
package struct OwnerID: Sendable, Hashable {
    package let value: Digest16
    package init(_ value: Digest16) { self.value = value }

    /// No process: its rows count as a dead owner's.
    package static let nobody = OwnerID(Digest16(high: 0, low: 0))
}
