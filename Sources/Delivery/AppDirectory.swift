package import PushModel

/// Which app, and so which lane, a push belongs to.
package struct AppDirectory: Sendable {
    package struct App: Sendable {
        package let name: ConfiguredName
        package let outlets: [any ServiceOutlet]

        /// - Parameter outlets: at most one for each push service.
        package init(name: ConfiguredName, outlets: [any ServiceOutlet]) {
            self.name = name
            self.outlets = outlets
        }
    }

    package struct Instance: Sendable {
        package let name: ConfiguredName
        /// In the order of the configuration.
        package let apps: [App]

        package init(name: ConfiguredName, apps: [App]) {
            self.name = name
            self.apps = apps
        }
    }

    enum LaneChoice: Sendable, Equatable {
        case lane(LaneName)
        /// What is known of the address decides; otherwise the answer does.
        case either(LanePair)

        /// `nil` when the app has no lane there.
        func lane(in environment: Environment) -> LaneName? {
            switch self {
            case .lane(let lane): lane.environment == environment ? lane : nil
            case .either(let pair): [pair.first, pair.other].first { $0.environment == environment }
            }
        }
    }

    private let services: [ConfiguredName: [any ServiceApps]]
    /// By both lanes of each.
    private let pairs: [LaneName: LanePair]

    package init(_ instances: [Instance]) {
        services = Dictionary(
            instances.map { ($0.name, Self.services($0.apps)) }, uniquingKeysWith: { first, _ in first })
        var pairs: [LaneName: LanePair] = [:]
        for case .either(let pair) in services.values.flatMap({ $0 }).flatMap(\.choices) {
            (pairs[pair.first], pairs[pair.other]) = (pair, pair)
        }
        self.pairs = pairs
    }

    private static func services(_ apps: [App]) -> [any ServiceApps] {
        var services: [any ServiceApps] = []
        for outlet in apps.flatMap(\.outlets)
        where !services.contains(where: { $0.service == type(of: outlet).service }) {
            services.append(instanceApps(like: outlet, apps))
        }
        return services
    }

    private static func instanceApps<Outlet: ServiceOutlet>(like _: Outlet, _ apps: [App]) -> any ServiceApps
    {
        OutletApps(
            apps: apps.flatMap { app in
                app.outlets.compactMap { ($0 as? Outlet).map { AppOutlet(app.name, $0) } }
            })
    }

    var names: Set<ConfiguredName> { Set(services.keys) }

    /// `nil` when no app of the instance sends such a message, or not to the environment that it names: it is
    /// dropped and counted.
    func choice(_ message: ProviderMessage, of instance: ConfiguredName) -> LaneChoice? {
        choices(of: instance).choice(message)
    }

    /// For all pushes of one call.
    func choices(of instance: ConfiguredName) -> Choices { Choices(services: services[instance] ?? []) }

    /// The apps of one instance.
    struct Choices: Sendable {
        fileprivate let services: [any ServiceApps]

        /// As ``AppDirectory/choice(_:of:)``.
        func choice(_ message: ProviderMessage) -> LaneChoice? {
            let service = message.service
            guard let instanceApps = services.first(where: { $0.service == service }) else { return nil }
            guard let choice = instanceApps.choose(message).map({ instanceApps.choices[$0] }) else {
                return nil
            }
            guard let environment = message.environment else { return choice }
            return choice.lane(in: environment).map { .lane($0) }
        }
    }

    /// The two lanes of which this is one, when an address may belong to either of them.
    func pair(of lane: LaneName) -> LanePair? { pairs[lane] }
}

/// Two lanes of one app to one push service. An address belongs to one of them, and does not show to which.
struct LanePair: Sendable, Hashable {
    enum Side: UInt8, Sendable { case first = 0, other = 1 }

    /// Tried first.
    let first: LaneName
    /// Tried once, as part of the same attempt.
    let other: LaneName

    subscript(side: Side) -> LaneName { side == .first ? first : other }
}

/// The apps of one instance that have one push service.
private protocol ServiceApps: Sendable {
    var service: PushService { get }
    /// Of each app, in order.
    var choices: [AppDirectory.LaneChoice] { get }
    /// An index of ``choices``.
    func choose(_ message: ProviderMessage) -> Int?
}

private struct OutletApps<Outlet: ServiceOutlet>: ServiceApps {
    let choices: [AppDirectory.LaneChoice]
    private let apps: [AppOutlet<Outlet>]

    init(apps: [AppOutlet<Outlet>]) {
        self.apps = apps
        choices = apps.map { app in
            func lane(_ environment: Environment) -> LaneName {
                LaneName(app: app.app, service: Outlet.service, environment: environment)
            }
            switch app.outlet.environment {
            case .fixed(let environment): return .lane(lane(environment))
            case .learned(let first, let other):
                return .either(LanePair(first: lane(first), other: lane(other)))
            }
        }
    }

    var service: PushService { Outlet.service }

    func choose(_ message: ProviderMessage) -> Int? { Outlet.choose(for: message, among: apps) }
}
