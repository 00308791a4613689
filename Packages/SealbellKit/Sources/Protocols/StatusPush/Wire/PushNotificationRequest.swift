package import PushModel
package import WireFormats

/// One notification for one installation.
package struct PushNotification: StatusMessage {
    /// Open: a number without a name survives reading.
    package struct Kind: RawRepresentable, Sendable, Hashable {
        package let rawValue: Int32
        package init(rawValue: Int32) { self.rawValue = rawValue }

        package static let unknown = Kind(rawValue: 0)
        package static let message = Kind(rawValue: 1)
        package static let mention = Kind(rawValue: 2)
        /// Not in the seed; deployed clients send it.
        package static let requestToJoinCommunity = Kind(rawValue: 3)
    }

    package var accessToken: Secret = .none
    /// Hash of the chat's id.
    package var chatID: Secret = .none
    /// Hash of the recipient's key.
    package var publicKey: Secret = .none
    package var installationID: Secret = .none
    /// The link that the app opens; deployed clients leave it empty.
    package var message: Secret = .none
    package var type: Kind = .unknown
    /// Hash of the sender's contact id.
    package var author: Secret = .none

    package init() {}

    package init(reading fields: inout ProtobufReader) throws(FormatError) {
        while let field = try fields.next() {
            switch field.number {
            case 1: accessToken = try field.secretText() ?? accessToken
            case 2: chatID = field.secret ?? chatID
            case 3: publicKey = field.secret ?? publicKey
            case 4: installationID = try field.secretText() ?? installationID
            case 5: message = field.secret ?? message
            case 6: type = field.enumNumber.map { Kind(rawValue: $0) } ?? type
            case 7: author = field.secret ?? author
            default: break
            }
        }
    }

    package var room: Int {
        FieldRoom.heads + accessToken.count + chatID.count + publicKey.count + installationID.count
            + message.count + author.count
    }

    package func write(to writer: inout ProtobufWriter) {
        writer.bytes(1, accessToken)
        writer.bytes(2, chatID)
        writer.bytes(3, publicKey)
        writer.bytes(4, installationID)
        writer.bytes(5, message)
        writer.enumNumber(6, type.rawValue)
        writer.bytes(7, author)
    }
}

/// Asks a server to push.
package struct PushNotificationRequest: StatusMessage {
    package var requests: [PushNotification] = []
    /// The chat message's id, which the answer repeats.
    package var messageID: Secret = .none

    package init(requests: [PushNotification], messageID: Secret) {
        self.requests = requests
        self.messageID = messageID
    }

    package static var fieldLimit: Int { StatusLimits.requestFields }

    package init(reading fields: inout ProtobufReader) throws(FormatError) {
        while let field = try fields.next() {
            switch field.number {
            case 1:
                guard let bytes = field.bytes else { continue }
                var inner = ProtobufReader(bytes, fieldLimit: PushNotification.fieldLimit)
                requests.append(try PushNotification(reading: &inner))
            case 2: messageID = field.secret ?? messageID
            default: break
            }
        }
    }

    package var room: Int {
        FieldRoom.heads + messageID.count + requests.reduce(0) { $0 + $1.room + 12 }
    }

    package func write(to writer: inout ProtobufWriter) {
        for each in requests { writer.element(1, each.encoded()) }
        writer.bytes(2, messageID)
    }
}

/// The result of one notification.
package struct PushNotificationReport: StatusMessage {
    /// Open: a number without a name survives reading.
    package struct Fault: RawRepresentable, Sendable, Hashable {
        package let rawValue: Int32
        package init(rawValue: Int32) { self.rawValue = rawValue }

        package static let unknown = Fault(rawValue: 0)
        package static let wrongToken = Fault(rawValue: 1)
        package static let internalError = Fault(rawValue: 2)
        package static let notRegistered = Fault(rawValue: 3)
    }

    package var success = false
    package var error: Fault = .unknown
    package var publicKey: Secret = .none
    package var installationID: Secret = .none

    package init(success: Bool, error: Fault = .unknown, publicKey: Secret, installationID: Secret) {
        self.success = success
        self.error = error
        self.publicKey = publicKey
        self.installationID = installationID
    }

    package init(reading fields: inout ProtobufReader) throws(FormatError) {
        while let field = try fields.next() {
            switch field.number {
            case 1: success = field.flag ?? success
            case 2: error = field.enumNumber.map { Fault(rawValue: $0) } ?? error
            case 3: publicKey = field.secret ?? publicKey
            case 4: installationID = try field.secretText() ?? installationID
            default: break
            }
        }
    }

    package var room: Int { FieldRoom.heads + publicKey.count + installationID.count }

    package func write(to writer: inout ProtobufWriter) {
        writer.flag(1, success)
        writer.enumNumber(2, error.rawValue)
        writer.bytes(3, publicKey)
        writer.bytes(4, installationID)
    }
}

/// A server's answer to a request.
package struct PushNotificationResponse: StatusMessage {
    package var messageID: Secret = .none
    /// In the request's order.
    package var reports: [PushNotificationReport] = []

    package init(messageID: Secret, reports: [PushNotificationReport]) {
        self.messageID = messageID
        self.reports = reports
    }

    package static var fieldLimit: Int { StatusLimits.fields }

    package init(reading fields: inout ProtobufReader) throws(FormatError) {
        while let field = try fields.next() {
            switch field.number {
            case 1: messageID = field.secret ?? messageID
            case 2:
                guard let bytes = field.bytes else { continue }
                var inner = ProtobufReader(bytes, fieldLimit: PushNotificationReport.fieldLimit)
                reports.append(try PushNotificationReport(reading: &inner))
            default: break
            }
        }
    }

    package var room: Int {
        FieldRoom.heads + messageID.count + reports.reduce(0) { $0 + $1.room + 12 }
    }

    package func write(to writer: inout ProtobufWriter) {
        writer.bytes(1, messageID)
        for each in reports { writer.element(2, each.encoded()) }
    }
}
