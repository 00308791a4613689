public import PushModel

/// What this protocol's roles refuse, and why.
public struct ZulipError: AdvisingError {
    /// Frozen. `ZulipErrorAnswer` has the status and the wire code of each.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        /// Who asks: no credentials, or none of a server. ``ZulipError/sentence`` tells each.
        case missingAuthorization, malformedAuthorization, otherAuthorizationScheme, userInsteadOfServer
        /// Who asks: a server without a registration, with another key, or shut off.
        case unknownServer, wrongServerKey, deactivatedServer
        /// How it is asked: path, method, form, size, parameters.
        case unknownPath, legacyPath, wrongMethod, malformedForm, malformedJSON, bodyTooLarge,
            missingParameter
        /// How it is asked: the form of a parameter, how much at once, how often; `overloaded` passes.
        case wrongType, tooManyRequests, payloadTooLarge, rateLimited, overloaded
        /// Sign-up: a field has a wrong form, or its mail address gets no mail.
        case wrongLength, invalidUUID, invalidHostname, invalidMail, mailDomainRefused, mailDomainUnknown
        /// Sign-up: the id is registered, with another key.
        case keyOfOtherServer
        /// Sign-up: the server may not have the hostname, or did not prove that it does.
        case serverIsDeactivated, hostnameTaken, notAdmitted, unknownHostname, noChallenge, challengeFailed
        /// The realm is none of this server's.
        case unknownRealm, realmOfOtherServer, realmRegisteredElsewhere
        /// Registration: the box is for another key, does not open, is too old, or is one too many.
        case unknownBouncerKey, tooManyRegistrations, invalidRegistration, registrationExpired
        /// Notification: a request has a wrong form, or is for the other push service.
        case invalidRequest, kindMismatch
        /// Device and origin: a key, a content or an answer is none of this protocol, or of another account.
        case invalidPushKey, unknownPushKey, doesNotOpen, malformedContent, foreignContent, malformedAnswer
        /// Origin: more than a push service takes.
        case tooMuchContent
        /// Device: what arrived, or what was kept, is not this device's.
        case unknownAccount, foreignPush, malformedRow
    }

    /// Which refusal; all that `==` compares and `description` prints.
    public let code: Code
    /// The parameter that is missing or wrong; static text.
    package var parameter: String?
    /// The server id that a refused key was sent with. It goes back to its sender as `role`, and nowhere
    /// else: no text of this error has it.
    package var role: Secret?
    /// It answers a registration that names an account id: the specification's own spelling stands beside the
    /// deployed code (§14.5).
    package var isOfAccountForm = false
    /// Methods that the path has.
    package var allowedMethods: [String] = []
    /// How long to wait.
    package var retryAfter: Duration?

    /// An error that names no parameter.
    public init(_ code: Code) { self.code = code }

    package init(_ code: Code, parameter: StaticString) {
        self.code = code
        self.parameter = "\(parameter)"
    }

    public var codeText: String { code.rawValue }

    public var blame: Blame {
        switch code {
        case .overloaded, .malformedRow: .ourselves
        case .mailDomainUnknown: .operator
        default: .peer
        }
    }

    public var retry: RetryAdvice {
        switch code {
        case .overloaded, .rateLimited, .challengeFailed, .mailDomainUnknown: .later
        default: .never
        }
    }

    public var sentence: String {
        switch code {
        case .missingAuthorization: "Missing authorization header for basic auth"
        case .malformedAuthorization: "Invalid authorization header for basic auth"
        case .otherAuthorizationScheme: "This endpoint requires HTTP basic authentication."
        case .userInsteadOfServer: "Must validate with valid Zulip server API key"
        case .unknownServer:
            "Zulip server auth failure: the server is not registered "
                + "-- did you run manage.py register_server?"
        case .wrongServerKey: "Zulip server auth failure: key does not match role"
        case .deactivatedServer, .serverIsDeactivated:
            "The mobile push notification service registration for your server has been deactivated"
        case .unknownPath: "There is nothing at this path."
        case .legacyPath: "This relay carries end-to-end encrypted notifications only."
        case .wrongMethod: "Method Not Allowed"
        case .malformedForm: "Malformed form"
        case .malformedJSON: "Malformed JSON"
        case .bodyTooLarge: "The request is too large."
        case .missingParameter: "Missing '\(parameter ?? "parameter")' argument"
        case .wrongType: "\(parameter ?? "parameter") has a wrong form"
        case .tooManyRequests: "At most \(ZulipLimits.requestsPerCall) push requests are taken in one call."
        case .payloadTooLarge: "A payload is larger than the push services take."
        case .rateLimited: "API usage exceeded rate limit"
        case .overloaded: "The relay cannot take this now; try again later."
        case .wrongLength: "\(parameter ?? "parameter") has a wrong length"
        case .invalidUUID: "Invalid UUID"
        case .invalidHostname: "The hostname is not valid: it is a host with at most a port."
        case .invalidMail: "Enter a valid email address."
        case .mailDomainRefused: "The domain of the email address does not take mail."
        case .mailDomainUnknown: "The domain of the email address could not be looked up; try again later."
        case .keyOfOtherServer: "Zulip server auth failure: key does not match role"
        case .hostnameTaken: "A server with this hostname already exists"
        case .notAdmitted: "This relay does not admit this hostname. Ask whoever runs it."
        case .unknownHostname: "This hostname is not yet registered"
        case .noChallenge: "No transfer of this hostname is under way."
        case .challengeFailed: "The host did not show the verification secret."
        case .unknownRealm: "Organization not registered"
        case .realmOfOtherServer:
            "Your organization is registered to a different Zulip server. Please contact Zulip support"
        case .realmRegisteredElsewhere: "Duplicate registration detected."
        case .unknownBouncerKey: "Invalid bouncer_public_key"
        case .tooManyRegistrations: "This server has as many devices registered as this relay keeps."
        case .invalidRegistration: "Invalid encrypted_push_registration"
        case .registrationExpired: "Request expired"
        case .invalidRequest: "A push request has a wrong form."
        case .kindMismatch: "A push request is for another kind of push service than its device."
        case .invalidPushKey: "Invalid push_key"
        case .unknownPushKey: "No account has this push key."
        case .doesNotOpen: "The notification does not open with the push key."
        case .malformedContent: "The notification's content has a wrong form."
        case .foreignContent: "The notification is not for the account of its push key."
        case .malformedAnswer: "The peer's answer has a wrong form."
        case .tooMuchContent: "The notification is too large for a push service."
        case .unknownAccount: "No account has this push account id."
        case .foreignPush: "What arrived is no push of this protocol."
        case .malformedRow: "What was kept of the device was not written by this library."
        }
    }
}

extension ZulipError: DeferringCodedError {}
extension ZulipError.Code: DeferringCode {}
