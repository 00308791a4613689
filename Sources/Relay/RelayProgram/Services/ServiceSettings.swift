import Delivery
import PushModel

/// How one app is set up for one push service: what its keys say, valid and without secrets, for credentials
/// are paths of files.
///
/// An existential in the configuration alone: lanes and providers have types of their own.
protocol ServiceSettings: Sendable, Hashable {
    static var service: PushService { get }
    /// Those of its lanes, in the order in which a test push tries them.
    var environments: [Environment] { get }
    /// How it chooses the pushes of one instance that are the app's.
    func outlet(of app: ConfiguredName, in instance: InstanceConfiguration) -> any ServiceOutlet
    /// Its lanes, one for each of ``environments``.
    ///
    /// - Throws: `CommandFailure` that names the file or the app at fault.
    func routes(
        of app: ConfiguredName, on ground: LaneGround, _ shelf: inout CredentialShelf
    ) throws(CommandFailure) -> [DeliveryService.Route]
    /// What it connects to, for the doctor.
    var places: [ReachChecks.Place] { get }
    /// Whether it stands on this machine, so that no push reaches somebody's phone.
    var reachesNobody: Bool { get }
    /// What the service calls the app, for whoever reads the run file.
    var appIDs: [String] { get }
    /// What a device may have called its app when it registered.
    var registeredAppIDs: [String] { get }
    /// How well an address has the form of the service's own.
    static func fit(_ address: Secret) -> AddressFit
    /// Visible alerts for one address, to be tried one behind the other.
    func trials(_ order: TrialOrder) throws(DeskRefusal) -> [TrialPush]
}

extension ServiceSettings {
    var appIDs: [String] { [] }
    var registeredAppIDs: [String] { appIDs }
    static func fit(_ address: Secret) -> AddressFit { .perhaps }

    func lanes(of app: ConfiguredName) -> [LaneName] {
        environments.map { LaneName(app: app, service: Self.service, environment: $0) }
    }

    /// The environments that an order asks for.
    func environments(_ order: TrialOrder) throws(DeskRefusal) -> [Environment] {
        guard let asked = order.environment else { return environments }
        guard let environment = Environment(rawValue: asked), environments.contains(environment) else {
            throw .status(400, "This app's configuration has no such environment.")
        }
        return [environment]
    }
}

/// Whether an address looks like one of a push service.
enum AddressFit: Int, Comparable {
    case no, perhaps, surely

    static func < (left: AddressFit, right: AddressFit) -> Bool { left.rawValue < right.rawValue }
}

/// A test push, as an operator orders it.
struct TrialOrder: Sendable {
    var app = ""
    /// The word of a service.
    var service: String?
    var environment: String?
    var bundle: String?
    /// It never becomes a `String`.
    var token = Secret([])
}

/// A test push, as a service sends it.
struct TrialPush: Sendable {
    var environment: Environment
    var message: ProviderMessage
}

// MARK: The services of an app

extension AppConfiguration {
    /// How the app is set up for the service with settings of that kind.
    subscript<Settings: ServiceSettings>(_: Settings.Type) -> Settings? {
        get {
            for settings in services { if let found = settings as? Settings { return found } }
            return nil
        }
        set {
            let index = services.firstIndex { $0 is Settings }
            if let index { services.remove(at: index) }
            if let newValue { services.insert(newValue, at: index ?? services.endIndex) }
        }
    }

    /// How the app is set up for a service.
    func settings(of hosted: any HostedService.Type) -> (any ServiceSettings)? {
        func find<Hosted: HostedService>(_: Hosted.Type) -> (any ServiceSettings)? {
            self[Hosted.Settings.self]
        }
        return find(hosted)
    }

    var lanes: [LaneName] { services.flatMap { $0.lanes(of: name) } }
}

extension AppConfiguration: Hashable {
    static func == (left: AppConfiguration, right: AppConfiguration) -> Bool {
        left.name == right.name && left.fallback == right.fallback
            && left.services.map { AnyHashable($0) } == right.services.map { AnyHashable($0) }
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(fallback)
        hasher.combine(services.map { AnyHashable($0) })
    }
}
