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
    /// Topics of iPhones that are served; Android's are then served only with ``fcmApp``. A registration of
    /// others is refused, because each of its pushes would fail. `nil`: all are served, as far as is known
    /// here: a gateway reaches what its own credentials are for.
    package var servedTopics: Set<String>?

    package init(
        compatibility: Compatibility = .standard, delivery: Delivery = .lanes, fcmApp: ConfiguredName? = nil,
        defaultBundle: String? = nil, servedTopics: Set<String>? = nil
    ) {
        self.compatibility = compatibility
        self.delivery = delivery
        self.fcmApp = fcmApp
        self.defaultBundle = defaultBundle
        self.servedTopics = servedTopics
    }

    var isStatusGo: Bool { compatibility == .statusGo }

    /// Whether pushes to devices of that kind have a way, of any app.
    func serves(_ kind: PushNotificationRegistration.TokenType) -> Bool {
        switch kind {
        case .apn: servedTopics.map { !$0.isEmpty } ?? true
        case .firebase: servedTopics == nil || fcmApp != nil
        default: servedTopics == nil
        }
    }

    /// Whether a push to such a device has a way.
    func serves(_ registration: PushNotificationRegistration) -> Bool {
        guard let servedTopics, registration.tokenType == .apn else { return serves(registration.tokenType) }
        return StatusPayload.bundle(registration, self).map(servedTopics.contains) ?? false
    }
}

/// What strangers may ask for within a minute.
package struct StatusAllowances: Sendable {
    /// First registrations, of all keys together: each costs two topic keys, some 15 ms of one core as
    /// measured. Who is registered here does not use it.
    package let registrations: Allowance
    /// Of each key: what opens, whatever comes of it. Enough for an account with many installations, and for
    /// a phone that has lost its version and finds it again by doubling.
    package let ownRegistrations = Allowance("own-registrations", perMinute: Self.ownRegistrationsPerMinute)
    /// Registrations that do not open and are answered all the same, as deployed servers do; the others are
    /// met with silence.
    package let unopened = Allowance("unopened-registrations", perMinute: Self.unopenedPerMinute)
    package let queries: Allowance
    package let requests: Allowance

    package static let registrationsPerMinute = 1_200
    package static let ownRegistrationsPerMinute = 120
    package static let unopenedPerMinute = 60
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
