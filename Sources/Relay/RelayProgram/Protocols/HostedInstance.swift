import AdminIngress
import Delivery
import HTTPIngress
import PushModel
import ServiceLifecycle

/// One instance, made whole from a configuration. It comes into force with ``takeForce()``, and keeps of the
/// one that it replaces what must outlive a reload.
protocol HostedInstance: Sendable {
    var name: ConfiguredName { get }
    /// What apps and devices need to know of it, newest first.
    var publicKeys: [String] { get }
    /// The same, and how often registrations use each.
    func keysInForce() async throws(StoreError) -> [KeyInForce]
    /// Rows of the outcome table that its protocol reads differently (decision 0048).
    var override: (@Sendable (Answer) -> Outcome?)? { get }
    /// What listeners serve; `nil`: nothing, or ``faces``.
    var face: (any HTTPFace)? { get }
    /// All that listeners serve.
    var faces: [any HTTPFace] { get }
    /// Lanes that the instance brings itself, beside those of apps; `nil`: none.
    var ownLanes: OwnLanes? { get }
    /// Who has signed up; `nil` where nobody does.
    var origins: (any OriginControl)? { get }
    /// Whether it can do nothing while the store fails or the outbox is full.
    var needsStore: Bool { get }

    /// Puts it in force. Called once, when everything that can fail has been made.
    ///
    /// - Returns: what is to run as long as the instance. A service of the instance before that is among them
    ///   goes on; one that is not is stopped.
    func takeForce() -> [any InstanceService]
    /// Once a minute: removes some of what is left behind or over.
    ///
    /// - Returns: whether more waits.
    func sweep() async throws(StoreError) -> Bool
    /// Whether a load balancer should send it peers.
    func isReady() async -> Bool
    /// The process is to end: calls that wait for what has not happened yet are answered, before listeners
    /// wait for their last answers.
    func answerWaiting()
    /// Whether it goes to its peers itself and hears none of them.
    func hearsNobody() async -> Bool
    /// How it hears its peers, for an operator; `nil` where they come to it.
    func hearing() async -> IngressReport?
    /// What its peers refuse it, for an operator.
    var troubles: [Alert] { get }
    /// Whether one of its troubles that does not stand among ``troubles`` is known to be over. What was met
    /// before a reload, or by a process before this one, is not known as long as nobody was asked.
    func isProven(over subject: Alert.Subject) -> Bool
    /// Where registrations of a device's address would be found: keys of ``RecordIndex/address(_:)``.
    ///
    /// - Parameter appID: as a device might have named its app; `nil`: as one that names none.
    func indexes(ofAddress address: Secret, appID: String?) -> [RecordKey]
    /// Whether a record that such an index leads to counts as a device: of two that one device has, one does.
    func isDevice(_ record: RecordKey) -> Bool
    /// The registrations that an operator names as somebody at the protocol's other end would.
    ///
    /// - Parameter names: members of a call, such as `realm` and `token_id`, as they were given.
    /// - Returns: none where they name nothing of this protocol, or nothing that is registered.
    func registrations(named names: [String: String]) async throws(StoreError) -> [Record]
    /// Where the registrations of an account stand, as its protocol names one; nowhere where the text is no
    /// name of this protocol.
    func places(ofAccount account: String) -> AccountPlaces
    /// The rooms of its registrations, each of which has an address: for a search that walks over all.
    var registrationSpaces: [Space] { get }
}

/// Where an account's registrations stand.
struct AccountPlaces: Sendable {
    /// Each may have several.
    var owners: [RecordKey] = []
    /// Each is one, if it is there.
    var records: [RecordKey] = []
}

extension HostedInstance {
    func keysInForce() async throws(StoreError) -> [KeyInForce] {
        publicKeys.map { KeyInForce(publicKey: $0) }
    }
    var override: (@Sendable (Answer) -> Outcome?)? { nil }
    var face: (any HTTPFace)? { nil }
    var faces: [any HTTPFace] { face.map { [$0] } ?? [] }
    var ownLanes: OwnLanes? { nil }
    var origins: (any OriginControl)? { nil }
    var needsStore: Bool { true }
    func takeForce() -> [any InstanceService] { [] }
    func sweep() async throws(StoreError) -> Bool { false }
    func isReady() async -> Bool { true }
    func answerWaiting() {}
    func hearsNobody() async -> Bool { false }
    func hearing() async -> IngressReport? { nil }
    var troubles: [Alert] { [] }
    func isProven(over subject: Alert.Subject) -> Bool { true }
    func indexes(ofAddress address: Secret, appID: String?) -> [RecordKey] { [] }
    func isDevice(_ record: RecordKey) -> Bool { true }
    func registrations(named names: [String: String]) async throws(StoreError) -> [Record] { [] }
    func places(ofAccount account: String) -> AccountPlaces { AccountPlaces() }
    var registrationSpaces: [Space] { [] }
}

/// Lanes of one instance that are no app's, and which of its pushes go where.
struct OwnLanes: Sendable {
    let specs: [DeliveryService.LaneSpec]
    let directory: AppDirectory.Instance
}

/// Work that lasts as long as an instance, such as listening at a peer's server.
protocol InstanceService: AnyObject, Sendable {
    /// Until it is stopped.
    func run() async throws
    /// The process is to end: what others on the same store can take is handed over, in seconds, and then it
    /// stops.
    func end()
    /// At once, apart from what was taken already.
    func stop()
}

extension InstanceService {
    func end() { stop() }
}
