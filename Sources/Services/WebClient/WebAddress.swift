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
        guard let place = URLAuthority(authority) else { throw WebError(.malformedURL) }
        (host, literal) = (place.host, place.literal)
        port = place.port ?? standard
        self.url = scheme + authority.lowercased() + rest[authority.endIndex...]
    }
}
