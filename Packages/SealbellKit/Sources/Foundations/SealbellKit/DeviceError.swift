public import PushModel

/// The one error of devices and of what they are given.
///
/// Two of them are equal when their codes are.
public struct DeviceError: AdvisingError {
    /// What is wrong.
    public let code: Code
    /// The protocol's own frozen code (`foreignContent`), as docs/errors.md lists it: for logs. Empty where
    /// there is none. It never has bytes of what was given.
    public let detail: String

    package init(_ code: Code, _ detail: String = "") { (self.code, self.detail) = (code, detail) }

    /// What can be wrong. The raw values are frozen.
    public enum Code: String, AdvisingErrorCode {
        /// No device token: too long, or with other characters than its push service gives.
        case malformedToken
        /// No public key of a relay.
        case malformedKey
        /// What the app or its user has set cannot be.
        case malformedSetup
        /// What was kept was not written by this device, or is not whole.
        case malformedKept
        /// More bytes, levels or parts than allowed.
        case tooLarge
        /// More accounts, chats or members than a device has.
        case tooMany
        /// The protocol does not reach phones by this push service.
        case wrongService
        /// The user has not asked for it.
        case switchedOff
        /// No push of this protocol, or of none of these accounts: an app may have use for it elsewhere.
        case foreign
        /// It is for this device, and does not open with its keys.
        case doesNotOpen
        /// It opened, and its content has a wrong form.
        case malformedContent

        /// What to do, for the app's author.
        public var sentence: String {
            switch self {
            case .malformedToken: "The text or the bytes are no device token of that push service."
            case .malformedKey: "The text is no public key of a relay."
            case .malformedSetup: "What the app has set does not make a device of this protocol."
            case .malformedKept: "What was kept was not written by this device; begin anew without it."
            case .tooLarge: "There is more of it than allowed."
            case .tooMany: "There are more of them than a device has."
            case .wrongService: "The protocol does not reach phones by this push service."
            case .switchedOff: "The user has not asked for it."
            case .foreign: "What arrived is not for this device."
            case .doesNotOpen: "What arrived does not open with this device's keys."
            case .malformedContent: "What arrived opened, and its content has a wrong form."
            }
        }

        /// Whose fault it is; the operator of what the app sets is its author.
        public var blame: Blame {
            switch self {
            case .malformedKey, .malformedSetup, .tooMany, .wrongService, .switchedOff: .operator
            case .malformedKept: .ourselves
            case .malformedToken, .tooLarge, .foreign, .doesNotOpen, .malformedContent: .peer
            }
        }

        /// Never: the same bytes stay the same.
        public var retry: RetryAdvice { .never }
    }

    /// The code's raw value.
    public var codeText: String { code.rawValue }
    /// What to do, for the app's author.
    public var sentence: String { code.sentence }
    /// Whose fault it is.
    public var blame: Blame { code.blame }
    /// Never.
    public var retry: RetryAdvice { code.retry }
}
