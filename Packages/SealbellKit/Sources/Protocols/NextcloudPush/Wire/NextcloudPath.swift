/// The relay's paths (§5.1): `/devices` and `/notifications`, each behind a prefix or none.
package struct NextcloudPath: Sendable, Hashable {
    package enum Endpoint: String, Sendable, Hashable, CaseIterable {
        case devices, notifications
    }

    package let endpoint: Endpoint
    /// The segment before it, which an app's build chose (§5.6): letters, digits and `-_.`, in lower case.
    package let prefix: String?

    /// The path as sent, without query, and without what an instance's own route has before it.
    ///
    /// Several leading slashes count as one: a client joins the proxy's address, which ends in one, and the
    /// endpoint.
    package init?(sent path: String) {
        guard path.utf8.first == 0x2F else { return nil }
        let segments = path.drop { $0 == "/" }.split(separator: "/", omittingEmptySubsequences: false)
        guard (1...1 + NextcloudLimits.prefixSegments).contains(segments.count), let last = segments.last,
            let endpoint = Endpoint(rawValue: String(last))
        else { return nil }
        var prefix: String?
        if segments.count > 1 {
            guard let word = Self.word(segments[0]) else { return nil }
            prefix = word
        }
        self.endpoint = endpoint
        self.prefix = prefix
    }

    private static func word(_ segment: Substring) -> String? {
        let text = segment.lowercased()
        guard (1...NextcloudLimits.prefixBytes).contains(text.utf8.count), text.utf8.allSatisfy(isWordByte)
        else { return nil }
        return text
    }

    private static func isWordByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
            true
        default: false
        }
    }

    package var methods: [String] {
        switch endpoint {
        case .devices: ["POST", "DELETE"]
        case .notifications: ["POST"]
        }
    }

    /// Largest body.
    package var bodyLimitBytes: Int { Self.bodyLimitBytes(endpoint) }

    package static func bodyLimitBytes(_ endpoint: Endpoint) -> Int {
        switch endpoint {
        case .devices: NextcloudLimits.deviceBodyBytes
        case .notifications: NextcloudLimits.notifyBodyBytes
        }
    }
}
