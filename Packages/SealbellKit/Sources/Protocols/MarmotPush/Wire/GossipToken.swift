public import PushModel
public import Secp256k1Keys
import WireFormats

/// An encrypted token in the form that gossip and the store use (docs/conformance/marmot.md).
public struct GossipToken: Sendable {
    /// Of ``box``.
    public let format: TokenFormat
    /// The encrypted token, as ``TokenBox`` makes it; as many bytes as ``format`` has.
    public let box: Secret
    /// The key that it is encrypted to.
    public let server: XOnlyKey
    /// A Nostr relay of that server, according to the token's owner. At most ``MarmotLimits/relayURLBytes``.
    public let relayHint: String?

    /// - Parameter box: as many bytes as the format has.
    /// - Throws: `.malformedGossip` for a box of another size, or too long a hint.
    public init(
        _ format: TokenFormat, box: Secret, server: XOnlyKey, relayHint: String? = nil
    ) throws(MarmotError) {
        let isOfSize =
            format.tokenBytes.map { box.count == $0 }
            ?? (box.count > TokenFormat.overheadBytes && box.count <= TokenFormat.longestSeedTokenBytes)
        guard isOfSize, (relayHint?.utf8.count ?? 0) <= MarmotLimits.relayURLBytes else {
            throw MarmotError(.malformedGossip)
        }
        self.format = format
        self.box = box
        self.server = server
        self.relayHint = relayHint.flatMap { $0.utf8.allSatisfy { $0 == 0x20 } ? nil : $0 }
    }

    /// Whether both are the same ciphertext for the same server.
    public func isSame(as other: GossipToken) -> Bool { server == other.server && box == other.box }

    /// As a `token` tag of the format's profile.
    ///
    /// - Parameter leaf: the owner's; only in a list.
    func tag(leaf: UInt32? = nil) -> [String] {
        var tag = ["token"]
        switch format {
        case .seed: tag += [box.reveal { Hex.encode($0) }, server.hex]
        case .mip05Short: tag += [box.reveal { Base64.text($0) }, server.hex]
        case .mip05Long, .pushV1:
            tag += [box.reveal { Base64.text($0) }, server.hex]
            // Without a hint the tag has the form of January 2026, which has no place for one.
            if let relayHint { tag.append(relayHint) }
        }
        if let leaf { tag.append(String(leaf)) }
        return tag
    }
}

/// The three ways in which groups talk about tokens (docs/conformance/marmot.md).
package enum GossipProfile: Sendable, Hashable, CaseIterable {
    /// Tags with hex; 449 updates, 450 removes.
    case seed
    /// Tags with base64; 449 removes.
    case mip05
    /// JSON with owners' proofs.
    case pushV1

    package init(_ format: TokenFormat) {
        switch format {
        case .seed: self = .seed
        case .mip05Short, .mip05Long: self = .mip05
        case .pushV1: self = .pushV1
        }
    }
}

/// A token and its alleged owner.
package struct ListedToken: Sendable {
    package let leaf: UInt32
    package let token: GossipToken

    package init(leaf: UInt32, token: GossipToken) {
        self.leaf = leaf
        self.token = token
    }
}

/// The request that a list answers, by its id and, in the seed text, by its nonce too (§9, point 1).
package struct GossipReference: Sendable, Hashable {
    /// 32 bytes.
    package let id: [UInt8]?
    package let nonce: String?

    package init(id: [UInt8]?, nonce: String?) {
        self.id = id
        self.nonce = nonce
    }

    /// Compares ids, or nonces if one of the two has no id.
    func answers(_ request: GossipReference) -> Bool {
        if let id, let other = request.id { return id == other }
        return nonce != nil && nonce == request.nonce
    }
}
