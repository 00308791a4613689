import Delivery
import HTTP2Client
import PushModel

/// How one app is set up for one push service: what its keys say, valid and without secrets, for credentials
/// are paths of files.
///
/// An existential only in the configuration: lanes and providers have concrete types.
protocol ServiceSettings: Sendable, Hashable {
    static var service: PushService { get }
    /// Those of its lanes, in the order in which a test push tries them.
    var environments: [Environment] { get }
    /// How it chooses the pushes of one instance that are the app's.
    func outlet(of app: ConfiguredName, in instance: InstanceConfiguration) -> any ServiceOutlet
    /// Its lanes, one for each of ``environments``.
    ///
    /// - Throws: `CommandFailure` that names the file or the app at fault.
    func laneSpecs(
        of app: ConfiguredName, on context: LaneContext, _ cache: inout CredentialCache
    ) throws(CommandFailure) -> [DeliveryService.LaneSpec]
    /// What it connects to, for the doctor.
    var places: [PeerAddress] { get }
    /// Whether it stands on this machine, so that no push reaches somebody's phone.
    var reachesNobody: Bool { get }
    /// What the service calls the app, for anyone who reads the run file.
    var appIDs: [String] { get }
    /// What a device may have called its app when it registered.
    var registeredAppIDs: [String] { get }
    /// How well an address has the form of the service's own.
    static func fit(_ address: Secret) -> AddressFit
    /// Visible alerts for one address, to be tried one behind the other.
    func testPushes(_ order: TestPushOrder) throws(DeskRefusal) -> [TestPush]
    /// Messages to addresses that nobody can have: the service's refusal tells whether it takes everything
    /// else.
    var trials: [ServiceTrial] { get }
    /// What the answer to one of them says, and what to do.
    func verdict(on answer: Answer) -> TrialVerdict
}

extension ServiceSettings {
    var appIDs: [String] { [] }
    var trials: [ServiceTrial] { [] }
    func verdict(on answer: Answer) -> TrialVerdict { .passing(answer) }
    var registeredAppIDs: [String] { appIDs }
    static func fit(_ address: Secret) -> AddressFit { .perhaps }

    func lanes(of app: ConfiguredName) -> [LaneName] {
        environments.map { LaneName(app: app, service: Self.service, environment: $0) }
    }

    /// A provider for each lane, with what a reload compares. They speak to the makers of phones themselves,
    /// so that volatile pushes may go through them.
    ///
    /// - Parameter target: what of a lane its provider is made with, beside credential and authorities.
    /// - Throws: `CommandFailure` that names the app.
    func laneSpecs<Credential, Sending: DirectProvider>(
        of app: ConfiguredName, _ entry: CredentialCache.Entry<Credential>, _ certificates: [UInt8]?,
        on context: LaneContext, target: (LaneName) -> String?,
        provider: (LaneName) throws(HTTP2Error) -> Sending
    ) throws(CommandFailure) -> [DeliveryService.LaneSpec] {
        var laneSpecs: [DeliveryService.LaneSpec] = []
        for lane in lanes(of: app) {
            do throws(HTTP2Error) {
                laneSpecs.append(
                    DeliveryService.LaneSpec(
                        try provider(lane), credential: entry.shared,
                        stamp: context.stamp(entry.stamp, target(lane), certificates),
                        identity: context.identity(entry.identity, target(lane), lane)))
            } catch {
                throw CommandFailure(
                    .configuration, "apps.\(app.text).\(Self.service): \(error.coded)")
            }
        }
        return laneSpecs
    }

    /// The environments that an order asks for.
    func environments(_ order: TestPushOrder) throws(DeskRefusal) -> [Environment] {
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
struct TestPushOrder: Sendable {
    var app = ""
    /// The word of a service.
    var service: String?
    var environment: String?
    var bundle: String?
    /// It never becomes a `String`.
    var token = Secret([])
}

/// A test push, as a service sends it.
struct TestPush: Sendable {
    /// What the device shows.
    static let title = "Test"
    static let text = "Sealbell reaches this device."

    var environment: Environment
    var message: ProviderMessage
}

/// A message that reaches nobody.
struct ServiceTrial: Sendable {
    var environment: Environment
    /// What of the app it tries, such as a bundle id; may be empty.
    var subject: String
    var message: ProviderMessage
}

/// What the answer to a trial says, in a sentence for an operator.
enum TrialVerdict: Sendable, Hashable {
    case good(String)
    case warning(String)
    case fault(String)

    /// An answer that says nothing of credentials and app.
    static func passing(_ answer: Answer) -> TrialVerdict {
        switch answer.outcome {
        case .accepted:
            .warning("It took a message for an address that nobody has: it is no service of phones.")
        case .retry:
            .warning("It asks for time (\(answer.reason.rawValue)), and has judged nothing; try again later.")
        case .unregistered, .rejected, .misconfigured:
            .warning("It refuses the message (\(answer.reason.rawValue)), for which we know no cure.")
        }
    }
}
