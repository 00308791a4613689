package import PushModel
package import WireFormats

/// Asks servers for the access tokens of people.
package struct PushNotificationQuery: StatusMessage {
    /// Hashes of their keys, 64 bytes each.
    package var publicKeys: [Secret] = []

    package init(publicKeys: [Secret]) { self.publicKeys = publicKeys }

    package static var fieldLimit: Int { StatusLimits.queryFields }

    /// Hashes to look up, each once, in order: only well-formed ones, and no more than the limit.
    package var people: [Secret] {
        var people: [Secret] = []
        for key in publicKeys where key.count == StatusLimits.hashBytes {
            if people.count == StatusLimits.queriedKeys { break }
            if !people.contains(where: { $0 == key }) { people.append(key) }
        }
        return people
    }

    package init(reading fields: inout ProtobufReader) throws(FormatError) {
        while let field = try fields.next() {
            if field.number == 1, let key = field.secret { publicKeys.append(key) }
        }
    }

    package var room: Int { FieldRoom.heads + FieldRoom.of(publicKeys) }

    package func write(to writer: inout ProtobufWriter) {
        for key in publicKeys { writer.element(1, key) }
    }
}

/// What a sender needs to reach one installation. It occurs in a server's answer and in a contact code.
package struct PushNotificationQueryInfo: StatusMessage {
    package var accessToken: Secret = .none
    package var installationID: Secret = .none
    /// Hash of the registered key.
    package var publicKey: Secret = .none
    /// Takes the token's place if only contacts may send.
    package var allowedKeyList: [Secret] = []
    package var grant: Secret = .none
    package var version: UInt64 = 0
    /// 33 bytes, in a contact code; empty in a server's answer.
    package var serverPublicKey: Secret = .none

    package init() {}

    package static var fieldLimit: Int { StatusLimits.fields }

    package init(reading fields: inout ProtobufReader) throws(FormatError) {
        while let field = try fields.next() {
            switch field.number {
            case 1: accessToken = try field.secretText() ?? accessToken
            case 2: installationID = try field.secretText() ?? installationID
            case 3: publicKey = field.secret ?? publicKey
            case 4: allowedKeyList += field.secret.map { [$0] } ?? []
            case 5: grant = field.secret ?? grant
            case 6: version = field.varint ?? version
            case 7: serverPublicKey = field.secret ?? serverPublicKey
            default: break
            }
        }
    }

    package var room: Int {
        FieldRoom.heads + accessToken.count + installationID.count + publicKey.count + grant.count
            + serverPublicKey.count + FieldRoom.of(allowedKeyList)
    }

    package func write(to writer: inout ProtobufWriter) {
        writer.bytes(1, accessToken)
        writer.bytes(2, installationID)
        writer.bytes(3, publicKey)
        for key in allowedKeyList { writer.element(4, key) }
        writer.bytes(5, grant)
        writer.varint(6, version)
        writer.bytes(7, serverPublicKey)
    }
}

/// A server's answer to a query.
package struct PushNotificationQueryResponse: StatusMessage {
    package var info: [PushNotificationQueryInfo] = []
    /// The query's message id.
    package var messageID: Secret = .none
    package var success = false

    package init(info: [PushNotificationQueryInfo], messageID: Secret, success: Bool) {
        self.info = info
        self.messageID = messageID
        self.success = success
    }

    package static var fieldLimit: Int { StatusLimits.fields }

    package init(reading fields: inout ProtobufReader) throws(FormatError) {
        while let field = try fields.next() {
            switch field.number {
            case 1: info += try QueryInfos.read(field)
            case 2: messageID = field.secret ?? messageID
            case 3: success = field.flag ?? success
            default: break
            }
        }
    }

    package var room: Int { FieldRoom.heads + messageID.count + QueryInfos.room(info) }

    package func write(to writer: inout ProtobufWriter) {
        for each in info { writer.element(1, each.encoded()) }
        writer.bytes(2, messageID)
        writer.flag(3, success)
    }
}

/// What a client publishes on its contact code topic.
package struct ContactCodeAdvertisement: StatusMessage {
    package var pushNotificationInfo: [PushNotificationQueryInfo] = []
    /// The number of messages into which it was split, of which this is one; 0 or 1: it is whole. A field of
    /// our own, which others ignore: an entry that is missing from a part was not withdrawn.
    package var parts: UInt64 = 0

    package init(pushNotificationInfo: [PushNotificationQueryInfo], parts: Int = 0) {
        self.pushNotificationInfo = pushNotificationInfo
        self.parts = parts > 1 ? UInt64(parts) : 0
    }

    package var isPart: Bool { parts > 1 }

    package static var fieldLimit: Int { StatusLimits.fields }

    package init(reading fields: inout ProtobufReader) throws(FormatError) {
        while let field = try fields.next() {
            switch field.number {
            case 1: pushNotificationInfo += try QueryInfos.read(field)
            case 15: parts = field.varint ?? parts
            default: break
            }
        }
    }

    package var room: Int { FieldRoom.heads + QueryInfos.room(pushNotificationInfo) }

    package func write(to writer: inout ProtobufWriter) {
        for each in pushNotificationInfo { writer.element(1, each.encoded()) }
        writer.varint(15, parts)
    }
}

/// Infos inside another message.
enum QueryInfos {
    static func read(_ field: ProtobufField) throws(FormatError) -> [PushNotificationQueryInfo] {
        guard let bytes = field.bytes else { return [] }
        var fields = ProtobufReader(bytes, fieldLimit: PushNotificationQueryInfo.fieldLimit)
        return [try PushNotificationQueryInfo(reading: &fields)]
    }

    static func room(_ list: [PushNotificationQueryInfo]) -> Int { list.reduce(0) { $0 + $1.room + 12 } }
}
