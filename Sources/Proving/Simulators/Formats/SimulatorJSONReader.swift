/// Reads JSON text: `skip` checks the form, `read` also builds a tree.
struct SimulatorJSONReader {
    private let bytes: UnsafeBufferPointer<UInt8>
    private var at = 0

    init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    /// The next byte that is not white space, without consuming it.
    mutating func peek() -> UInt8? {
        while at < bytes.count {
            switch bytes[at] {
            case 0x20, 0x09, 0x0A, 0x0D: at += 1
            default: return bytes[at]
            }
        }
        return nil
    }

    mutating func isAtEnd() -> Bool { peek() == nil }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard peek() == byte else { return false }
        at += 1
        return true
    }

    private mutating func take(_ word: StaticString) -> Bool {
        guard at + word.utf8CodeUnitCount <= bytes.count else { return false }
        for index in 0..<word.utf8CodeUnitCount where bytes[at + index] != word.utf8Start[index] {
            return false
        }
        at += word.utf8CodeUnitCount
        return true
    }

    /// Skips one value; false if it is malformed.
    mutating func skip(depth: Int) -> Bool {
        guard depth < JSONTree.depthLimit, let first = peek() else { return false }
        switch first {
        case UInt8(ascii: "{"):
            return elements(close: UInt8(ascii: "}")) { reader in
                reader.skipString() && reader.take(UInt8(ascii: ":")) && reader.skip(depth: depth + 1)
            }
        case UInt8(ascii: "["):
            return elements(close: UInt8(ascii: "]")) { reader in reader.skip(depth: depth + 1) }
        case UInt8(ascii: "\""): return skipString()
        case UInt8(ascii: "t"): return take("true")
        case UInt8(ascii: "f"): return take("false")
        case UInt8(ascii: "n"): return take("null")
        default: return number() != nil
        }
    }

    /// Reads one value; `nil` if it is malformed.
    mutating func read(depth: Int) -> JSONTree? {
        guard depth < JSONTree.depthLimit, let first = peek() else { return nil }
        switch first {
        case UInt8(ascii: "{"):
            var members: [JSONTree.Member] = []
            let isSound = elements(close: UInt8(ascii: "}")) { reader in
                guard let name = reader.readString(), reader.take(UInt8(ascii: ":")),
                    let value = reader.read(depth: depth + 1)
                else { return false }
                members.append(.init(name: name, value: value))
                return true
            }
            return isSound ? .object(members) : nil
        case UInt8(ascii: "["):
            var items: [JSONTree] = []
            let isSound = elements(close: UInt8(ascii: "]")) { reader in
                guard let item = reader.read(depth: depth + 1) else { return false }
                items.append(item)
                return true
            }
            return isSound ? .array(items) : nil
        case UInt8(ascii: "\""): return readString().map { .string($0) }
        case UInt8(ascii: "t"): return take("true") ? .bool(true) : nil
        case UInt8(ascii: "f"): return take("false") ? .bool(false) : nil
        case UInt8(ascii: "n"): return take("null") ? .null : nil
        default: return number().map { .number(String(decoding: bytes[$0], as: UTF8.self)) }
        }
    }

    private mutating func elements(close: UInt8, _ element: (inout SimulatorJSONReader) -> Bool) -> Bool {
        at += 1
        if take(close) { return true }
        repeat { guard element(&self) else { return false } } while take(UInt8(ascii: ","))
        return take(close)
    }

    private mutating func number() -> Range<Int>? {
        let start = at
        _ = take(UInt8(ascii: "-"))
        let whole = digits()
        guard let whole, whole.count == 1 || bytes[whole.lowerBound] != UInt8(ascii: "0") else { return nil }
        if at < bytes.count, bytes[at] == UInt8(ascii: ".") {
            at += 1
            guard digits() != nil else { return nil }
        }
        if at < bytes.count, bytes[at] | 0x20 == UInt8(ascii: "e") {
            at += 1
            if at < bytes.count, bytes[at] == UInt8(ascii: "+") || bytes[at] == UInt8(ascii: "-") { at += 1 }
            guard digits() != nil else { return nil }
        }
        return start..<at
    }

    private mutating func digits() -> Range<Int>? {
        let start = at
        while at < bytes.count, (0x30...0x39).contains(bytes[at]) { at += 1 }
        return at > start ? start..<at : nil
    }

    private mutating func skipString() -> Bool {
        guard take(UInt8(ascii: "\"")) else { return false }
        while at < bytes.count {
            let byte = bytes[at]
            at += 1
            if byte == UInt8(ascii: "\"") { return true }
            if byte < 0x20 { return false }
            guard byte == UInt8(ascii: "\\") else { continue }
            guard at < bytes.count else { return false }
            let escape = bytes[at]
            at += 1
            if escape == UInt8(ascii: "u") {
                guard hex4() != nil else { return false }
            } else if !"\"\\/bfnrt".utf8.contains(escape) {
                return false
            }
        }
        return false
    }

    private mutating func hex4() -> UInt32? {
        guard at + 4 <= bytes.count else { return nil }
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = Character(UnicodeScalar(bytes[at])).hexDigitValue else { return nil }
            value = value << 4 | UInt32(digit)
            at += 1
        }
        return value
    }

    /// A string with its escapes decoded; `nil` if it is malformed or not UTF-8.
    private mutating func readString() -> String? {
        guard peek() == UInt8(ascii: "\"") else { return nil }
        let start = at + 1
        guard skipString() else { return nil }
        let raw = bytes[start..<at - 1]
        guard raw.contains(UInt8(ascii: "\\")) else { return String(validating: raw, as: UTF8.self) }
        let end = at
        defer { at = end }
        at = start
        var out: [UInt8] = []
        while at < end - 1 {
            let byte = bytes[at]
            at += 1
            guard byte == UInt8(ascii: "\\") else {
                out.append(byte)
                continue
            }
            let escape = bytes[at]
            at += 1
            guard escape == UInt8(ascii: "u") else {
                out.append(Self.plain(escape))
                continue
            }
            guard let scalar = scalar() else { return nil }
            out += String(Character(scalar)).utf8
        }
        return String(validating: out, as: UTF8.self)
    }

    private static func plain(_ escape: UInt8) -> UInt8 {
        switch escape {
        case UInt8(ascii: "b"): 8
        case UInt8(ascii: "f"): 12
        case UInt8(ascii: "n"): 10
        case UInt8(ascii: "r"): 13
        case UInt8(ascii: "t"): 9
        default: escape
        }
    }

    /// The code point after `\u`, combined with the low surrogate that must follow a high one.
    private mutating func scalar() -> UnicodeScalar? {
        guard let high = hex4() else { return nil }
        guard (0xD800..<0xDC00).contains(high) else { return UnicodeScalar(high) }
        guard at + 2 <= bytes.count, bytes[at] == UInt8(ascii: "\\"), bytes[at + 1] == UInt8(ascii: "u")
        else { return nil }
        at += 2
        guard let low = hex4(), (0xDC00..<0xE000).contains(low) else { return nil }
        return UnicodeScalar(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00))
    }
}
