import WireFormats

/// What the heads of real requests say.
enum ContentType {
    /// Whether a body is JSON; anything else is read as a form, as deployed proxies read it.
    static func isJSON(_ field: String?) -> Bool {
        guard let field else { return false }
        let type = field.utf8.prefix { $0 != 0x3B && $0 != 0x20 }
        return String(type)?.lowercased() == "application/json"
    }
}

/// What a `User-Agent` tells of the app that registers (§3.2, §5.6).
package struct ClientHint: Sendable, Hashable {
    /// Products that it names, in lower case without versions: `nextcloud-talk`. At most ``most``.
    package let products: [String]
    /// It names an iOS app, and that without `(Strict VoIP)`: a build that wants no VoIP push of ours.
    package let isAlertOnly: Bool

    /// More than any real one names.
    private static let most = 8

    package static let none = ClientHint(userAgent: nil)

    package init(userAgent: String?) {
        guard let userAgent, userAgent.utf8.count <= NextcloudLimits.userAgentBytes else {
            products = []
            isAlertOnly = false
            return
        }
        let text = userAgent.lowercased()
        var depth = 0
        let outside = text.filter { letter in
            if letter == "(" { depth += 1 }
            if letter == ")" { depth = max(0, depth - 1) }
            return depth == 0 && letter != ")"
        }
        products = outside.split { $0 == " " || $0 == "\t" }.prefix(Self.most).map { word in
            String(word.prefix { $0 != "/" })
        }
        isAlertOnly = text.contains("(ios)") && !text.contains("(strict voip)")
    }
}
