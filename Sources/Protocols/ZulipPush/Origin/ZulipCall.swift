public import PushModel

/// One HTTP request that an origin makes of the relay. A value: anyone who has a network sends it.
public struct ZulipCall: Sendable {
    public let method: String
    /// Begins with `/api/v1/remotes/`, ends with the query where there is one; goes behind the relay's base
    /// URL.
    public let path: String
    /// `Authorization` among them.
    public let headers: [(name: String, value: Secret)]
    public let body: Secret
}

/// A realm as `server/analytics` reports it (§5.3).
public struct ZulipRealmReport: Sendable, Hashable {
    public var id: Int64
    /// Canonical lower-case UUID.
    public var uuid: String
    public var ownerSecret: String
    public var host: String
    public var url: String
    public var name: String
    public var organizationType: Int64
    /// Unix seconds.
    public var createdAt: Int64
    public var isDeactivated: Bool

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
