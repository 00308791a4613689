package import PushModel

/// A WebSocket URL in the one form that is taken here, so that no two parsers can read two hosts out of it.
///
/// `ws://host[:port][/path][?query]` or `wss://…` (RFC 6455 §3). No credentials, no fragment, no backslash,
/// no byte outside visible ASCII; the host is a DNS name of letters, digits, hyphens, underscores and dots,
/// a dotted IPv4 address, or IPv6 in brackets.
package struct WebSocketAddress: Sendable, Hashable {
    package static let urlBytes = 2048

    package let isSecure: Bool
    /// Lower case, without brackets.
    package let host: String
    package let port: Int
    /// Path and query, as they stand in the request.
    package let target: String
    /// The host where it is an address itself.
    package let literal: IPAddress?

    /// - Throws: `.malformedURL`.
    package init(_ url: String) throws(WebSocketError) {
        let refused = WebSocketError(.malformedURL)
        guard url.utf8.count <= Self.urlBytes,
            url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x5C && $0 != 0x23 }),
            let mark = url.firstRange(of: "://")
        else { throw refused }
        switch url[..<mark.lowerBound].lowercased() {
        case "ws": isSecure = false
        case "wss": isSecure = true
        default: throw refused
        }
        let rest = url[mark.upperBound...]
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        guard !authority.contains("@") else { throw refused }
        let (name, tail, address) = try Self.host(authority)
        host = name.lowercased()
        literal = address
        port = try Self.port(tail) ?? (isSecure ? 443 : 80)
        let path = rest[authority.endIndex...]
        target = path.isEmpty ? "/" : path.first == "?" ? "/" + path : String(path)
    }

    /// The value of `Host`: the port is named unless it is the scheme's own.
    package var authority: String {
        let name = literal != nil && host.contains(":") ? "[\(host)]" : host
        return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
    }

    /// A Tor onion service: its name means nothing outside Tor.
    package var isOnion: Bool { host.hasSuffix(".onion") }

    /// This machine, by address or by the name that always stands for it (RFC 6761 §6.3).
    package var isLoopback: Bool { literal?.isLoopback ?? (host == "localhost") }

    private static func host(
        _ authority: Substring
    ) throws(WebSocketError) -> (name: Substring, tail: Substring, literal: IPAddress?) {
        let refused = WebSocketError(.malformedURL)
        if authority.first == "[" {
            guard let close = authority.firstIndex(of: "]") else { throw refused }
            let name = authority[authority.index(after: authority.startIndex)..<close]
            guard name.contains(":"), let address = IPAddress(name) else { throw refused }
            return (name, authority[authority.index(after: close)...], address)
        }
        let name = authority.prefix { $0 != ":" }
        let tail = authority[name.endIndex...]
        if let address = IPAddress(name) { return (name, tail, address) }
        guard isName(name) else { throw refused }
        return (name, tail, nil)
    }

    /// A name whose last label begins with a letter: `127.1` and `0x7f.1` are addresses to some programs and
    /// names to others.
    private static func isName(_ text: Substring) -> Bool {
        guard (1...253).contains(text.utf8.count) else { return false }
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        for label in labels {
            guard (1...63).contains(label.utf8.count), label.first != "-", label.last != "-",
                label.utf8.allSatisfy({ isLetter($0) || isDigit($0) || $0 == 0x2D || $0 == 0x5F })
            else { return false }
        }
        return labels.last?.utf8.first.map(isLetter) ?? false
    }

    private static func port(_ tail: Substring) throws(WebSocketError) -> Int? {
        if tail.isEmpty { return nil }
        let digits = tail.dropFirst()
        guard tail.first == ":", (1...5).contains(digits.utf8.count), digits.utf8.allSatisfy(isDigit),
            let port = Int(digits), (1...65535).contains(port)
        else { throw WebSocketError(.malformedURL) }
        return port
    }

    private static func isDigit(_ byte: UInt8) -> Bool { 0x30...0x39 ~= byte }
    private static func isLetter(_ byte: UInt8) -> Bool { 0x61...0x7A ~= byte | 0x20 }
}
