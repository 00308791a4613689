/// The four formats that share Marmot's name (fact sheet §2). A token's format is fixed when it is encrypted.
public enum TokenFormat: String, Sendable, Hashable, CaseIterable {
    /// The seed text: no padding, Expand only, a JSON array of hex.
    case seed
    /// The January 2026 text: 280 bytes.
    case mip05Short = "mip05-280"
    /// The April 2026 text: 1084 bytes.
    case mip05Long = "mip05-1084"
    /// The adopted feature document: 1084 bytes, keys of its own, owner proofs in gossip.
    case pushV1 = "push-v1"
}
