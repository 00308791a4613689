public import PushModel

/// What this module says when it refuses.
public typealias RSAError = CodedError<RSAErrorCode>

/// Why a key was not read, a text not encrypted, or a ciphertext not opened.
public enum RSAErrorCode: String, AdvisingErrorCode {
    /// No RSA key of 2048 bits in the form that is asked for.
    case malformedRSAKey
    /// More plaintext than the padding leaves room for.
    case plaintextTooLong
    /// Wrong key, wrong padding or changed bytes: one answer for all of them.
    case ciphertextDoesNotOpen
    /// The library failed in an unexpected way.
    case libraryFailed

    public var blame: Blame { self == .libraryFailed ? .ourselves : .peer }
    public var retry: RetryAdvice { .never }
    public var sentence: String {
        switch self {
        case .malformedRSAKey: "The key is no RSA key of 2048 bits."
        case .plaintextTooLong: "The text is longer than an RSA key of 2048 bits can encrypt."
        case .ciphertextDoesNotOpen: "The ciphertext does not open with this key."
        case .libraryFailed: "The cryptographic library failed."
        }
    }
}
