/// Names of hosts, as certificates carry them.
package enum HostName {
    /// Whether a certificate's DNS name stands for `host` (RFC 6125 §6.4): equal but for case, or a wildcard
    /// for exactly the leftmost label. A wildcard over a whole top-level domain stands for nothing.
    package static func fits(_ host: String, _ pattern: String) -> Bool {
        let host = host.lowercased()
        let pattern = pattern.lowercased()
        guard pattern.hasPrefix("*.") else { return host == pattern }
        guard let dot = host.firstIndex(of: "."), dot != host.startIndex else { return false }
        return host[dot...] == pattern.dropFirst() && pattern.dropFirst(2).contains(".")
    }
}
