import PushModel
import WireFormats

/// An error as the relay's peers see it: the deployed envelope and codes (§5.1 to §5.5).
package struct ZulipErrorAnswer: Sendable {
    package let status: Int
    /// `code` of the envelope; `nil` where the deployed relay sends none, which is with a wrong method.
    package let wireCode: String?
    package let headers: [(name: StaticString, value: String)]
    package let body: [UInt8]

    package init(_ error: ZulipError) {
        status = Self.status(error.code)
        wireCode = Self.wireCode(error.code)
        headers = Self.headers(error)
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("result", "error")
        writer.key("msg")
        Self.message(error, &writer)
        if let wireCode {
            writer.member("code", wireCode)
        }
        if error.isOfAccountForm, let word = Self.documentCode(error.code) {
            writer.member("error_code", word)
        }
        Self.extras(error, &writer)
        writer.endObject()
        body = writer.bytes
    }

    /// HTTP status of each code.
    package static func status(_ code: ZulipError.Code) -> Int {
        switch code {
        case .missingAuthorization, .malformedAuthorization, .unknownServer, .wrongServerKey,
            .deactivatedServer,
            .serverIsDeactivated:
            401
        case .unknownRealm, .realmOfOtherServer: 403
        case .unknownPath: 404
        case .wrongMethod: 405
        case .rateLimited: 429
        case .overloaded, .mailDomainUnknown: 503
        case .otherAuthorizationScheme, .userInsteadOfServer, .legacyPath, .malformedForm, .malformedJSON,
            .bodyTooLarge, .missingParameter, .wrongType, .tooManyRequests, .payloadTooLarge, .wrongLength,
            .invalidUUID, .invalidHostname, .invalidMail, .mailDomainRefused, .keyOfOtherServer,
            .hostnameTaken,
            .notAdmitted, .unknownHostname, .noChallenge, .challengeFailed, .realmRegisteredElsewhere,
            .unknownBouncerKey, .tooManyRegistrations, .invalidRegistration, .registrationExpired,
            .invalidRequest, .kindMismatch,
            .invalidPushKey, .unknownPushKey, .doesNotOpen, .malformedContent, .foreignContent,
            .malformedAnswer,
            .tooMuchContent, .unknownAccount, .foreignPush, .malformedRow:
            400
        }
    }

    /// The spelling of deployed servers.
    package static func wireCode(_ code: ZulipError.Code) -> String? {
        switch code {
        case .missingAuthorization, .malformedAuthorization, .unknownServer, .wrongServerKey,
            .deactivatedServer:
            "UNAUTHORIZED"
        case .serverIsDeactivated: "REALM_DEACTIVATED"
        case .missingParameter: "REQUEST_VARIABLE_MISSING"
        case .rateLimited: "RATE_LIMIT_HIT"
        case .keyOfOtherServer: "INVALID_ZULIP_SERVER"
        case .hostnameTaken: "HOSTNAME_ALREADY_IN_USE_BOUNCER_ERROR"
        case .unknownRealm: "MISSING_REMOTE_REALM"
        case .realmOfOtherServer: "REMOTE_REALM_SERVER_MISMATCH_ERROR"
        case .unknownBouncerKey: "INVALID_BOUNCER_PUBLIC_KEY"
        case .registrationExpired: "REQUEST_EXPIRED"
        case .overloaded, .mailDomainUnknown: "SERVICE_UNAVAILABLE"
        case .wrongMethod: nil
        case .otherAuthorizationScheme, .userInsteadOfServer, .unknownPath, .legacyPath, .malformedForm,
            .malformedJSON, .bodyTooLarge, .wrongType, .tooManyRequests, .payloadTooLarge, .wrongLength,
            .invalidUUID, .invalidHostname, .invalidMail, .mailDomainRefused, .notAdmitted,
            .unknownHostname, .noChallenge, .challengeFailed, .realmRegisteredElsewhere,
            .tooManyRegistrations, .invalidRegistration, .invalidRequest, .kindMismatch, .invalidPushKey,
            .unknownPushKey, .doesNotOpen, .malformedContent, .foreignContent,
            .malformedAnswer, .tooMuchContent, .unknownAccount, .foreignPush, .malformedRow:
            "BAD_REQUEST"
        }
    }

    /// The spelling of the specification at the relay, where it names the error (§14.5): a server that knows
    /// only that reads it beside the deployed one.
    static func documentCode(_ code: ZulipError.Code) -> String? {
        switch code {
        case .unknownBouncerKey: "INVALID_BOUNCER_PUBLIC_KEY"
        case .registrationExpired: "request_expired"
        default: nil
        }
    }

    /// The sentence; deployed relays name the role at its end.
    private static func message(_ error: ZulipError, _ writer: inout JSONWriter) {
        guard let role = error.role else { return writer.string(error.sentence) }
        let text = role.reveal { Array(error.sentence.utf8) + [0x20] + $0 }
        withBytes(text) { writer.string(utf8: $0) }
    }

    private static func headers(_ error: ZulipError) -> [(name: StaticString, value: String)] {
        switch error.code {
        case .missingAuthorization, .malformedAuthorization, .unknownServer, .wrongServerKey,
            .deactivatedServer:
            [("www-authenticate", "Basic realm=\"zulip\"")]
        case .wrongMethod: [("allow", error.allowedMethods.joined(separator: ", "))]
        case .rateLimited, .overloaded, .mailDomainUnknown:
            [("retry-after", String(error.retryAfterSeconds))]
        default: []
        }
    }

    private static func extras(_ error: ZulipError, _ writer: inout JSONWriter) {
        switch error.code {
        case .missingParameter:
            writer.member("var_name", error.parameter ?? "")
        case .keyOfOtherServer:
            writer.member("role", utf8: error.role ?? Secret([]))
        case .wrongMethod:
            writer.beginArray("allowed_methods")
            for method in error.allowedMethods { writer.string(method) }
            writer.endArray()
        case .rateLimited:
            writer.member("retry-after", error.retryAfterSeconds)
        default: break
        }
    }
}
