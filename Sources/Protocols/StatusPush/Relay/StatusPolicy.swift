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

    /// Who sends pushes.
    package enum Delivery: Sendable, Hashable {
        /// The relay's own lanes, which owe them from then on.
        case lanes
        /// A gateway of the operator's, which has the credentials (``GatewayHandover``): nothing is owed.
        case gateway
    }

    package var compatibility: Compatibility
    package var delivery: Delivery
    /// The app of pushes through FCM; `nil`: the instance has none.
    package var fcmApp: ConfiguredName?
    /// The topic of an iPhone that registered without one; `nil`: no push goes there.
    package var defaultBundle: String?
    /// Topics of iPhones whose pushes a gateway is given; Android's are then given to it only with
    /// ``fcmApp``. `nil`: it is given all, and reaches what its own credentials are for.
    package var gatewayTopics: Set<String>?

    package init(
        compatibility: Compatibility = .standard, delivery: Delivery = .lanes, fcmApp: ConfiguredName? = nil,
        defaultBundle: String? = nil, gatewayTopics: Set<String>? = nil
    ) {
        self.compatibility = compatibility
        self.delivery = delivery
        self.fcmApp = fcmApp
        self.defaultBundle = defaultBundle
        self.gatewayTopics = gatewayTopics
    }

    var isStatusGo: Bool { compatibility == .statusGo }
}

/// What strangers may ask for within a minute, all together: a key costs nothing, so that none has a share of
/// its own.
package struct StatusAllowances: Sendable {
    /// The first registration of a key costs two topic keys, some 15 ms of one core as measured.
    package let registrations: Allowance
    package let queries: Allowance
    package let requests: Allowance

    package static let registrationsPerMinute = 1_200
    package static let queriesPerMinute = 60_000
    package static let requestsPerMinute = 60_000

    package init(
        registrations: Int = Self.registrationsPerMinute, queries: Int = Self.queriesPerMinute,
        requests: Int = Self.requestsPerMinute
    ) {
        self.registrations = Allowance("registrations", perMinute: registrations)
        self.queries = Allowance("queries", perMinute: queries)
        self.requests = Allowance("requests", perMinute: requests)
    }
}
