/// A generation of the protocol (docs/conformance/zulip.md). A phone and its server speak one of them, and
/// neither opens what belongs to another.
public enum ZulipProfile: String, Sendable, Hashable, CaseIterable {
    /// Deployed since feature level 468: `device_id`, `push_key_id`, `token_id`.
    case v12
    /// The specification's own: `push_account_id`, `push_public_key`.
    case zap
    /// Feature levels 406 to 467: `push_account_id`, `push_key`.
    case v11

    /// The order in which a client takes the first that the server has (§14.13).
    public static let preference: [ZulipProfile] = [.v12, .zap, .v11]
}
