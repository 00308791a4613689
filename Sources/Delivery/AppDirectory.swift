package import PushModel

/// How an app's APNs environment is known (docs/configuration.md).
package enum EnvironmentPolicy: Sendable, Hashable {
    case fixed(Environment)
    /// Production first; on `BadDeviceToken` for an address never accepted, sandbox once.
    case learn
}

/// Which bundle ids an app answers for.
package enum BundleSet: Sendable, Hashable {
    case any
    case listed(Set<String>)

    func contains(_ bundle: String) -> Bool {
        switch self {
        case .any: true
        case .listed(let bundles): bundles.contains(bundle)
        }
    }
}

/// Which app, and so which lane, a push belongs to.
package struct AppDirectory: Sendable {
    package struct App: Sendable {
        package let name: ConfiguredName
        package let bundles: BundleSet?
        package let environment: EnvironmentPolicy
        package let hasFCM: Bool
        /// Whether it has PushKit, so that a VoIP push may go out in its name.
        package let takesVoIP: Bool

        /// `bundles` is `nil` for an app without APNs credentials.
        package init(
            name: ConfiguredName, bundles: BundleSet?, environment: EnvironmentPolicy, hasFCM: Bool,
            takesVoIP: Bool = true
        ) {
            self.name = name
            self.bundles = bundles
            self.environment = environment
            self.hasFCM = hasFCM
            self.takesVoIP = takesVoIP
        }
    }

    package struct Instance: Sendable {
        package let name: ConfiguredName
        /// In the order of the configuration; the first that claims a bundle has it.
        package let apps: [App]
        package let fcmApp: ConfiguredName?

        package init(name: ConfiguredName, apps: [App], fcmApp: ConfiguredName?) {
            self.name = name
            self.apps = apps
            self.fcmApp = fcmApp
        }

        fileprivate func app(for bundle: String) -> App? {
            apps.first { $0.bundles?.contains(bundle) ?? false }
        }
    }

    enum Route: Equatable {
        case lane(LaneName)
        /// The environment must be looked up for this address.
        case learn(ConfiguredName)
    }

    private let instances: [ConfiguredName: Instance]
    private let learners: Set<ConfiguredName>

    package init(_ instances: [Instance]) {
        self.instances = Dictionary(instances.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        learners = Set(instances.flatMap(\.apps).filter { $0.environment == .learn }.map(\.name))
    }

    var names: Set<ConfiguredName> { Set(instances.keys) }

    /// `nil` when no app of the instance serves the target, or its app takes no such push: it is dropped and
    /// counted.
    func route(_ message: ProviderMessage, of instance: ConfiguredName) -> Route? {
        guard let instance = instances[instance] else { return nil }
        switch message {
        case .apns(let message):
            guard let app = instance.app(for: message.bundle) ?? instance.app(for: message.app) else {
                return nil
            }
            // Apple answers a VoIP push to an app without PushKit as a fault of the topic, again for each.
            guard app.takesVoIP || !message.isVoIP else { return nil }
            switch app.environment {
            case .fixed(let environment):
                return .lane(LaneName(app: app.name, service: .apns, environment: environment))
            case .learn: return .learn(app.name)
            }
        case .fcm:
            guard let name = instance.fcmApp, instance.apps.contains(where: { $0.name == name && $0.hasFCM })
            else {
                return nil
            }
            return .lane(LaneName(app: name, service: .fcm, environment: .production))
        }
    }

    func learns(_ app: ConfiguredName) -> Bool { learners.contains(app) }
}
