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
        guard let place = URLAuthority(authority, takesUnderscores: true) else { throw refused }
        (host, literal) = (place.host, place.literal)
        port = place.port ?? (isSecure ? 443 : 80)
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
}
