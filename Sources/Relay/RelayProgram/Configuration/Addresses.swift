import PushModel

/// A socket address to listen on: `127.0.0.1:8480`, `[::1]:8480`, `localhost:8480`. Port 0 lets the system
/// choose.
struct BindAddress: Sendable, Hashable, CustomStringConvertible {
    /// IPv4 or IPv6 text without brackets; `localhost` has become `127.0.0.1`.
    let host: String
    let port: Int

    /// `nil` unless it is an IP address (or `localhost`), a colon, and a port of 0 to 65,535.
    init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = decimal(text[text.index(after: colon)...]),
            port <= 65_535
        else { return nil }
        var host = String(text[..<colon])
        if host == "localhost" { host = "127.0.0.1" }
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
            guard host.contains(":"), IPAddress(host) != nil else { return nil }
        } else {
            guard !host.contains(":"), IPAddress(host) != nil else { return nil }
        }
        self.host = host
        self.port = port
    }

    var isLoopback: Bool { IPAddress(host)?.isLoopback ?? false }
    /// 0.0.0.0 or ::, which take every address of the machine.
    var isWildcard: Bool { IPAddress(host) == IPAddress("0.0.0.0") || IPAddress(host) == IPAddress("::") }
    var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Whether both cannot be bound at once.
    func clashes(with other: BindAddress) -> Bool {
        guard port != 0, port == other.port else { return false }
        return host == other.host || isWildcard || other.isWildcard
    }
}

/// An `https://` URL with no user, no fragment. Printable: it holds no secret, for user parts are refused.
struct HTTPSURL: Sendable, Hashable {
    /// As given.
    let text: String
    /// Lower case, without brackets.
    let host: String
    /// 443 unless given.
    let port: Int
    /// From the first slash on, with the query; `/` at least.
    let target: String

    init?(_ text: String) {
        guard text.hasPrefix("https://"), text.utf8.count <= 2048,
            text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), !text.contains("#")
        else { return nil }
        let rest = text.dropFirst("https://".count)
        let slash = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        guard let (host, port) = splitHostPort(rest[..<slash], defaultPort: 443) else { return nil }
        self.text = text
        self.host = host
        self.port = port
        let tail = rest[slash...]
        target = tail.hasPrefix("/") ? String(tail) : "/" + tail
    }
}

/// Scheme, host and port of an HTTPS service; no path but `/`.
struct HTTPSBase: Sendable, Hashable {
    let host: String
    let port: Int

    init?(_ text: String) {
        guard let url = HTTPSURL(text), url.target == "/" else { return nil }
        host = url.host
        port = url.port
    }

    init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// A server of this process; `nil`: it does not listen.
    init?(loopback port: Int?) {
        guard let port else { return nil }
        self.init(host: "127.0.0.1", port: port)
    }

    var text: String { "https://" + (host.contains(":") ? "[\(host)]" : host) + ":\(port)" }

    /// Whether it is an address of this machine.
    var isLoopback: Bool { isLoopbackHost(host) }
}

/// Whether a host is this machine.
func isLoopbackHost(_ host: String) -> Bool {
    host == "localhost" || host == "::1" || IPAddress(host)?.isLoopback ?? false
}

/// An outgoing HTTP proxy (CONNECT): `http://proxy.example.org:3128`. Credentials in the URL are refused.
struct OutgoingProxy: Sendable, Hashable {
    let host: String
    let port: Int

    init?(_ text: String) {
        guard text.hasPrefix("http://"), text.utf8.count <= 2048 else { return nil }
        var rest = text.dropFirst("http://".count)
        if rest.hasSuffix("/") { rest = rest.dropLast() }
        guard let (host, port) = splitHostPort(rest, defaultPort: 3128) else { return nil }
        self.host = host
        self.port = port
    }
}

/// A SOCKS5 proxy: `socks5://127.0.0.1:9050`. Credentials in the URL are refused: each connection has its
/// own.
struct SOCKSAddress: Sendable, Hashable {
    let host: String
    let port: Int

    init?(_ text: String) {
        guard text.hasPrefix("socks5://"), text.utf8.count <= 2048 else { return nil }
        var rest = text.dropFirst("socks5://".count)
        if rest.hasSuffix("/") { rest = rest.dropLast() }
        guard let (host, port) = splitHostPort(rest, defaultPort: 1080) else { return nil }
        self.host = host
        self.port = port
    }
}

/// Plain digits only; at most 15 of them.
func decimal(_ text: Substring) -> Int? {
    guard (1...15).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
        return nil
    }
    return Int(text)
}

/// Splits `host`, `host:port`, `[v6]:port`. `nil` for anything that is neither an address nor a host name.
private func splitHostPort(_ authority: Substring, defaultPort: Int) -> (host: String, port: Int)? {
    var host = authority
    var port = defaultPort
    let bracketed = authority.hasPrefix("[")
    if let colon = authority.lastIndex(of: ":"), !authority.hasSuffix("]") {
        guard let given = decimal(authority[authority.index(after: colon)...]), (1...65_535).contains(given)
        else { return nil }
        port = given
        host = authority[..<colon]
    }
    if bracketed {
        guard host.hasSuffix("]") else { return nil }
        let inner = String(host.dropFirst().dropLast())
        return inner.contains(":") && IPAddress(inner) != nil ? (inner, port) : nil
    }
    return isHostName(host) ? (host.lowercased(), port) : nil
}

/// Letters, digits, hyphens and dots, as in DNS; 1 to 253 bytes, labels of 1 to 63.
func isHostName(_ text: some StringProtocol) -> Bool {
    guard (1...253).contains(text.utf8.count) else { return false }
    return text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
        (1...63).contains(label.utf8.count) && !label.hasPrefix("-") && !label.hasSuffix("-")
            && label.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
                    || $0 == 0x2D
            }
    }
}
