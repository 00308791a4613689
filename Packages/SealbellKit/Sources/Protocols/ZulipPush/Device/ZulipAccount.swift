package import PushModel

/// One login on a phone: whose notifications these are.
package struct ZulipAccount: Sendable, Hashable {
    package var realmURL: String
    package var userID: Int64

    package init(realmURL: String, userID: Int64) {
        self.realmURL = realmURL
        self.userID = userID
    }
}

/// A push key that a phone holds. Kept out of backups (§8).
package struct HeldPushKey: Sendable {
    /// Random, unique on the phone over all accounts.
    package let id: UInt32
    package let key: PushKey
    package let createdAt: UnixTime
    /// Since when a newer key has taken over; it still opens what was sealed before.
    package var supersededAt: UnixTime?

    package init(id: UInt32, key: PushKey, createdAt: UnixTime, supersededAt: UnixTime? = nil) {
        self.id = id
        self.key = key
        self.createdAt = createdAt
        self.supersededAt = supersededAt
    }
}

/// What the server shows of one device: a row of `devices` (§3.5). All members may be null.
package struct ZulipDeviceState: Sendable, Hashable {
    package var pushKeyID: UInt32?
    package var tokenID: TokenID?
    package var pendingTokenID: TokenID?
    /// Unix seconds.
    package var tokenUpdatedAt: Int64?
    package var errorCode: String?

    package init(
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
package struct DevicePushToken: Sendable {
    package let kind: TokenKind
    /// As the app sends it: hex digits for APNs.
    package let token: Secret
    /// The app's bundle id for APNs; `nil` for FCM.
    package let appID: String?

    package init(kind: TokenKind, token: Secret, appID: String?) {
        self.kind = kind
        self.token = token
        self.appID = appID
    }
}

/// The body of `mobile_push/register` (§3.3): form fields. `device_id` is the app's to add.
package struct DeviceRegistrationCall: Sendable {
    /// Sent where the server does not have the newest key.
    package struct KeyGroup: Sendable {
        package let id: UInt32
        /// Base64 of 33 bytes.
        package let key: Secret
    }

    /// Sent where the registration is new, failed, changed or old.
    package struct TokenGroup: Sendable {
        package let kind: TokenKind
        package let tokenID: TokenID
        /// Base64, as baked into the app.
        package let bouncerKey: String
        /// Base64 of the sealed registration.
        package let sealedRegistration: Secret
    }

    package let key: KeyGroup?
    package let token: TokenGroup?

    /// Names and values before percent-encoding.
    package var fields: [(name: String, value: Secret)] {
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
