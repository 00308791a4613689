import Foundation

/// Lines of code that end the process when what they take for granted is not so, as far as their text tells:
/// preconditions, forced unwrapping, reinterpreted memory, and numbers that are made narrower.
///
/// Each has a row in docs/traps.md, which says why no peer, engine or file reaches it.
enum Traps {
    struct Row: Hashable {
        let path: String
        /// A part of the line.
        let text: String
        let proof: String
    }

    private static let words = [
        "precondition", "assert", "unsafeDowncast(", "unsafeBitCast(", "unowned", "Int8(", "Int16(", "Int32(",
        "!"
    ]

    /// Lines of a file, as they stand.
    static func places(in file: SwiftText) -> [(line: Int, text: String)] {
        file.code.enumerated().compactMap { index, code in
            words.contains { code.contains($0) } && isTrap(code) ? (index + 1, file.lines[index]) : nil
        }
    }

    /// - Parameter code: a line without its comments and strings.
    static func isTrap(_ code: String) -> Bool {
        if unwraps(code) { return true }
        // Regular expressions are slow; they look at few lines.
        if code.contains("precondition") || code.contains("assert"),
            code.contains(#/\b(?:precondition|preconditionFailure|assert|assertionFailure)\(/#)
        {
            return true
        }
        if code.contains("unsafe") || code.contains("unowned"),
            code.contains(#/\bunsafe(?:Downcast|BitCast)\(|\bunowned\b/#)
        {
            return true
        }
        guard code.contains("Int8(") || code.contains("Int16(") || code.contains("Int32(") else {
            return false
        }
        // Whose argument says that it fits.
        let fitting =
            #/\b(?:UInt8|UInt16|UInt32|Int8|Int16|Int32)\([^()]*(?:& 0xFF|& 255|& 15|& 63|& 7|% 10)\)/#
        return code.replacing(fitting, with: "").contains(narrowing)
    }

    /// An exclamation mark behind a name or a bracket, and before nothing that it could belong to.
    private static func unwraps(_ code: String) -> Bool {
        let bytes = Array(code.utf8)
        func isWord(_ byte: UInt8) -> Bool {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x5F, 0x61...0x7A: true
            default: false
            }
        }
        return bytes.indices.contains { at in
            guard bytes[at] == UInt8(ascii: "!"), at > 0 else { return false }
            let before = bytes[at - 1]
            guard isWord(before) || before == UInt8(ascii: ")") || before == UInt8(ascii: "]") else {
                return false
            }
            guard at + 1 < bytes.count else { return true }
            let next = bytes[at + 1]
            return !isWord(next) && next != UInt8(ascii: "=") && next != UInt8(ascii: "(")
        }
    }

    /// A name in capitals is a constant of a C library; a label says how it is made to fit.
    private static var narrowing: Regex<Substring> {
        #/
        \b(?:UInt8|UInt16|UInt32|Int8|Int16|Int32)\(
        (?!truncatingIfNeeded:|exactly:|clamping:|bigEndian:|littleEndian:|ascii:|bitPattern:|\)|0x|\d|[A-Z_]{3,})
        /#
    }

    static func rows(_ page: String) -> [Row] {
        page.split(separator: "\n").compactMap { line in
            line.wholeMatch(of: #/\| `((?:Packages/\w+/)?Sources/[^`]+)` \| `([^`]+)` \| (.+) \|/#).map {
                Row(path: String($0.1), text: String($0.2), proof: String($0.3))
            }
        }
    }
}
