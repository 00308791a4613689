import PushModel

/// Where a server of the operator's own is reached: `https://`, or `http://` on this machine alone, because
/// nothing else keeps what is said to it from others.
struct PeerURL: Sendable, Hashable {
    /// Without a slash at its end.
    let text: String
    let host: String
    let port: Int
    let isPlain: Bool

    static let sentence = "An https:// address, or an http:// one on this machine such as "

    /// `nil` for other schemes, with credentials, a query or a fragment, and for `http` to other machines.
    init?(_ text: String) {
        let plain = "http://"
        isPlain = text.hasPrefix(plain)
        let rest = text.dropFirst(plain.count)
        guard let url = HTTPSURL(isPlain ? "https://" + rest : text), !url.target.contains("?"),
            !isPlain || isLoopbackHost(url.host)
        else { return nil }
        var end = text[...]
        while end.hasSuffix("/") { end = end.dropLast() }
        self.text = String(end)
        host = url.host
        let authority = rest.prefix { $0 != "/" }
        let namesPort = !authority.hasSuffix("]") && authority.contains(":")
        port = isPlain && !namesPort ? 80 : url.port
    }
}
