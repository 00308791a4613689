/// Every bound of this protocol, each with its reason. The clauses stand in docs/conformance/status.md.
public enum StatusLimits {
    /// A hash of a key, a chat or an author: SHAKE-256 with this many bytes of output.
    public static let hashBytes = 64
}
