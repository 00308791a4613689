import PushModel
import WireFormats

/// The origins of one instance, in the hands of the operator (`sealbell origins`). No peer reaches it.
protocol OriginControl: Sendable {
    /// Origins in the order in which their records were last written, after the given revision.
    ///
    /// - Returns: at most `limit`, and the revision to go on after; `nil` at the end.
    func origins(
        after revision: UInt64, limit: Int
    ) async throws(StoreError) -> (origins: [OriginFacts], next: UInt64?)
    /// The host name of an origin; `nil` where none of that id has signed up, or it has left.
    func host(of id: UUIDText) async throws(StoreError) -> String?
    /// How many have signed up.
    func count() async throws(StoreError) -> Int
    /// The origin that has a host: the one of exactly that port, else the only one of that name.
    func holder(of host: String) async throws(StoreError) -> UUIDText?
    /// The origins of a host name, at whatever port.
    func holders(ofName host: String) async throws(StoreError) -> [UUIDText]
    /// Admits one sign-up of a host.
    ///
    /// - Returns: the end of the invitation; `nil` when the text is no host name.
    func invite(_ host: String) async throws(StoreError) -> UnixTime?
    /// Hosts that may still sign up, after the given revision.
    ///
    /// - Returns: at most `limit`, and the revision to go on after; `nil` at the end.
    func invitations(
        after revision: UInt64, limit: Int
    ) async throws(StoreError) -> (invitations: [OriginInvitation], next: UInt64?)
    /// Takes an invitation back.
    ///
    /// - Returns: whether there was one; `nil` when the text is no host name.
    func uninvite(_ host: String) async throws(StoreError) -> Bool?
    func set(suspended: Bool, _ id: UUIDText) async throws(StoreError) -> OriginChange
    /// - Parameter quota: pushes a minute, 0 for no limit; `nil`: the instance's again.
    func set(quota: Int?, _ id: UUIDText) async throws(StoreError) -> OriginChange
    /// Deletes the origin and everything that stands under it.
    ///
    /// - Returns: how many records of each kind; `nil` when there is no such origin.
    func forgetOrigin(_ id: UUIDText) async throws(StoreError) -> [NamedCount]?
}

/// A count and the name that the admin listener gives it.
typealias NamedCount = (name: StaticString, count: Int)

/// One origin, for the operator's eyes.
struct OriginFacts: Sendable {
    let id: UUIDText
    let host: String
    /// Whom to write to.
    let contact: Secret
    /// `active`, `deactivated` or `suspended`.
    let standing: String
    /// When it last said anything of itself.
    let seenAt: UnixTime
    /// Pushes a minute; 0: no limit; `nil`: the configuration's.
    let quota: Int?
    /// What stands under it.
    let counts: [NamedCount]
}
