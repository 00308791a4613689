package import PushModel

/// What an operator decides for one instance (docs/configuration.md).
package struct StatusPolicy: Sendable, Hashable {
    /// What to do where specification and deployed servers differ, by the configuration's words.
    package enum Compatibility: String, Sendable, Hashable, CaseIterable {
        /// As deployed servers do where a peer would notice; as the specification says where no peer can.
        case standard = "seed"
        /// Exactly as deployed servers do.
        case statusGo = "status-go"
    }

    /// Who sends pushes.
    package enum Delivery: Sendable, Hashable {
        /// The relay's own lanes, which then owe them.
        case lanes
        /// The operator's own gateway, which has the credentials (``GatewayHandover``): nothing is owed.
        case gateway
    }

    package var compatibility: Compatibility
    package var delivery: Delivery
    /// The app of pushes through FCM; `nil`: the instance has none.
    package var fcmApp: ConfiguredName?
    /// The topic for an iPhone that registered without one; `nil`: no push is sent to it.
    package var defaultBundle: String?
    /// The iPhone topics that are served; Android devices are then served only with ``fcmApp``. Other
    /// registrations are refused, because each of their pushes would fail. `nil`: all are accepted, because
    /// only the gateway knows which apps its credentials reach.
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

    /// Whether pushes can be sent to devices of that kind, for any app.
    func serves(_ kind: PushNotificationRegistration.TokenType) -> Bool {
        switch kind {
        case .apn: servedTopics.map { !$0.isEmpty } ?? true
        case .firebase: servedTopics == nil || fcmApp != nil
        default: servedTopics == nil
        }
    }

    /// Whether a push can be sent to such a device.
    func serves(_ registration: PushNotificationRegistration) -> Bool {
        guard let servedTopics, registration.tokenType == .apn else { return serves(registration.tokenType) }
        return StatusPayload.bundle(registration, self).map(servedTopics.contains) ?? false
    }
}

/// What strangers may ask for in a minute.
package struct StatusAllowances: Sendable, Hashable {
    /// First registrations, of all keys together: each costs two topic keys, some 15 ms of one core as
    /// measured. People who are registered here do not use it.
    package let registrations: Allowance
    /// Registrations of each key that open, whatever the result. Enough for an account with many
    /// installations, and for a phone that has lost its version and finds it again by doubling.
    package let ownRegistrations = Allowance("own-registrations", perMinute: Self.ownRegistrationsPerMinute)
    /// Registrations that do not open and are answered anyway, as in deployed servers; the others are not
    /// answered.
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
