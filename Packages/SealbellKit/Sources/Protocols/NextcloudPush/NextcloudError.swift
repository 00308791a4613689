public import PushModel

/// What this protocol's roles refuse, and why.
public struct NextcloudError: AdvisingError {
    /// Frozen. `NextcloudErrorAnswer` has the status of each.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        /// How the relay is asked: path, method, size, form. ``NextcloudError/sentence`` tells each.
        case unknownPath, wrongMethod, bodyTooLarge, tooManyEntries, malformedForm, malformedJSON
        /// How the relay is asked: another server's key, or too often; `overloaded` and `overtaken` pass.
        case wrongSubscriptionKey, rateLimited, overloaded, overtaken
        /// Registration at the relay: a parameter, or the token.
        case missingParameter, wrongType, invalidPushToken, unsupportedPushToken, noAppForDevice
        /// Registration at the relay: key, identifier or signature does not fit.
        case invalidUserKey, invalidIdentifier, invalidSignature, signatureMismatch
        /// Registration at the relay: the device is another's, unknown, or its server did not vouch for it.
        case keyConflict, proofRequired, instanceUnreachable, identityRefused, unknownDevice
        /// Registration at the relay: the server has no user with this key, or may not register here.
        case instanceUnfit, instanceNotAdmitted
        /// The relay itself: its processor computes SHA-512 wrongly.
        case digestCheckFailed
        /// Registration at the origin: no session.
        case notLoggedIn
        /// Registration at the origin: no SHA-512 in hex, 128 digits.
        case invalidTokenHash = "INVALID_PUSHTOKEN_HASH"
        /// Registration at the origin: the session has no app password.
        case invalidSessionToken = "INVALID_SESSION_TOKEN"
        /// Registration at the origin: no RSA key of 2,048 bits as PEM.
        case invalidDeviceKey = "INVALID_DEVICE_KEY"
        /// Registration at the origin: no URL of a push proxy.
        case invalidProxyServer = "INVALID_PROXY_SERVER"
        /// Origin: more than RSA takes, or what a peer answered is none of this protocol.
        case plaintextTooLong, sealingFailed, malformedAnswer, unsupportedServer
        /// Device: what arrived is another server's, or does not open; who refused a registration.
        case foreignSignature, doesNotOpen, malformedSubject, refusedByServer, refusedByProxy
    }

    /// Which refusal; all that `==` compares and `description` prints.
    public let code: Code
    /// The parameter that is missing or wrong; static text.
    package var parameter: String?
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
        case .overloaded, .overtaken: .ourselves
        case .digestCheckFailed: .operator
        default: .peer
        }
    }

    public var retry: RetryAdvice {
        switch code {
        case .overloaded, .overtaken, .rateLimited, .instanceUnreachable: .later
        default: .never
        }
    }

    public var sentence: String {
        switch code {
        case .unknownPath: "There is nothing at this path."
        case .wrongMethod: "This path has no such method."
        case .bodyTooLarge: "The request is too large."
        case .tooManyEntries: "The request has too many entries."
        case .malformedForm: "The form is malformed."
        case .malformedJSON: "The JSON is malformed."
        case .wrongSubscriptionKey: "The subscription key is not one that this relay knows."
        case .rateLimited: "Too many requests; try again later."
        case .overloaded: "The relay cannot take this now; try again later."
        case .overtaken: "Another call has changed this device meanwhile; try again."
        case .missingParameter: "\(parameter ?? "A parameter") is missing or empty."
        case .wrongType: "\(parameter ?? "A parameter") is not a text."
        case .invalidPushToken: "The push token is malformed."
        case .unsupportedPushToken: "The push token is of a push service that this relay does not have."
        case .noAppForDevice: "No app of this relay fits the device."
        case .invalidUserKey: "The user's public key is no RSA key of 2048 bits in PEM."
        case .invalidIdentifier: "The device identifier is malformed."
        case .invalidSignature: "The signature of the device identifier is malformed."
        case .signatureMismatch: "The signature does not fit the device identifier and the user's key."
        case .keyConflict:
            "Another key is registered for this device. Send the field cloudId to prove whose it is."
        case .proofRequired:
            "This device is registered with a proof only. Send the field cloudId of an instance that is "
                + "reached at a public address by https."
        case .instanceUnreachable: "The instance could not be asked whose key this is; try again later."
        case .instanceUnfit:
            "The instance of cloudId proves nothing: it must answer at a public address, by https with a "
                + "trusted certificate, and without a redirect."
        case .instanceNotAdmitted: "Devices of the instance of cloudId do not register at this relay."
        case .identityRefused: "The instance does not know this key as that user's."
        case .unknownDevice: "No device is registered with this identifier and key."
        case .digestCheckFailed:
            "The cryptographic library does not verify signatures over a given digest. Build Sealbell with "
                + "the library that it names."
        case .notLoggedIn: "The device is not logged in."
        case .invalidTokenHash: "The hash of the push token is no SHA-512 in lower-case hexadecimal."
        case .invalidSessionToken: "The device has not logged in with an app password."
        case .invalidDeviceKey: "The device's public key is no RSA key of 2048 bits in PEM."
        case .invalidProxyServer: "The address of the push proxy is not a valid https URL."
        case .plaintextTooLong: "The notification is longer than its padding leaves room for."
        case .sealingFailed: "The notification could not be encrypted."
        case .malformedAnswer: "The peer's answer has a wrong form."
        case .unsupportedServer: "The server does not offer push notifications for devices."
        case .foreignSignature: "The notification is signed by no account of this device."
        case .doesNotOpen: "The notification does not open with the device's key."
        case .malformedSubject: "The notification's content has a wrong form."
        case .refusedByServer: "The server refuses to register the device."
        case .refusedByProxy: "The push proxy refuses to register the device."
        }
    }
}

extension NextcloudError: DeferringCodedError {}
extension NextcloudError.Code: DeferringCode {}
