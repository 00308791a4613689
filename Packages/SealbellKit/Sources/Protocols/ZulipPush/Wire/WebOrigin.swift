/// The origin of a realm's URL: scheme, host and port (RFC 6454 §4), by which accounts are matched (§7).
struct WebOrigin: Sendable, Hashable {
    private let scheme: String
    private let host: String
    private let port: String

    /// `nil` for anything but an http or https URL with a host and without user part.
    init?(_ url: String) {
        guard let colon = url.range(of: "://") else { return nil }
        let scheme = url[..<colon.lowerBound].lowercased()
        guard scheme == "https" || scheme == "http" else { return nil }
        let authority = url[colon.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        guard !authority.isEmpty, !authority.contains("@"), !authority.contains(" ") else { return nil }
        self.scheme = scheme
        let usual = scheme == "https" ? "443" : "80"
        // In `[…]:port` the last colon counts; inside the brackets there is no port.
        if let last = authority.lastIndex(of: ":"), !authority[last...].contains("]") {
            host = authority[..<last].lowercased()
            let given = String(authority[authority.index(after: last)...])
            port = given.isEmpty ? usual : given
        } else {
            host = authority.lowercased()
            port = usual
        }
        guard !host.isEmpty else { return nil }
    }
}

extension String {
    /// Finds a short text, without Foundation.
    fileprivate func range(of text: String) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
            start = index(after: start)
        }
        return nil
    }
}
