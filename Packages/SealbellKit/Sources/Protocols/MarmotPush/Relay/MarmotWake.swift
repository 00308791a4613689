package import PushModel
import WireFormats

/// The content of a wake: the same bytes for everybody, so that they reveal nothing
/// (docs/conformance/marmot.md).
package struct MarmotWake: Sendable {
    package let pushType: APNsPushType
    package let priority: UInt8
    /// The body for APNs.
    package let payload: Secret
    /// The `data` for FCM, which gets data only in every mode.
    package let data: Secret

    /// No badge, although the seed text lists one: a background push must not carry one, and a server that
    /// keeps nothing has no number for it.
    package static let silent = MarmotWake(
        .background, 5, Secret(#"{"aps":{"content-available":1}}"#.utf8))

    /// An alert with a fixed text, for an app that Apple would not wake often enough.
    ///
    /// - Parameter isMutable: lets the app's extension fetch messages and replace the text.
    /// - Throws: `.tooMuchContent` if the text is empty, or the body is larger than Apple accepts.
    package static func alert(
        title: String, body: String, isMutable: Bool
    ) throws(MarmotError) -> MarmotWake {
        guard !title.isEmpty, !body.isEmpty else { throw MarmotError(.tooMuchContent) }
        var writer = JSONWriter()
        writer.beginObject()
        writer.beginObject("aps")
        writer.beginObject("alert")
        writer.member("title", title)
        writer.member("body", body)
        writer.endObject()
        writer.member("sound", "default")
        if isMutable {
            writer.member("mutable-content", 1)
        }
        writer.endObject()
        writer.endObject()
        guard writer.bytes.count <= APNsPushType.alert.bodyLimitBytes else {
            throw MarmotError(.tooMuchContent)
        }
        return MarmotWake(.alert, 10, Secret(writer.bytes))
    }

    /// The deployed server's text.
    package static let defaultTitle = "New activity"
    package static let defaultBody = "You have a new notification"

    private init(_ pushType: APNsPushType, _ priority: UInt8, _ payload: Secret) {
        self.pushType = pushType
        self.priority = priority
        self.payload = payload
        data = Secret(#"{"content_available":"true"}"#.utf8)
    }

    /// The same for every wake, so that it reveals nothing: a push service keeps one wake for a phone that is
    /// off, and a phone shows one.
    private static let collapse = Secret("wake".utf8)

    /// The message for one device.
    ///
    /// - Returns: `nil` for an address that no push service could have issued.
    func message(for target: DeviceTarget, topic: String, at now: UnixTime) -> ProviderMessage? {
        switch target.platform {
        case .fcm:
            return .fcm(
                FCMMessage(
                    address: target.token, priority: .high, ttl: MarmotLimits.wakeLife,
                    collapseKey: Self.collapse, data: data))
        case .apns:
            guard target.token.count <= MarmotLimits.apnsTokenBytes else { return nil }
            return .apns(
                APNsMessage(
                    token: Self.hex(target.token), bundle: topic, pushType: pushType, priority: priority,
                    expiration: now + MarmotLimits.wakeLife, collapseID: Self.collapse, payload: payload))
        }
    }

    private static func hex(_ token: Secret) -> Secret {
        Secret(count: 2 * token.count) { out in
            token.reveal { token in
                for (at, byte) in token.enumerated() {
                    out[2 * at] = digit(byte >> 4)
                    out[2 * at + 1] = digit(byte & 15)
                }
            }
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
}
