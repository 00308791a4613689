package import PushModel
package import WireFormats

/// What a client registers a device with (the seed, "Registration").
package struct PushNotificationRegistration: StatusMessage {
    /// Open: an unknown number survives reading.
    package struct TokenType: RawRepresentable, Sendable, Hashable {
        package let rawValue: Int32
        package init(rawValue: Int32) { self.rawValue = rawValue }

        package static let unknown = TokenType(rawValue: 0)
        package static let apn = TokenType(rawValue: 1)
        package static let firebase = TokenType(rawValue: 2)
    }

    package var tokenType: TokenType = .unknown
    package var deviceToken: Secret = .none
    package var installationID: Secret = .none
    package var accessToken: Secret = .none
    package var enabled = false
    package var version: UInt64 = 0
    /// Access tokens, each sealed to one contact.
    package var allowedKeyList: [Secret] = []
    package var blockedChatList: [Secret] = []
    package var unregister = false
    package var grant: Secret = .none
    package var allowFromContactsOnly = false
    package var apnTopic: Secret = .none
    package var blockMentions = false
    package var allowedMentionsChatList: [Secret] = []
    /// Not in the seed; deployed clients send it.
    package var mutedChatList: [Secret] = []

    package init() {}

    package static var fieldLimit: Int { StatusLimits.fields }

    package init(reading fields: inout ProtobufReader) throws(FormatError) {
        while let field = try fields.next() { try take(field) }
    }

    private mutating func take(_ field: ProtobufField) throws(FormatError) {
        switch field.number {
        case 1: tokenType = field.enumNumber.map { TokenType(rawValue: $0) } ?? tokenType
        case 2: deviceToken = try field.secretText() ?? deviceToken
        case 3: installationID = try field.secretText() ?? installationID
        case 4: accessToken = try field.secretText() ?? accessToken
        case 5: enabled = field.flag ?? enabled
        case 6: version = field.varint ?? version
        case 7: allowedKeyList += field.secret.map { [$0] } ?? []
        case 8: blockedChatList += field.secret.map { [$0] } ?? []
        case 9: unregister = field.flag ?? unregister
        case 10: grant = field.secret ?? grant
        case 11: allowFromContactsOnly = field.flag ?? allowFromContactsOnly
        case 12: apnTopic = try field.secretText() ?? apnTopic
        case 13: blockMentions = field.flag ?? blockMentions
        case 14: allowedMentionsChatList += field.secret.map { [$0] } ?? []
        case 15: mutedChatList += field.secret.map { [$0] } ?? []
        default: break
        }
    }

    package var room: Int {
        FieldRoom.heads + deviceToken.count + installationID.count + accessToken.count + grant.count
            + apnTopic.count + FieldRoom.of(allowedKeyList) + FieldRoom.of(blockedChatList)
            + FieldRoom.of(allowedMentionsChatList) + FieldRoom.of(mutedChatList)
    }

    package func write(to writer: inout ProtobufWriter) {
        writer.enumNumber(1, tokenType.rawValue)
        writer.bytes(2, deviceToken)
        writer.bytes(3, installationID)
        writer.bytes(4, accessToken)
        writer.flag(5, enabled)
        writer.varint(6, version)
        for key in allowedKeyList { writer.element(7, key) }
        for chat in blockedChatList { writer.element(8, chat) }
        writer.flag(9, unregister)
        writer.bytes(10, grant)
        writer.flag(11, allowFromContactsOnly)
        writer.bytes(12, apnTopic)
        writer.flag(13, blockMentions)
        for chat in allowedMentionsChatList { writer.element(14, chat) }
        for chat in mutedChatList { writer.element(15, chat) }
    }
}

/// The server's answer to a registration.
package struct PushNotificationRegistrationResponse: StatusMessage {
    /// Open: an unknown number survives reading.
    package struct Fault: RawRepresentable, Sendable, Hashable {
        package let rawValue: Int32
        package init(rawValue: Int32) { self.rawValue = rawValue }

        package static let unknown = Fault(rawValue: 0)
        package static let malformedMessage = Fault(rawValue: 1)
        package static let versionMismatch = Fault(rawValue: 2)
        package static let unsupportedTokenType = Fault(rawValue: 3)
        package static let internalError = Fault(rawValue: 4)
    }

    package var success = false
    package var error: Fault = .unknown
    /// SHAKE-256 of the box that the registration came in: 64 bytes.
    package var requestID: Secret = .none

    package init(success: Bool, error: Fault = .unknown, requestID: Secret) {
        self.success = success
        self.error = error
        self.requestID = requestID
    }

    package init(reading fields: inout ProtobufReader) throws(FormatError) {
        while let field = try fields.next() {
            switch field.number {
            case 1: success = field.flag ?? success
            case 2: error = field.enumNumber.map { Fault(rawValue: $0) } ?? error
            case 3: requestID = field.secret ?? requestID
            default: break
            }
        }
    }

    package var room: Int { FieldRoom.heads + requestID.count }

    package func write(to writer: inout ProtobufWriter) {
        writer.flag(1, success)
        writer.enumNumber(2, error.rawValue)
        writer.bytes(3, requestID)
    }
}
