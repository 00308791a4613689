import PushTesting
import Testing
import WireFormats

@testable import NextcloudPush

/// The form decoder that reads eight bytes at a time, beside rules read byte by byte.
@Suite("Nextcloud's form text", .timeLimit(.minutes(30)))
struct FormTextTests {
    /// What a text decodes to, in memory of exactly that room.
    private func decoded(_ text: [UInt8], room: Int? = nil) -> [UInt8]? {
        let room = room ?? text.count
        // Guard bytes behind the room: a word must never be written over its end.
        var out = [UInt8](repeating: 0xA5, count: room + 16)
        let count = text.withUnsafeBytes { text in
            out.withUnsafeMutableBytes { out in
                FormText.decode(text[...], into: UnsafeMutableRawBufferPointer(rebasing: out[..<room]))
            }
        }
        #expect(out[room...].allSatisfy { $0 == 0xA5 })
        return count.map { Array(out[..<$0]) }
    }

    /// The rules of the format, a byte at a time.
    private func expected(_ text: [UInt8]) -> [UInt8]? {
        var out: [UInt8] = []
        var rest = text[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): out.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                let digits = String(decoding: rest.prefix(2), as: UTF8.self)
                guard digits.utf8.count == 2, digits.allSatisfy(\.isHexDigit),
                    let value = UInt8(digits, radix: 16)
                else { return nil }
                out.append(value)
                rest = rest.dropFirst(2)
            default: out.append(byte)
            }
        }
        return out
    }

    private func plain(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(ascii: "a") + UInt8($0 % 26) } }

    @Test("An escape is read at each place of a word, and whatever stands before and behind it")
    func places() {
        for escape in ["%2B", "%2b", "+", "%25", "%00", "%FF", "%5C%2F", "++", "+%20", "%20+"] {
            for before in 0...24 {
                for after in 0...17 {
                    let text = plain(before) + Array(escape.utf8) + plain(after)
                    #expect(decoded(text) == expected(text), "\(escape) between \(before) and \(after)")
                }
            }
        }
    }

    @Test("An escape that is cut off or is none is refused at each place, at the end of the text too")
    func broken() {
        for escape in ["%", "%2", "%2G", "%g2", "%%", "%+1", "% 1", "%2%"] {
            for before in 0...24 {
                for after in [0, 1, 2, 8, 17] {
                    // Behind one that is cut off a hexadecimal digit would complete it.
                    let text = plain(before) + Array(escape.utf8) + [UInt8](repeating: 0x7A, count: after)
                    #expect(decoded(text) == nil, "\(escape) between \(before) and \(after)")
                }
            }
        }
    }

    @Test("Bytes that differ from an escape in one bit stand for themselves, behind an escape too")
    func neighbours() {
        let near: [UInt8] = (0..<8).flatMap { bit -> [UInt8] in [0x25 ^ 1 << bit, 0x2B ^ 1 << bit] }
        for byte in near + [0x00, 0x80, 0xFF] {
            for place in 0..<8 {
                for text in [
                    plain(place) + [byte] + plain(8), plain(place) + [0x2B, byte] + plain(8),
                    plain(place) + Array("%41".utf8) + [byte] + plain(8)
                ] {
                    #expect(decoded(text) == expected(text), "\(byte) at \(place)")
                }
            }
        }
    }

    @Test("What does not fit is refused, and what just fits is read")
    func room() {
        for count in 0...20 {
            for place in 0..<max(1, count) {
                var text = plain(count)
                if count > 0 { text.replaceSubrange(place...place, with: Array("%2F".utf8)) }
                #expect(decoded(text, room: count) == expected(text))
                if count > 0 { #expect(decoded(text, room: count - 1) == nil) }
            }
        }
    }

    @Test("Any text is read as the rules have it")
    func random() {
        var seed = SeededRandom(seed: 25)
        let letters = Array("%+%+2BfF0az%".utf8) + [0x00, 0xA5]
        for _ in 0..<2_000 {
            let text = (0..<Int.random(in: 0...40, using: &seed)).map { _ in
                Bool.random(using: &seed) ? letters.randomElement(using: &seed) ?? 0 : UInt8(ascii: "x")
            }
            #expect(decoded(text) == expected(text), "\(text)")
        }
    }
}
