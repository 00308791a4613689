/// Host and port of a URL in the one form that is taken here, so that no two parsers can read two hosts out
/// of it: a DNS name of letters, digits, hyphens and dots, a dotted IPv4 address, or IPv6 in brackets, and
/// perhaps `:port` behind it. No credentials.
package struct URLAuthority: Sendable {
    /// Lower case, without brackets.
    package let host: String
    /// 1 to 65,535; `nil`: none is named.
    package let port: Int?
    /// The host where it is an address itself.
    package let literal: IPAddress?

    /// - Parameter takesUnderscores: names may have them too.
    /// - Returns: `nil` for anything else.
    package init?(_ text: Substring, takesUnderscores: Bool = false) {
        let name: Substring
        let tail: Substring
        if text.first == "[" {
            guard let close = text.firstIndex(of: "]") else { return nil }
            name = text[text.index(after: text.startIndex)..<close]
            tail = text[text.index(after: close)...]
            guard name.contains(":"), let address = IPAddress(name) else { return nil }
            literal = address
        } else {
            name = text.prefix { $0 != ":" }
            tail = text[name.endIndex...]
            literal = IPAddress(name)
            guard literal != nil || Self.isName(name, takesUnderscores) else { return nil }
        }
        host = name.lowercased()
        guard !tail.isEmpty else {
            port = nil
            return
        }
        let digits = tail.dropFirst()
        guard tail.first == ":", (1...5).contains(digits.utf8.count), digits.utf8.allSatisfy(Self.isDigit),
            let port = Int(digits), (1...65535).contains(port)
        else { return nil }
        self.port = port
    }

    /// A name whose last label begins with a letter: `127.1` and `0x7f.1` are addresses to some programs and
    /// names to others.
    private static func isName(_ text: Substring, _ takesUnderscores: Bool) -> Bool {
        guard (1...253).contains(text.utf8.count) else { return false }
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        for label in labels {
            guard (1...63).contains(label.utf8.count), label.first != "-", label.last != "-",
                label.utf8.allSatisfy({
                    isLetter($0) || isDigit($0) || $0 == 0x2D || takesUnderscores && $0 == 0x5F
                })
            else { return false }
        }
        return labels.last?.utf8.first.map(isLetter) ?? false
    }

    private static func isDigit(_ byte: UInt8) -> Bool { 0x30...0x39 ~= byte }
    private static func isLetter(_ byte: UInt8) -> Bool { 0x61...0x7A ~= byte | 0x20 }
}
