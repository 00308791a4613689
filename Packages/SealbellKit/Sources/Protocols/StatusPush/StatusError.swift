import PushModel

/// What this protocol's roles refuse, and why.
package struct StatusError: PushError {
    /// Frozen.
    package enum Code: String, Sendable, Hashable, CaseIterable {
        // Of the moment
        case rateLimited, overloaded
        // Bytes
        case malformedMessage, malformedPayload, malformedKey, doesNotOpen, unsigned
        // The relay
        case malformedRegistration, refusedGrant, outdatedVersion, unsupportedTokenType, repeated
        // The ends
        case malformedInstallation, malformedToken, malformedRow, tooManyServers, tooManyEntries
        case sendingIsOff, tooManyNotifications, foreignPush
    }

    package let code: Code
    /// How long to wait.
    package var retryAfter: Duration?

    package init(_ code: Code) { self.code = code }

    package var codeText: String { code.rawValue }

    package var sentence: String {
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
        case .malformedInstallation: "The installation id is not a UUID."
        case .malformedToken: "The device token or its topic is empty, too long, or not of visible ASCII."
        case .malformedRow: "What was kept of the client was not written by this library."
        case .tooManyServers: "There are more servers than one account may register at."
        case .tooManyEntries: "The settings list more contacts or chats than a registration may."
        case .sendingIsOff: "The user has not asked for pushes to be sent."
        case .tooManyNotifications: "Too many notifications are under way; try again later."
        case .foreignPush: "What arrived is no push of this protocol."
        }
    }
}

extension StatusError: DeferringCodedError {}
extension StatusError.Code: DeferringCode {}
