package import PushModel

/// A URL in the one form that is taken here, so that no two parsers can read two hosts out of it.
///
/// `https://host[:port][/path][?query]`, or `http://` where that is asked for. No credentials, no fragment,
/// no backslash, no byte outside visible ASCII; the host is a DNS name of letters, digits, hyphens and dots,
/// a dotted IPv4 address, or IPv6 in brackets.
package struct WebAddress: Sendable, Hashable {
    /// The URL with its host in lower case: the client under us must find the host as `host` spells it, or
    /// the judged address would not be the one it connects to.
    package let url: String
    /// Lower case, without brackets.
    package let host: String
    package let port: Int
    /// The host where it is an address itself.
    package let literal: IPAddress?

    /// - Throws: `.malformedURL`.
    package init(_ url: String) throws(WebError) { try self.init(url, scheme: "https://", port: 443) }

    /// The same with `http://`, of a server on this machine: an address of it, or `localhost`.
    ///
    /// - Throws: `.malformedURL`; `.plainElsewhere` for any other host.
    package init(plain url: String) throws(WebError) {
        try self.init(url, scheme: Self.plain, port: 80)
        guard host == "localhost" || literal?.isLoopback == true else { throw WebError(.plainElsewhere) }
    }

    /// How the URL of a server without TLS begins.
    static let plain = "http://"

    private init(_ url: String, scheme: String, port standard: Int) throws(WebError) {
        guard url.utf8.count <= WebLimits.urlBytes, url.utf8.starts(with: scheme.utf8),
            url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x5C && $0 != 0x23 })
        else { throw WebError(.malformedURL) }
        let rest = url.dropFirst(scheme.utf8.count)
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        guard !authority.contains("@") else { throw WebError(.malformedURL) }
        let (name, tail, address) = try Self.host(authority)
        port = try Self.port(tail) ?? standard
        host = name.lowercased()
        self.url = scheme + authority.lowercased() + rest[authority.endIndex...]
        literal = address
    }

    private static func host(
        _ authority: Substring
    ) throws(WebError) -> (name: Substring, tail: Substring, literal: IPAddress?) {
        if authority.first == "[" {
            guard let close = authority.firstIndex(of: "]") else { throw WebError(.malformedURL) }
            let name = authority[authority.index(after: authority.startIndex)..<close]
            guard let address = IPAddress(name), name.contains(":") else { throw WebError(.malformedURL) }
            return (name, authority[authority.index(after: close)...], address)
        }
        let name = authority.prefix { $0 != ":" }
        let tail = authority[name.endIndex...]
        if let address = IPAddress(name) { return (name, tail, address) }
        guard isName(name) else { throw WebError(.malformedURL) }
        return (name, tail, nil)
    }

    /// A DNS name whose last label begins with a letter: `127.1` and `0x7f.1` are addresses to some programs
    /// and names to others.
    private static func isName(_ text: Substring) -> Bool {
        guard (1...253).contains(text.utf8.count) else { return false }
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        for label in labels {
            guard (1...63).contains(label.utf8.count), label.first != "-", label.last != "-",
                label.utf8.allSatisfy({ isLetter($0) || isDigit($0) || $0 == 0x2D })
            else { return false }
        }
        guard let first = labels.last?.utf8.first else { return false }
        return isLetter(first)
    }

    private static func port(_ tail: Substring) throws(WebError) -> Int? {
        if tail.isEmpty { return nil }
        let digits = tail.dropFirst()
        guard tail.first == ":", (1...5).contains(digits.utf8.count), digits.utf8.allSatisfy(isDigit),
            let port = Int(digits), (1...65535).contains(port)
        else { throw WebError(.malformedURL) }
        return port
    }

    private static func isDigit(_ byte: UInt8) -> Bool { 0x30...0x39 ~= byte }
    private static func isLetter(_ byte: UInt8) -> Bool { 0x61...0x7A ~= byte | 0x20 }
}
