/// A realm as `server/analytics` reports it (§5.3).
public struct ZulipRealmReport: Sendable, Hashable {
    /// The server's own number for the realm.
    public var id: Int64
    /// Canonical lower-case UUID.
    public var uuid: String
    /// The realm's secret, by which the relay knows that a realm moved with its owner.
    public var ownerSecret: String
    /// Host of the realm, with a port where it has one.
    public var host: String
    /// Base URL of the realm.
    public var url: String
    /// What people call it.
    public var name: String
    /// Zulip's number for its kind; 0: not said.
    public var organizationType: Int64
    /// Unix seconds.
    public var createdAt: Int64
    /// The realm is closed: the relay sends nothing for it.
    public var isDeactivated: Bool

    /// One realm, as the server has it now.
    ///
    /// - Parameter uuid: canonical lower-case UUID.
    /// - Parameter createdAt: Unix seconds.
    public init(
        id: Int64, uuid: String, ownerSecret: String, host: String, url: String, name: String,
        organizationType: Int64 = 0, createdAt: Int64, isDeactivated: Bool = false
    ) {
        self.id = id
        self.uuid = uuid
        self.ownerSecret = ownerSecret
        self.host = host
        self.url = url
        self.name = name
        self.organizationType = organizationType
        self.createdAt = createdAt
        self.isDeactivated = isDeactivated
    }
}
