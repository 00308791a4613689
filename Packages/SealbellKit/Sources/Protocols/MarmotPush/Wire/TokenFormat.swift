/// The four formats that share Marmot's name (docs/conformance/marmot.md). A token's format is fixed when it
/// is encrypted.
public enum TokenFormat: String, Sendable, Hashable, CaseIterable {
    /// The seed text: no padding, Expand only, a JSON array of hex.
    case seed
    /// The January 2026 text: 280 bytes.
    case mip05Short = "mip05-280"
    /// The April 2026 text: 1084 bytes.
    case mip05Long = "mip05-1084"
    /// The adopted feature document: 1084 bytes, keys of its own, owner proofs in gossip.
    case pushV1 = "push-v1"

    /// The bytes that encryption adds to a plaintext: ephemeral key 32, nonce 12, authenticator 16.
    public static let overheadBytes = 60

    /// Size of a padded plaintext; `nil` if there is no padding.
    public var plaintextBytes: Int? {
        switch self {
        case .seed: nil
        case .mip05Short: 220
        case .mip05Long, .pushV1: 1024
        }
    }

    /// Size of an encrypted token; `nil` if it depends on the device token's.
    public var tokenBytes: Int? { plaintextBytes.map { $0 + Self.overheadBytes } }

    /// Salt of the key derivation's first step; `nil` if that step is left out.
    package var salt: [UInt8]? {
        switch self {
        case .seed: nil
        case .mip05Short, .mip05Long: Array("mip05-v1".utf8)
        case .pushV1: Array("marmot-push-token-v1".utf8)
        }
    }

    /// Info of the key derivation's second step.
    package var info: [UInt8] {
        switch self {
        case .seed, .mip05Short, .mip05Long: Array("mip05-token-encryption".utf8)
        case .pushV1: Array("marmot-push-token-encryption".utf8)
        }
    }

    /// The number of encrypted tokens that a trigger of this format may hold when it is read.
    public var mostTokens: Int {
        switch self {
        case .seed: MarmotLimits.seedTokens
        case .mip05Short, .mip05Long: MarmotLimits.mip05Tokens
        case .pushV1: MarmotLimits.pushV1Tokens
        }
    }

    /// Tags that we write on a trigger of this format.
    public var triggerTags: [[String]] {
        switch self {
        case .seed, .mip05Short: []
        case .mip05Long: [["v", "mip05-v1"], ["encoding", "base64"]]
        case .pushV1: [["v", "marmot-push-v1"]]
        }
    }
}
