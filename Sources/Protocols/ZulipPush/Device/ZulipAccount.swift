public import PushModel

/// One login on a phone: whose notifications these are.
public struct ZulipAccount: Sendable, Hashable {
    public var realmURL: String
    public var userID: Int64

    public init(realmURL: String, userID: Int64) {
        self.realmURL = realmURL
        self.userID = userID
    }
}

/// A push key that a phone holds. Kept out of backups (§8).
public struct HeldPushKey: Sendable {
    /// Random, unique on the phone over all accounts.
    public let id: UInt32
    public let key: PushKey
    public let createdAt: UnixTime
    /// Since when a newer key has taken over; it still opens what was sealed before.
    public var supersededAt: UnixTime?

    public init(id: UInt32, key: PushKey, createdAt: UnixTime, supersededAt: UnixTime? = nil) {
        self.id = id
        self.key = key
        self.createdAt = createdAt
        self.supersededAt = supersededAt
    }
}

/// What the server shows of one device: a row of `devices` (§3.5). All members may be null.
public struct ZulipDeviceState: Sendable, Hashable {
    public var pushKeyID: UInt32?
    public var tokenID: TokenID?
    public var pendingTokenID: TokenID?
    /// Unix seconds.
    public var tokenUpdatedAt: Int64?
    public var errorCode: String?

    public init(
        pushKeyID: UInt32? = nil, tokenID: TokenID? = nil, pendingTokenID: TokenID? = nil,
        tokenUpdatedAt: Int64? = nil, errorCode: String? = nil
    ) {
        self.pushKeyID = pushKeyID
        self.tokenID = tokenID
        self.pendingTokenID = pendingTokenID
        self.tokenUpdatedAt = tokenUpdatedAt
        self.errorCode = errorCode
    }
}

/// Where Apple or Google reach this phone.
public struct DevicePushToken: Sendable {
    public let kind: TokenKind
    /// As the app sends it: hex digits for APNs.
    public let token: Secret
    /// The app's bundle id for APNs; `nil` for FCM.
    public let appID: String?

    public init(kind: TokenKind, token: Secret, appID: String?) {
        self.kind = kind
        self.token = token
        self.appID = appID
    }
}

/// The body of `mobile_push/register` (§3.3): form fields. `device_id` is the app's to add.
public struct DeviceRegistrationCall: Sendable {
    /// Sent where the server does not have the newest key.
    public struct KeyGroup: Sendable {
        public let id: UInt32
        /// Base64 of 33 bytes.
        public let key: Secret
    }

    /// Sent where the registration is new, failed, changed or old.
    public struct TokenGroup: Sendable {
        public let kind: TokenKind
        public let tokenID: TokenID
        /// Base64, as baked into the app.
        public let bouncerKey: String
        /// Base64 of the sealed registration.
        public let sealedRegistration: Secret
    }

    public let key: KeyGroup?
    public let token: TokenGroup?

    /// Names and values before percent-encoding.
    public var fields: [(name: String, value: Secret)] {
        var fields: [(name: String, value: Secret)] = []
        if let key {
            fields.append(("push_key_id", Secret(String(key.id).utf8)))
            fields.append(("push_key", key.key))
        }
        if let token {
            fields.append(("token_kind", Secret(token.kind.rawValue.utf8)))
            fields.append(("token_id", Secret(token.tokenID.text.utf8)))
            fields.append(("bouncer_public_key", Secret(token.bouncerKey.utf8)))
            fields.append(("encrypted_push_registration", token.sealedRegistration))
        }
        return fields
    }
}
