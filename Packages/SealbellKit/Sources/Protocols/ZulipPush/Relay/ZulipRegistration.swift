package import PushModel

/// What the relay remembers of one device: where to push, and no more (§1).
package struct ZulipRegistration: Sendable {
    package let kind: TokenKind
    /// As given, case included.
    package let token: Secret
    /// The APNs topic; `nil` for FCM.
    package let appID: String?
    /// What the client calls its login, where it registered with that (§14.5); `nil` in v12.
    package let accountID: Int64?

    package init(kind: TokenKind, token: Secret, appID: String?, accountID: Int64? = nil) {
        self.kind = kind
        self.token = token
        self.appID = appID
        self.accountID = accountID
    }

    private static let format: UInt8 = 1
    private static let formatWithAccount: UInt8 = 2

    /// Body of a record: format 1, kind (1 byte: 1 APNs, 2 FCM), token, app id; format 2 adds the account id.
    package var body: Secret {
        var writer = BodyWriter(format: accountID == nil ? Self.format : Self.formatWithAccount)
        writer.byte(kind == .apns ? 1 : 2)
        writer.variable(token)
        writer.variable(appID ?? "")
        if let accountID { writer.int(accountID) }
        return writer.take()
    }

    /// `nil` for a body that we did not write.
    package init?(body: Secret) {
        guard let read = body.reveal({ Self.read($0) }) else { return nil }
        self = read
    }

    private static func read(_ bytes: UnsafeRawBufferPointer) -> ZulipRegistration? {
        guard let written = bytes.first, written == format || written == formatWithAccount,
            var reader = BodyReader(bytes, format: written), let kind = reader.byte(),
            kind == 1 || kind == 2, let token = reader.variable(), let appID = reader.variable()
        else { return nil }
        var accountID: Int64?
        if written == formatWithAccount {
            guard let id = reader.int() else { return nil }
            accountID = id
        }
        guard reader.isAtEnd else { return nil }
        return ZulipRegistration(
            kind: kind == 1 ? .apns : .fcm, token: Secret(copying: token),
            appID: kind == 1 ? String(decoding: appID, as: UTF8.self) : nil, accountID: accountID)
    }
}
