/// An IPv4 or IPv6 address, kept in IPv6 form; IPv4 is `::ffff:a.b.c.d` (RFC 4291 §2.5.5.2).
///
/// It is an address of a person or a server: not `LogSafe`, and its description shows nothing.
package struct IPAddress: Sendable, Hashable, CustomStringConvertible {
    package let high: UInt64
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    package init(v4 word: UInt32) { self.init(high: 0, low: 0xFFFF_0000_0000 | UInt64(word)) }

    /// Reads four decimal numbers with dots, or IPv6 text (RFC 4291 §2.2) without zone and brackets.
    ///
    /// Octal, hexadecimal and shortened IPv4 forms are refused: programs disagree on what they mean.
    package init?(_ text: some StringProtocol) {
        if text.utf8.contains(UInt8(ascii: ":")) {
            guard let words = Self.words(text) else { return nil }
            self.init(
                high: words[0..<4].reduce(0) { $0 << 16 | UInt64($1) },
                low: words[4..<8].reduce(0) { $0 << 16 | UInt64($1) })
        } else {
            guard let word = Self.dotted(text) else { return nil }
            self.init(v4: word)
        }
    }

    package var description: String { "‹address›" }

    /// The IPv4 word of a mapped address; `nil` for IPv6.
    package var v4: UInt32? {
        high == 0 && low >> 32 == 0xFFFF ? UInt32(truncatingIfNeeded: low) : nil
    }

    package var isLoopback: Bool { v4.map { $0 >> 24 == 127 } ?? (high == 0 && low == 1) }

    /// Whether the address is one of the public Internet (IANA special-purpose registries, RFC 6890).
    ///
    /// IPv6 counts only inside 2000::/3, without protocol assignments (Teredo among them), documentation and
    /// 6to4, which carries any IPv4 address. NAT64 and mapped forms of private addresses are refused too.
    package var isGlobal: Bool {
        guard let word = v4 else {
            return high >> 61 == 1
                && !(high >> 41 == 0x2001_0000 >> 9)  // 2001::/23
                && high >> 32 != 0x2001_0DB8  // documentation
                && high >> 48 != 0x2002  // 6to4
                && high >> 44 != 0x3FFF0  // documentation, RFC 9637
        }
        return !Self.specialBlocks.contains { word >> (32 - $0.bits) == $0.base >> (32 - $0.bits) }
    }

    /// The text that a resolver or a connecting socket wants.
    package var text: String {
        if let word = v4 {
            return "\(word >> 24).\(word >> 16 & 255).\(word >> 8 & 255).\(word & 255)"
        }
        let words = [high, low].flatMap { half in
            [48, 32, 16, 0].map { String(half >> $0 & 0xFFFF, radix: 16) }
        }
        return words.joined(separator: ":")
    }

    /// Blocks of IPv4 that are not globally routable; the last two hold multicast and everything above.
    private static let specialBlocks: [(base: UInt32, bits: UInt32)] = [
        (0x0000_0000, 8), (0x0A00_0000, 8), (0x6440_0000, 10), (0x7F00_0000, 8), (0xA9FE_0000, 16),
        (0xAC10_0000, 12), (0xC000_0000, 24), (0xC000_0200, 24), (0xC058_6300, 24), (0xC0A8_0000, 16),
        (0xC612_0000, 15), (0xC633_6400, 24), (0xCB00_7100, 24), (0xE000_0000, 4), (0xF000_0000, 4)
    ]

    private static func dotted(_ text: some StringProtocol) -> UInt32? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var word: UInt32 = 0
        for part in parts {
            guard (1...3).contains(part.utf8.count), part.utf8.allSatisfy({ 0x30...0x39 ~= $0 }),
                part.utf8.count == 1 || part.utf8.first != 0x30, let number = UInt8(part)
            else { return nil }
            word = word << 8 | UInt32(number)
        }
        return word
    }

    /// The eight words of IPv6 text.
    private static func words(_ text: some StringProtocol) -> [UInt16]? {
        guard text.utf8.count <= 45 else { return nil }
        let whole = String(text)
        guard let gap = doubleColon(whole) else {
            guard let words = group(whole[...], mayEndDotted: true), words.count == 8 else { return nil }
            return words
        }
        let after = whole.utf8.index(gap, offsetBy: 2)
        guard let left = group(whole[..<gap], mayEndDotted: false),
            let right = group(whole[after...], mayEndDotted: true),
            left.count + right.count <= 7
        else { return nil }
        return left + Array(repeating: 0, count: 8 - left.count - right.count) + right
    }

    private static func doubleColon(_ text: String) -> String.Index? {
        var previous: String.Index?
        for index in text.utf8.indices {
            guard text.utf8[index] == UInt8(ascii: ":") else {
                previous = nil
                continue
            }
            if let previous { return previous }
            previous = index
        }
        return nil
    }

    /// The words of colon-separated text; the last part of an address may be IPv4.
    private static func group(_ text: Substring, mayEndDotted: Bool) -> [UInt16]? {
        if text.isEmpty { return [] }
        var words: [UInt16] = []
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if mayEndDotted, index == parts.count - 1, part.utf8.contains(UInt8(ascii: ".")) {
                guard let word = dotted(part) else { return nil }
                words += [UInt16(word >> 16), UInt16(word & 0xFFFF)]
            } else {
                guard (1...4).contains(part.utf8.count), part.utf8.allSatisfy(isHex),
                    let word = UInt16(part, radix: 16)
                else { return nil }
                words.append(word)
            }
        }
        return words
    }

    private static func isHex(_ byte: UInt8) -> Bool {
        0x30...0x39 ~= byte || 0x61...0x66 ~= byte || 0x41...0x46 ~= byte
    }
}

/// Addresses that share their first bits: `10.0.0.0/8`, `fd00::/8`, or one address alone.
package struct AddressBlock: Sendable, Hashable {
    package let base: IPAddress
    /// Leading bits that count, in IPv6 form: IPv4's /8 is 104 here.
    package let bits: Int

    package init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard let first = parts.first, let address = IPAddress(first), parts.count <= 2 else { return nil }
        var length = 128
        if parts.count == 2 {
            let widest = address.v4 == nil ? 128 : 32
            guard parts[1].utf8.allSatisfy({ 0x30...0x39 ~= $0 }), let given = Int(parts[1]),
                (0...widest).contains(given)
            else { return nil }
            length = 128 - widest + given
        }
        base = address
        bits = length
    }

    package func contains(_ address: IPAddress) -> Bool {
        let top = min(bits, 64)
        let rest = bits - top
        return Self.same(base.high, address.high, top) && Self.same(base.low, address.low, rest)
    }

    private static func same(_ left: UInt64, _ right: UInt64, _ bits: Int) -> Bool {
        bits == 0 || (left ^ right) >> UInt64(64 - bits) == 0
    }
}
