package import PushModel
import WireFormats

/// `POST /devices` (§5.2, §5.6 d).
package struct RegistrationForm: Sendable {
    package let ownership: OwnershipForm
    /// As sent: its hash is what the server knows the device by.
    package let pushToken: Secret
    package let tokens: PushTokens
    /// `pushEnvironment`: `development` or `production`.
    package let environment: Environment?
    /// `<user id>@<server>`, sent after a 409; `nil` also for a text that is none.
    package let cloudID: CloudID?
    /// Whether the field is there at all.
    package let namesCloudID: Bool
    /// What `http.useragent` tells: it counts where the head's `User-Agent` names no client of the instance.
    package let client: ClientHint

    /// Checks in the order of §5.2: all four fields first, then the token, the key, identifier and signature.
    init(_ fields: DeviceFields) throws(NextcloudError) {
        pushToken = try fields.required(.pushToken)
        let identifier = try fields.required(.deviceIdentifier)
        let signature = try fields.required(.deviceIdentifierSignature)
        let key = try fields.required(.userPublicKey)
        tokens = try PushTokens(
            pushToken, provider: try Self.provider(fields), voip: try fields.optional(.voipToken))
        environment = try Self.environment(fields)
        ownership = try OwnershipForm(identifier: identifier, signature: signature, key: key)
        let named = try fields.optional(.cloudId)
        namesCloudID = named.map { $0.count > 0 } ?? false
        cloudID = named.flatMap { CloudID($0) }
        client = fields.client
    }

    private static func provider(_ fields: DeviceFields) throws(NextcloudError) -> PushTokens.Provider? {
        guard let text = try fields.optional(.pushProvider) else { return nil }
        return try text.reveal { (text) throws(NextcloudError) in
            if bytes(text, equal: "apns") { return .apns }
            if bytes(text, equal: "fcm") { return .fcm }
            throw NextcloudError(.wrongType, parameter: "pushProvider")
        }
    }

    private static func environment(_ fields: DeviceFields) throws(NextcloudError) -> Environment? {
        guard let text = try fields.optional(.pushEnvironment) else { return nil }
        return try text.reveal { (text) throws(NextcloudError) in
            if bytes(text, equal: "production") { return .production }
            if bytes(text, equal: "development") { return .sandbox }
            throw NextcloudError(.wrongType, parameter: "pushEnvironment")
        }
    }
}
