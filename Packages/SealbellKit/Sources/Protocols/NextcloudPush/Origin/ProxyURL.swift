import PushModel

/// Which proxies a device may name (§4.1 step 4).
public enum LocalProxies: Sendable, Hashable {
    /// None on this machine or in a private network: a device could make the server call its own neighbours.
    case refused
    /// They too (`allow_local_remote_servers`), over plain HTTP where the name is `localhost` or ends in
    /// `.internal` or `.local`.
    case allowed
}

/// The form of a proxy's URL. What its name resolves to is for whoever connects to look at.
enum ProxyURL {
    static func isAcceptable(_ text: String, local: LocalProxies) -> Bool {
        guard text.utf8.count <= NextcloudLimits.proxyURLBytes,
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x5C }),
            let (scheme, host, hasPath) = parts(text)
        else { return false }
        let isLocal = isLocalName(host) || IPAddress(host).map { !$0.isGlobal } == true
        switch scheme {
        case "https": return !isLocal || local == .allowed
        // A path must follow, as deployed servers have it.
        case "http": return isLocalName(host) && local == .allowed && hasPath
        default: return false
        }
    }

    /// - Returns: the host in lower case, without brackets; `nil` for a text that is no such URL.
    private static func parts(_ text: String) -> (scheme: String, host: String, hasPath: Bool)? {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        var rest = text[colon...]
        guard rest.utf8.starts(with: "://".utf8) else { return nil }
        rest = rest.dropFirst(3)
        let end = rest.utf8.firstIndex { [0x2F, 0x3F, 0x23].contains($0) } ?? rest.endIndex
        let hasPath = end < rest.endIndex && rest.utf8[end] == 0x2F
        var authority = rest[..<end]
        if let at = authority.utf8.lastIndex(of: UInt8(ascii: "@")) {
            authority = authority[authority.utf8.index(after: at)...]
        }
        guard let host = host(of: authority) else { return nil }
        return (String(text[..<colon]), host.lowercased(), hasPath)
    }

    private static func host(of authority: Substring) -> String? {
        if authority.utf8.first == UInt8(ascii: "[") {
            guard let close = authority.utf8.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            let inside = authority[..<close].dropFirst()
            guard inside.utf8.contains(UInt8(ascii: ":")), IPAddress(inside) != nil,
                isPort(authority[close...].dropFirst())
            else { return nil }
            return String(inside)
        }
        let end = authority.utf8.firstIndex(of: UInt8(ascii: ":")) ?? authority.endIndex
        let name = authority[..<end]
        let labels = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard isPort(authority[end...]), name.utf8.count <= 253, labels.allSatisfy(isLabel) else {
            return nil
        }
        return String(name)
    }

    private static func isLabel(_ label: Substring.UTF8View) -> Bool {
        (1...63).contains(label.count) && label.first != 0x2D && label.last != 0x2D
            && label.allSatisfy {
                (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
                    || $0 == 0x2D
            }
    }

    private static func isPort(_ text: Substring) -> Bool {
        text.isEmpty
            || text.utf8.first == UInt8(ascii: ":") && text.utf8.count > 1
                && text.dropFirst().utf8.allSatisfy { (0x30...0x39).contains($0) }
                && UInt16(text.dropFirst()) != nil
    }

    private static func isLocalName(_ host: String) -> Bool {
        host == "localhost" || [".localhost", ".internal", ".local"].contains { host.hasSuffix($0) }
    }
}
