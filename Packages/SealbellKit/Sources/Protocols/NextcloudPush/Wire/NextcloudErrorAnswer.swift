import PushModel
import WireFormats

/// An error as the relay's peers see it: `{"message":"…","code":"…"}`. The code is for our own device.
///
/// It never has the members `unknown` and `failed`: with both of them a server would take a 429 for a normal
/// answer, and its admin would not hear of it (§4.7).
package struct NextcloudErrorAnswer: Sendable {
    package let status: Int
    package let headers: [(name: StaticString, value: String)]
    package let body: [UInt8]

    package init(_ error: NextcloudError) {
        status = Self.status(error.code)
        headers = Self.headers(error)
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("message", error.sentence)
        writer.member("code", error.codeText)
        writer.endObject()
        body = writer.bytes
    }

    /// HTTP status of each code, at the relay and at the origin.
    package static func status(_ code: NextcloudError.Code) -> Int {
        switch code {
        case .wrongSubscriptionKey, .notLoggedIn: 401
        case .identityRefused, .unknownDevice, .instanceUnfit, .instanceNotAdmitted: 403
        case .unknownPath: 404
        case .wrongMethod: 405
        case .keyConflict, .proofRequired, .instanceUnreachable: 409
        case .bodyTooLarge, .tooManyEntries: 413
        case .rateLimited: 429
        case .sealingFailed, .digestCheckFailed: 500
        case .overloaded, .overtaken: 503
        case .malformedForm, .malformedJSON, .missingParameter, .wrongType, .invalidPushToken,
            .unsupportedPushToken, .noAppForDevice, .invalidUserKey, .invalidIdentifier, .invalidSignature,
            .signatureMismatch, .invalidTokenHash, .invalidSessionToken, .invalidDeviceKey,
            .invalidProxyServer, .plaintextTooLong, .malformedAnswer, .unsupportedServer, .foreignSignature,
            .doesNotOpen, .malformedSubject, .refusedByServer, .refusedByProxy:
            400
        }
    }

    private static func headers(_ error: NextcloudError) -> [(name: StaticString, value: String)] {
        switch error.code {
        case .wrongMethod: [("allow", error.allowedMethods.joined(separator: ", "))]
        case .rateLimited, .overloaded, .overtaken: [("retry-after", String(error.retryAfterSeconds))]
        default: []
        }
    }
}
