import PushModel

/// One element of `X-Forwarded-For`, as proxies write it.
///
/// The field has no specification. nginx, Caddy and HAProxy write an address; Azure's gateways, IIS and some
/// others add the client's port; some quote an element or put an IPv6 address into brackets, as RFC 7239 §6
/// has it for `Forwarded`.
enum ForwardedAddress {
    /// - Returns: `nil` for what names no address: `unknown`, an obfuscated name, anything else.
    static func read(_ element: Substring) -> IPAddress? {
        if let address = IPAddress(element) { return address }
        let text = unquoted(element)
        if text.utf8.first == 0x5B {
            guard let end = text.firstIndex(of: "]") else { return nil }
            let rest = text[text.index(after: end)...]
            guard rest.isEmpty || isPort(rest) else { return nil }
            return IPAddress(withoutZone(text[text.index(after: text.startIndex)..<end]))
        }
        // With two colons or more it is a bare IPv6 address, which has no port.
        guard let colon = text.firstIndex(of: ":"), colon == text.lastIndex(of: ":") else {
            return IPAddress(withoutZone(text))
        }
        guard isPort(text[colon...]) else { return nil }
        return IPAddress(text[..<colon])
    }

    private static func unquoted(_ text: Substring) -> Substring {
        guard text.utf8.count >= 2, text.utf8.first == 0x22, text.utf8.last == 0x22 else { return text }
        return text.dropFirst().dropLast()
    }

    /// An IPv6 address's interface means something on the proxy alone.
    private static func withoutZone(_ text: Substring) -> Substring {
        text.firstIndex(of: "%").map { text[..<$0] } ?? text
    }

    /// A colon, and a port of one to five digits or an obfuscated one (RFC 7239 §6).
    private static func isPort(_ text: Substring) -> Bool {
        guard text.utf8.first == 0x3A else { return false }
        let port = text.utf8.dropFirst()
        if port.first == 0x5F { return port.count > 1 }
        return (1...5).contains(port.count) && port.allSatisfy { 0x30...0x39 ~= $0 }
    }
}
