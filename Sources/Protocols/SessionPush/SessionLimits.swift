/// Every bound of this protocol, each with its reason. The clauses stand in docs/conformance/session.md.
public enum SessionLimits {
    /// An account id: a prefix and a key (§2).
    public static let accountBytes = 33
}
