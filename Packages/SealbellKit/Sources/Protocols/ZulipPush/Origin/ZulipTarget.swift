/// Where one push goes: a device as an origin knows it, in the profile in which it registered.
public struct ZulipTarget: Sendable {
    /// How the relay finds it, and what its contents are sealed with.
    enum Address: Sendable {
        case v12(TokenKind, TokenID, keyID: UInt32, PushKey)
        /// `nil`: the relay has not confirmed it yet.
        case v11(TokenKind, device: Int64?, account: Int64, PushKey)
        case zap(device: Int64?, PushPublicKey)
    }

    let address: Address

    /// A device of v12 (§1, table Device).
    public init(kind: TokenKind, tokenID: TokenID, pushKeyID: UInt32, key: PushKey) {
        address = .v12(kind, tokenID, keyID: pushKeyID, key)
    }

    /// A device of v11 (§3.7).
    ///
    /// - Parameter deviceID: what the relay answered to its registration; `nil` before, and then it is
    ///   skipped.
    public init(kind: TokenKind, deviceID: Int64?, accountID: Int64, key: PushKey) {
        address = .v11(kind, device: deviceID, account: accountID, key)
    }

    /// A device of the specification's own profile. The relay's row chooses service and account (§14.6).
    ///
    /// - Parameter deviceID: what the relay answered to its registration; `nil` before, and then it is
    ///   skipped ("skip this PushDevice as not yet fully registered").
    public init(deviceID: Int64?, key: PushPublicKey) { address = .zap(device: deviceID, key) }

    /// The profile in which it registered; decides how a push is sealed.
    public var profile: ZulipProfile {
        switch address {
        case .v12: .v12
        case .v11: .v11
        case .zap: .zap
        }
    }

    /// Whether the relay knows it, so that a push can be sent to it.
    public var isConfirmed: Bool {
        switch address {
        case .v12: true
        case .v11(_, let device, _, _), .zap(let device, _): device != nil
        }
    }
}
