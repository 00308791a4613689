import PushModel
import WireFormats

/// The payload for a push service for one notification, the same as Status's gateway sends.
struct StatusPayload {
    let entry: PushNotification

    init(_ entry: PushNotification) { self.entry = entry }

    /// The topic for an iPhone: its own, else the instance's.
    static func bundle(_ registration: PushNotificationRegistration, _ policy: StatusPolicy) -> String? {
        registration.apnTopic.count > 0
            ? registration.apnTopic.reveal { String(decoding: $0, as: UTF8.self) } : policy.defaultBundle
    }

    /// `nil` if the instance has no way to such a device.
    func message(to registration: PushNotificationRegistration, _ policy: StatusPolicy) -> ProviderMessage? {
        switch registration.tokenType {
        case .apn:
            guard let bundle = Self.bundle(registration, policy) else { return nil }
            return .apns(
                APNsMessage(
                    token: APNsMessage.canonical(registration.deviceToken), bundle: bundle,
                    topicForm: .asNamed, pushType: .alert,
                    priority: 10, payload: fitting { object(inAps: true, withMessage: $0) }))
        case .firebase:
            return .fcm(
                FCMMessage(
                    address: registration.deviceToken, app: policy.fcmApp, priority: .high,
                    data: fitting { object(inAps: false, withMessage: $0) }, notice: "\(text)"))
        default: return nil
        }
    }

    /// The texts of deployed servers.
    var text: StaticString {
        switch entry.type {
        case .message: "You have a new message"
        case .requestToJoinCommunity: "Someone requested to join a community you are an admin of"
        default: "Someone mentioned you"
        }
    }

    /// If the sealed message takes too much room it is left out: the app fetches the message itself.
    func fitting(_ make: (_ withMessage: Bool) -> Secret) -> Secret {
        let whole = make(true)
        return whole.count <= StatusLimits.pushBytes ? whole : make(false)
    }

    /// Keys of deployed servers, and those of the seed.
    private func object(inAps: Bool, withMessage: Bool) -> Secret {
        let message = withMessage ? entry.message : .none
        var writer = JSONWriter(
            reserving: 1_024 + 4 * (message.count + entry.chatID.count + entry.publicKey.count)
                + 6 * entry.installationID.count)
        writer.beginObject()
        if inAps {
            writer.beginObject("aps")
            writer.member("alert", "\(text)")
            writer.endObject()
        }
        members(message, &writer)
        seedMembers(withMessage: withMessage, asTexts: !inAps, &writer)
        writer.endObject()
        return writer.takeSecret()
    }

    /// Keys of deployed servers.
    func members(_ message: Secret, _ writer: inout JSONWriter) {
        hex("encryptedMessage", message, &writer)
        hex("chatId", entry.chatID, &writer)
        hex("publicKey", entry.publicKey, &writer)
    }

    /// Keys of the seed.
    ///
    /// - Parameter asTexts: for a push service that takes only strings.
    func seedMembers(withMessage: Bool, asTexts: Bool, _ writer: inout JSONWriter) {
        hex("chat_id", entry.chatID, &writer)
        if withMessage { hex("message", entry.message, &writer) }
        installations(asText: asTexts, &writer)
    }

    private func hex(_ name: StaticString, _ value: Secret, _ writer: inout JSONWriter) {
        writer.key(name)
        let digits = value.hexDigits
        let text = Secret(count: 2 + digits.count) { out in
            out[0] = UInt8(ascii: "0")
            out[1] = UInt8(ascii: "x")
            digits.reveal { UnsafeMutableRawBufferPointer(rebasing: out[2...]).copyBytes(from: $0) }
        }
        text.reveal { writer.string(utf8: $0) }
    }

    /// A list of one; Google takes only strings, so there it is the list's JSON.
    private func installations(asText: Bool, _ writer: inout JSONWriter) {
        writer.key("installation_ids")
        guard asText else {
            writer.beginArray()
            entry.installationID.reveal { writer.string(utf8: $0) }
            writer.endArray()
            return
        }
        var inner = JSONWriter(reserving: 16 + 6 * entry.installationID.count)
        inner.beginArray()
        entry.installationID.reveal { inner.string(utf8: $0) }
        inner.endArray()
        inner.takeSecret().reveal { writer.string(utf8: $0) }
    }
}
