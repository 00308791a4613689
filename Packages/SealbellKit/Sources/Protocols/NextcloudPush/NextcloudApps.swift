package import PushModel

/// An app of an instance, as far as this protocol must know it.
package struct NextcloudApp: Sendable, Hashable {
    package let name: ConfiguredName
    /// Its bundle id for APNs, without suffix; `nil`: it has no APNs.
    package let bundle: String?
    /// Whether it has PushKit.
    package let hasVoIP: Bool
    package let hasFCM: Bool
    /// What a device shows that cannot open what arrived: an `aps` object as JSON with an `alert` and
    /// `mutable-content` 1. `nil`: ``NextcloudApps/standardAps``.
    package let aps: [UInt8]?

    package init(
        name: ConfiguredName, bundle: String?, hasVoIP: Bool = false, hasFCM: Bool, aps: [UInt8]? = nil
    ) {
        self.name = name
        self.bundle = bundle
        self.hasVoIP = hasVoIP
        self.hasFCM = hasFCM
        self.aps = aps
    }
}

/// Which app a device belongs to. Nothing in a registration names it (§5.6).
package struct NextcloudApps: Sendable {
    /// The keys into translations that deployed apps have (§5.7).
    package static let standardAps = Array(
        (#"{"mutable-content":1,"alert":{"title-loc-key":"NEW_NOTIFICATION","loc-key":"NEW_NOTIFICATION"},"#
            + #""sound":"default"}"#).utf8)

    package let apps: [NextcloudApp]
    private let byName: [String: Int]
    private let clients: [String: Int]

    /// - Parameter apps: of the instance, in the order of the configuration, each name once.
    /// - Parameter clients: words, and whose app they are: a product that a `User-Agent` names
    ///   (`nextcloud-talk`, `nextcloud-ios`, `nextcloud-android`), or a segment of the proxy's path. The name
    ///   of an app is such a word too.
    package init(_ apps: [NextcloudApp], clients: [String: ConfiguredName] = [:]) {
        self.apps = apps
        let byName = Dictionary(
            apps.enumerated().map { ($1.name.text, $0) }, uniquingKeysWith: { first, _ in first })
        self.byName = byName
        self.clients = Dictionary(
            clients.compactMap { word, app in byName[app.text].map { (word.lowercased(), $0) } },
            uniquingKeysWith: { first, _ in first })
    }

    package subscript(_ name: ConfiguredName) -> NextcloudApp? { byName[name.text].map { apps[$0] } }

    /// Whether a client names an app.
    func knows(_ client: ClientHint) -> Bool { index(client) != nil }

    private func index(_ client: ClientHint) -> Int? {
        client.products.lazy.compactMap { clients[$0] }.first
    }

    /// The app of a device: by the path, else by the `User-Agent`, else the only one whose push services fit
    /// the token.
    ///
    /// - Throws: `.unknownPath` for a prefix that means no app; `.noAppForDevice`.
    package func app(
        prefix: String?, client: ClientHint, for tokens: PushTokens
    ) throws(NextcloudError) -> NextcloudApp {
        if let prefix {
            guard let index = clients[prefix] ?? byName[prefix] else { throw NextcloudError(.unknownPath) }
            return try fitting(apps[index], tokens)
        }
        if let index = index(client) {
            return try fitting(apps[index], tokens)
        }
        let candidates = apps.filter { Self.fits($0, tokens) }
        // A pair of tokens is an app's that takes calls, where only one does.
        let callers = candidates.filter(\.hasVoIP)
        if case .apns(_, .some) = tokens, callers.count == 1 { return callers[0] }
        guard candidates.count == 1 else { throw NextcloudError(.noAppForDevice) }
        return candidates[0]
    }

    private func fitting(_ app: NextcloudApp, _ tokens: PushTokens) throws(NextcloudError) -> NextcloudApp {
        guard Self.fits(app, tokens) else { throw NextcloudError(.noAppForDevice) }
        return app
    }

    private static func fits(_ app: NextcloudApp, _ tokens: PushTokens) -> Bool {
        switch tokens {
        case .apns: app.bundle != nil
        case .fcm: app.hasFCM
        }
    }
}
