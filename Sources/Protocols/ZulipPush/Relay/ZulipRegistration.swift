package import PushModel

/// What the relay remembers of one device: where to push, and no more (§1).
package struct ZulipRegistration: Sendable {
    package let kind: TokenKind
    /// As given, case included.
    package let token: Secret
    /// The APNs topic; `nil` for FCM.
    package let appID: String?

    package init(kind: TokenKind, token: Secret, appID: String?) {
        self.kind = kind
        self.token = token
        self.appID = appID
    }

    private static let format: UInt8 = 1

    /// Body of a record: format 1, kind (1 byte: 1 APNs, 2 FCM), token, app id.
    package var body: Secret {
        var writer = BodyWriter(format: Self.format)
        writer.byte(kind == .apns ? 1 : 2)
        writer.variable(token)
        writer.variable(appID ?? "")
        return writer.take()
    }

    /// `nil` for a body that we did not write.
    package init?(body: Secret) {
        let fields = body.reveal { bytes -> (TokenKind, Secret, String)? in
            guard var reader = BodyReader(bytes, format: Self.format), let kind = reader.byte(),
                kind == 1 || kind == 2, let token = reader.variable(), let appID = reader.variable(),
                reader.isAtEnd
            else { return nil }
            return (kind == 1 ? .apns : .fcm, Secret(copying: token), String(decoding: appID, as: UTF8.self))
        }
        guard let (kind, token, appID) = fields else { return nil }
        self.init(kind: kind, token: token, appID: kind == .apns ? appID : nil)
    }
}
