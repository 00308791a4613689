/// What a reading found in force, value by value, and where each came from: what `config show` shows.
final class ConfigurationRecord {
    struct Entry {
        /// `apps.acme-chat.fallback.title`.
        let path: String
        let value: String
        let source: ConfigurationFault.Source
    }

    private var order: [String] = []
    private var entries: [String: Entry] = [:]

    /// In the order in which they were read.
    var all: [Entry] { order.compactMap { entries[$0] } }

    /// A value that is read twice counts as it was read last.
    func note(_ path: ConfigurationPath, _ value: String, _ source: ConfigurationFault.Source) {
        var value = value
        // Arguments of a program may hold a password.
        if path.segments.last == "command", let end = value.firstIndex(of: ",") {
            value = value[..<end] + ", ‹hidden›]"
        }
        let entry = Entry(path: path.text, value: Self.shown(value), source: source)
        if entries.updateValue(entry, forKey: entry.path) == nil { order.append(entry.path) }
    }

    /// A web address may carry a secret behind its host, as those of webhooks do: only the host is shown.
    private static func shown(_ value: String) -> String {
        for scheme in ["https://", "http://", "wss://", "ws://"] where value.hasPrefix(scheme) {
            let rest = value.dropFirst(scheme.count)
            let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
            let host = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
            let isWhole = host.count == rest.count || rest == host + "/"
            return scheme + host + (isWhole ? "" : "/‹hidden›")
        }
        return value
    }
}
