public import PushModel
public import SealbellKit
import Secp256k1Keys

/// What makes a ``MarmotDevice``: the account, and the notification server that the app is built with. Given
/// at each start, and never kept.
public struct MarmotSetup: Sendable {
    /// A notification server beside the first.
    public struct Server: Sendable, Hashable {
        /// 64 hex digits, as `sealbell keys new nostr` prints it.
        public let key: RelayKey
        /// A relay at which it listens (`wss://`), told where the format has a place for it.
        public let relayHint: String?

        /// A server that wakes the device if the first fails.
        public init(key: RelayKey, relayHint: String? = nil) { (self.key, self.relayHint) = (key, relayHint) }
    }

    let identity: Secp256k1KeyPair
    let settings: MarmotLeaf.Settings

    /// - Parameter identity: the account's secret key, 32 bytes: author of rumors, signer of owners' proofs.
    /// - Parameter platform: whose tokens the phone may register; a desktop registers none.
    /// - Parameter server: 64 hex digits, the key of the holder of the app's credentials.
    /// - Parameter relayHint: a relay of that server (`wss://`), where the format has a place for it.
    /// - Parameter format: what the server takes; it also says how the group is talked to.
    /// - Parameter furtherServers: each gets a token of its own, in case that one fails; not in the `mip05`
    ///   texts, which know one token of a leaf.
    /// - Throws: `.malformedSetup` for a key that is none; `.tooMany` for more servers than the format has
    ///   room for (``MarmotLimits/tokensOfLeaf``).
    ///
    /// Spec: "Token Formats", "Native Push Services Only".
    public init(
        identity: Secret, platform: DevicePlatform, server: RelayKey, relayHint: String? = nil,
        format: TokenFormat, furtherServers: [Server] = []
    ) throws(DeviceError) {
        do { self.identity = try Secp256k1KeyPair(secret: identity) } catch {
            throw DeviceError(.malformedSetup, MarmotErrorCode.malformedKey.rawValue)
        }
        guard furtherServers.count < MarmotLimits.tokensOfLeaf else { throw DeviceError(.tooMany) }
        var further: [MarmotLeaf.Settings.Server] = []
        for server in furtherServers {
            further.append(.init(key: try Self.key(server.key), relayHint: server.relayHint))
        }
        settings = MarmotLeaf.Settings(
            platform: platform, server: try Self.key(server), format: format, relayHint: relayHint,
            furtherServers: further)
    }

    private static func key(_ key: RelayKey) throws(DeviceError) -> XOnlyKey {
        guard let found = XOnlyKey(key.bytes) else {
            throw DeviceError(.malformedSetup, MarmotErrorCode.malformedKey.rawValue)
        }
        return found
    }
}

/// What the app's MLS library knows of a group, at each start and after each commit.
public struct MarmotGroup: GroupView {
    /// Raw id of the MLS group, as many bytes as the MLS library has it in.
    public let groupID: [UInt8]
    /// The leaf that this device is.
    public let ownLeaf: UInt32
    private let members: [UInt32: XOnlyKey]

    /// - Parameter id: the MLS group's raw id, as long as the MLS library has it.
    /// - Parameter ownLeaf: the leaf that this device is.
    /// - Parameter members: identities of 32 bytes by their leaves, one's own among them. Who has none is
    ///   told nothing, and is not woken.
    public init(id: [UInt8], ownLeaf: UInt32, members: [UInt32: [UInt8]]) {
        (groupID, self.ownLeaf) = (id, ownLeaf)
        self.members = members.compactMapValues { XOnlyKey($0) }
    }

    /// Leaves that stand in the tree, the lowest first.
    public var activeLeaves: [UInt32] { members.keys.sorted() }
    /// Identity of the member whose leaf it is; `nil` for a blank leaf.
    public func member(ofLeaf leaf: UInt32) -> XOnlyKey? { members[leaf] }
}
