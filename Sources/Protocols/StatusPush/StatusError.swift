public import PushModel

/// What this protocol's roles refuse, and why.
public struct StatusError: PushError {
    /// Frozen.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        // Of the moment
        case rateLimited, overloaded
        // Bytes
        case malformedMessage, malformedPayload, malformedKey, doesNotOpen, unsigned
        // The relay
        case malformedRegistration, refusedGrant, outdatedVersion, unsupportedTokenType, repeated
    }

    public let code: Code
    /// How long to wait.
    package var retryAfter: Duration?

    public init(_ code: Code) { self.code = code }

    public var codeText: String { code.rawValue }

    public var blame: Blame { code == .overloaded ? .ourselves : .peer }

    public var retry: RetryAdvice {
        switch code {
        case .overloaded, .rateLimited: .later
        default: .never
        }
    }

    public var sentence: String {
        switch code {
        case .rateLimited: "Too many requests; try again later."
        case .overloaded: "The relay cannot take this now; try again later."
        case .malformedMessage: "The bytes are not a message of this protocol."
        case .malformedPayload: "The payload opens, but its body has a wrong form."
        case .malformedKey: "A key has the wrong length or is not on the curve."
        case .doesNotOpen: "The sealed bytes do not open with this key."
        case .malformedRegistration: "A field of the registration is missing or malformed."
        case .refusedGrant: "The grant is not this client's for this server and this access token."
        case .outdatedVersion: "The version is not above the one that is registered."
        case .unsupportedTokenType: "There is no such kind of device token."
        case .repeated: "This request was taken before."
        case .unsigned: "No key can be recovered from the message's signature."
        }
    }
}

extension StatusError: DeferringCodedError {}
extension StatusError.Code: DeferringCode {}
