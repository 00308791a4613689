/// The machine-readable word in front of a relay's text (NIP-01, NIP-42).
public enum NostrReason: String, Sendable, Hashable, CaseIterable {
    /// The relay wants to know who asks (NIP-42).
    case authRequired = "auth-required"
    /// As NIP-01 and NIP-42 name them; `duplicate` means that the relay has it already.
    case restricted, duplicate, blocked, invalid, pow, error, mute
    /// Too often: later it may be taken.
    case rateLimited = "rate-limited"

    /// - Returns: `nil` if the text has no such word in front of a colon.
    public init?(text: some StringProtocol) {
        guard let colon = text.firstIndex(of: ":") else { return nil }
        self.init(rawValue: String(text[..<colon]))
    }
}
