package import PushModel

/// What an operator decides for one instance (docs/configuration.md).
package struct StatusPolicy: Sendable, Hashable {
    /// Where text and deployed servers differ.
    package enum Compatibility: Sendable, Hashable {
        /// Deployed servers where a peer would notice, the text where none can.
        case standard
        /// As deployed servers do, literally.
        case statusGo
    }

    package var compatibility: Compatibility
    /// The app of pushes through FCM; `nil`: the instance has none.
    package var fcmApp: ConfiguredName?
    /// The topic of an iPhone that registered without one; `nil`: no push goes there.
    package var defaultBundle: String?

    package init(
        compatibility: Compatibility = .standard, fcmApp: ConfiguredName? = nil, defaultBundle: String? = nil
    ) {
        self.compatibility = compatibility
        self.fcmApp = fcmApp
        self.defaultBundle = defaultBundle
    }

    var isStatusGo: Bool { compatibility == .statusGo }
}

/// What strangers may ask for within a minute, all together: a key costs nothing, so that none has a share of
/// its own.
package struct StatusAllowances: Sendable {
    /// The first registration of a key costs two topic keys, a tenth of a second of one core.
    package var registrations = Allowance("registrations", perMinute: 1_200)
    package var queries = Allowance("queries", perMinute: 60_000)
    package var requests = Allowance("requests", perMinute: 60_000)

    package init() {}
}
