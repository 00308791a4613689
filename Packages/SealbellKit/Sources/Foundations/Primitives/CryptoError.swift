public import PushModel

/// What the ciphers say when they refuse. It tells nothing of why a box did not open.
public typealias CryptoError = CodedError<CryptoErrorCode>

public enum CryptoErrorCode: String, AdvisingErrorCode {
    /// Wrong key, changed bytes, or too short: one answer for all of them.
    case doesNotOpen
    /// A key or nonce of a wrong length, or a public key that is a weak point of the curve.
    case malformedKey

    public var blame: Blame { .peer }
    public var retry: RetryAdvice { .never }
    public var sentence: String {
        switch self {
        case .doesNotOpen: "The sealed bytes do not open with this key."
        case .malformedKey: "The key has the wrong length or is a weak one."
        }
    }
}
