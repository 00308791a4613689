public import PushModel

/// What the ciphers say when they refuse. It tells nothing of why a box did not open.
public struct CryptoError: PushError {
    public enum Code: String, Sendable, CaseIterable {
        /// Wrong key, changed bytes, or too short: one answer for all of them.
        case doesNotOpen
        /// A key or nonce of a wrong length, or a public key that is a weak point of the curve.
        case malformedKey
    }

    public let code: Code
    public init(_ code: Code) { self.code = code }

    public var codeText: String { code.rawValue }
    public var blame: Blame { .peer }
    public var retry: RetryAdvice { .never }
    public var sentence: String {
        switch code {
        case .doesNotOpen: "The sealed bytes do not open with this key."
        case .malformedKey: "The key has the wrong length or is a weak one."
        }
    }
}
