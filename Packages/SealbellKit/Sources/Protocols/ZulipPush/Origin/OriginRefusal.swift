import WireFormats

/// What an origin's door refuses, and the answer to it (§3, §14.4): the envelope and codes of deployed
/// servers. Nothing has changed when one is thrown.
public struct OriginRefusal: Error, Sendable, Hashable {
    /// Which refusal; ``OriginRefusal/code`` and ``OriginRefusal/sentence`` are what a client is told.
    public enum Word: Sendable, Hashable, CaseIterable {
        /// The body is no form, or has too many fields.
        case malformedForm
        /// The caller is no person (§14.4).
        case isBot
        /// The server has no relay.
        case noRelay
        /// A plaintext registration (§14.13).
        case legacy
        /// A parameter is missing; ``OriginRefusal/parameter`` names it.
        case missing
        /// A parameter has a wrong form; ``OriginRefusal/parameter`` names it.
        case malformed
        /// Marks of two profiles in one call (§14.1).
        case mixedProfiles
        /// The device is none of the user's, a group of parameters is cut, or there is nothing yet to rotate
        /// (§3.3).
        case invalidDeviceID, incompleteGroups, noRegistrationForKey, noRegistrationForToken
        /// `push_key` or `token_id` has a wrong form.
        case invalidPushKey, invalidTokenID
        /// As many records as one user may have, ``ZulipOriginLimits/recordsPerUser``.
        case tooManyDevices
        /// A test notification for which nothing is left.
        case noActiveDevice
        /// An event queue that was closed, or that is another user's.
        case unknownQueue
    }

    /// Which refusal.
    public let word: Word
    /// Static text.
    public let parameter: String?

    init(_ word: Word) { (self.word, parameter) = (word, nil) }

    init(_ word: Word, _ parameter: StaticString) { (self.word, self.parameter) = (word, "\(parameter)") }

    /// HTTP status: 400, as every refusal of this kind has it.
    public var status: Int { 400 }

    /// `code` of the envelope.
    public var code: String {
        switch word {
        case .missing: "REQUEST_VARIABLE_MISSING"
        case .noActiveDevice: "NO_ACTIVE_PUSH_DEVICE"
        case .unknownQueue: "BAD_EVENT_QUEUE_ID"
        case .noRelay: "PUSH_SERVICE_NOT_CONFIGURED"
        case .malformedForm, .isBot, .legacy, .malformed, .mixedProfiles, .invalidDeviceID,
            .incompleteGroups, .noRegistrationForKey, .noRegistrationForToken, .invalidPushKey,
            .invalidTokenID, .tooManyDevices:
            "BAD_REQUEST"
        }
    }

    /// `msg` of the envelope. No input is in it.
    public var sentence: String {
        switch word {
        case .malformedForm: "Malformed form"
        case .isBot: "Only people have phones: a bot cannot register one."
        case .noRelay: "Server is not configured to use push notification service."
        case .legacy: "This server sends encrypted notifications only; update the app."
        case .missing: "Missing '\(parameter ?? "parameter")' argument"
        case .malformed: "Invalid `\(parameter ?? "parameter")`"
        case .mixedProfiles: "The parameters of two kinds of registration cannot be in one call."
        case .invalidDeviceID: "Invalid `device_id`"
        case .incompleteGroups:
            "Missing parameters: must provide either all push key fields, all token fields, or both."
        case .noRegistrationForKey: "No push registration exists to rotate key for."
        case .noRegistrationForToken: "No push registration exists to rotate token for."
        case .invalidPushKey: "Invalid `push_key`"
        case .invalidTokenID: "`token_id` is not Base64 encoded"
        case .tooManyDevices: "This account has as many devices as one may have."
        case .unknownQueue: "This event queue is not known: register another."
        case .noActiveDevice: "No device of this account is registered for notifications."
        }
    }

    /// The body of the answer: compact JSON of `result`, `msg`, `code` and, with `.missing`, `var_name`.
    public func body() -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("result", "error")
        writer.member("msg", sentence)
        writer.member("code", code)
        if word == .missing, let parameter { writer.member("var_name", parameter) }
        writer.endObject()
        return writer.bytes
    }
}
