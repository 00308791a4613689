public import PushModel

/// What this protocol's roles refuse, and why.
public struct SessionError: AdvisingError {
    /// Frozen. `wireCode` has the number that the relay answers with.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        /// How the relay is asked: path, method, size, form. ``SessionError/sentence`` tells each.
        case unknownPath, wrongMethod, bodyTooLarge, tooManyElements, malformedBody
        /// Too often; `overloaded` passes.
        case rateLimited, overloaded
        /// Subscribing: a field, the push service, or the token.
        case missingField, malformedField, unknownService, unavailableService, invalidToken
        /// Subscribing: the signature is too old, of another key, of a refused subaccount, or wrong.
        case outsideTimeWindow, keyMismatch, subaccountRefused, signatureMismatch
        /// Subscribing: something newer stands, or there are too many subscriptions.
        case unsubscribedSince, subscribedSince, tooManySubscriptions
        /// Onion requests: the layer, or what is in it, has a wrong form.
        case malformedOnion, malformedOnionRequest
        /// The swarm: what a service node said has a wrong form.
        case malformedNodes, malformedNotice, malformedMonitorReply
        /// Device: what the app gave has a wrong form or length.
        case malformedKey, malformedSubaccount, malformedNamespaces, malformedToken, malformedServer
        /// Device: bounds of ``SessionLimits``, a path that fails, an answer or row that is none.
        case tooManyAccounts, pathTooLong, pathFailed, malformedAnswer, malformedRow
        /// Device: what arrived is no push of Session, or does not open.
        case foreignPush, doesNotOpen, malformedPush
    }

    /// Which refusal; all that `==` compares and `description` prints.
    public let code: Code
    /// The field that is missing or wrong; static text.
    package var field: String?
    /// Methods that the path has.
    package var allowedMethods: [String] = []
    /// How long to wait.
    package var retryAfter: Duration?

    /// An error that names no field.
    public init(_ code: Code) { self.code = code }

    package init(_ code: Code, field: StaticString) {
        self.code = code
        self.field = "\(field)"
    }

    public var codeText: String { code.rawValue }

    public var blame: Blame {
        switch code {
        case .overloaded, .malformedRow: .ourselves
        default: .peer
        }
    }

    public var retry: RetryAdvice {
        switch code {
        case .overloaded, .rateLimited, .pathFailed: .later
        default: .never
        }
    }

    public var sentence: String {
        switch code {
        case .unknownPath: "There is nothing at this path."
        case .wrongMethod: "This path has no such method."
        case .bodyTooLarge: "The request is too large."
        case .tooManyElements: "The request has too many elements."
        case .malformedBody: "The body is neither a JSON object nor an array."
        case .rateLimited: "Too many requests; try again later."
        case .overloaded: "The relay cannot take this now; try again later."
        case .missingField: "\(field ?? "A field") is missing."
        case .malformedField: "\(field ?? "A field") is malformed."
        case .unknownService: "There is no such push service."
        case .unavailableService: "This relay does not have that push service."
        case .invalidToken: "The device token is malformed."
        case .outsideTimeWindow: "The signature is too old, or its time lies in the future."
        case .keyMismatch: "session_ed25519 is not the key of this account."
        case .subaccountRefused: "The subaccount is not one that this account has given the right to read."
        case .signatureMismatch: "The signature does not fit."
        case .unsubscribedSince: "This device was unsubscribed since; sign again."
        case .subscribedSince: "This device was subscribed since, with a later signature; sign again."
        case .tooManySubscriptions: "Whoever signs has too many subscriptions of this account."
        case .malformedOnion: "The onion request is malformed or is for another key."
        case .malformedOnionRequest: "Invalid v4 onion request"
        case .malformedNodes: "The answer does not list service nodes."
        case .malformedNotice: "A storage server's notice is malformed."
        case .malformedMonitorReply: "A storage server's reply is malformed."
        case .malformedKey: "A key has the wrong length, or nothing can be signed or sealed with it."
        case .malformedSubaccount: "The subaccount is not signed by its owner for this key."
        case .malformedNamespaces: "There are no namespaces to watch, or too many."
        case .malformedToken: "The device token is not of a form that its push service has."
        case .malformedServer: "The push server's address is not a host and a port."
        case .tooManyAccounts: "There are more accounts than one phone may watch."
        case .pathTooLong: "An onion request has more nodes than storage servers pass on."
        case .pathFailed: "The onion request did not reach the server, or the server could not read it."
        case .malformedAnswer: "The server's answer has a wrong form."
        case .malformedRow: "What was kept of the device was not written by this library."
        case .foreignPush: "What arrived is no push of this protocol."
        case .doesNotOpen: "The sealed bytes do not open with this key."
        case .malformedPush: "The push opens, but its content has a wrong form."
        }
    }

    /// The integer `error` of an answer (§3.2).
    package var wireCode: Int64 {
        switch code {
        case .malformedBody, .bodyTooLarge, .tooManyElements, .missingField, .malformedField: 1
        case .unknownService, .unavailableService: 2
        // No worker of ours can be late: what is said is to try again.
        case .overloaded, .rateLimited: 3
        case .invalidToken, .outsideTimeWindow, .keyMismatch, .subaccountRefused, .signatureMismatch,
            .unsubscribedSince, .subscribedSince, .tooManySubscriptions:
            4
        // Never answered in this form.
        case .unknownPath, .wrongMethod, .malformedOnion, .malformedOnionRequest, .malformedNodes,
            .malformedNotice, .malformedMonitorReply, .malformedKey, .malformedSubaccount,
            .malformedNamespaces, .malformedToken, .malformedServer, .tooManyAccounts, .pathTooLong,
            .pathFailed, .malformedAnswer, .malformedRow, .foreignPush, .doesNotOpen, .malformedPush:
            5
        }
    }
}

extension SessionError: DeferringCodedError {}
extension SessionError.Code: DeferringCode {}
