/// Where the addresses of an app belong, at one push service.
package enum EnvironmentPolicy: Sendable, Hashable {
    case fixed(Environment)
    /// Acceptances teach it. An address that was never accepted is tried in `first` and, when the answer is
    /// that it may be elsewhere (``Reason/Meaning/mayBeElsewhere``), once in `other`.
    case learned(first: Environment, other: Environment)
}

/// How one app of an instance is set up for one push service.
package protocol ServiceOutlet: Sendable {
    /// The service whose messages it sends.
    static var service: PushService { get }
    var environment: EnvironmentPolicy { get }

    /// Which app sends a message.
    ///
    /// - Parameter apps: those of one instance that have this service, in the order of the configuration.
    /// - Returns: an index of `apps`; `nil` when none of them sends it.
    static func choose(for message: ProviderMessage, among apps: [AppOutlet<Self>]) -> Int?
}

/// An outlet, and whose it is.
package struct AppOutlet<Outlet: ServiceOutlet>: Sendable {
    package let app: ConfiguredName
    package let outlet: Outlet

    package init(_ app: ConfiguredName, _ outlet: Outlet) {
        self.app = app
        self.outlet = outlet
    }
}
