import WireFormats

/// What a client asks before it logs in, `GET /api/v1/server_settings` (§3.6, §14.13).
public struct OriginSettings: Sendable, Hashable {
    /// `zulip_version`.
    public var version: String
    /// `realm_url`.
    public var realmURL: String
    /// `realm_name`.
    public var realmName: String
    /// The server has a relay to register at.
    public var hasRelay: Bool
    /// What clients may register with. One that is left out is neither said nor served.
    public var profiles: Set<ZulipProfile>

    /// - Parameter version: `zulip_version`, which clients show and compare.
    /// - Parameter profiles: all three unless said otherwise.
    public init(
        version: String, realmURL: String, realmName: String, hasRelay: Bool,
        profiles: Set<ZulipProfile> = Set(ZulipProfile.allCases)
    ) {
        self.version = version
        self.realmURL = realmURL
        self.realmName = realmName
        self.hasRelay = hasRelay
        self.profiles = profiles
    }

    /// By which clients find v12 (468 and up) and v11 (406 to 467); below both, neither.
    public var featureLevel: Int64 { profiles.contains(.v12) ? 483 : profiles.contains(.v11) ? 467 : 405 }

    /// The body of the answer with status 200: compact JSON.
    public func body() -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("result", "success")
        writer.member("msg", "")
        writer.member("zulip_version", version)
        writer.member("zulip_feature_level", featureLevel)
        writer.member("push_notifications_enabled", hasRelay)
        writer.member("encrypted_push_notifications", profiles.contains(.zap))
        writer.member("realm_url", realmURL)
        writer.member("realm_name", realmName)
        writer.endObject()
        return writer.bytes
    }
}
