public import PushModel

/// One device of a user that registered by `push_account_id` (§14.4, §3.7). With its queue item, while there
/// is one, it is what the specification calls a `PushDevice`: sealed registration and bouncer key stand in
/// the item alone, and go with it.
public struct ZulipAccountRow: Sendable {
    /// What its contents are sealed with, by profile: (user, account id) is one name space for both (§14.1).
    public enum Key: Sendable {
        /// A device's public key: contents are sealed to it (§14.2).
        case zap(PushPublicKey)
        /// The symmetric key that the device made (§3.7).
        case v11(PushKey)
    }

    /// `push_account_id`.
    public let id: Int64
    /// Which push service its token is of.
    public var kind: TokenKind
    /// What its contents are sealed with; changes when the device tells another.
    public var key: Key
    /// What the relay calls it, 1 to 2⁶³ − 1; `nil` until the relay has confirmed it.
    public var deviceID: Int64?
    /// When the relay confirmed last. What it said of a call that was made before is out of date.
    public var confirmedAt: UnixTime?
    /// Of v11 alone: why the relay refused. A refused record of the other profile goes, and leaves a note.
    public var errorCode: String?
    /// The queue item of the newest registration, while the relay has not answered it for good.
    public var registration: UInt64?

    /// A row as it was committed, or a new one, which is pending.
    public init(
        id: Int64, kind: TokenKind, key: Key, deviceID: Int64? = nil, confirmedAt: UnixTime? = nil,
        errorCode: String? = nil, registration: UInt64? = nil
    ) {
        self.id = id
        self.kind = kind
        self.key = key
        self.deviceID = deviceID
        self.confirmedAt = confirmedAt
        self.errorCode = errorCode
        self.registration = registration
    }

    /// The profile of ``key``: `.zap` or `.v11`.
    public var profile: ZulipProfile {
        switch key {
        case .zap: .zap
        case .v11: .v11
        }
    }

    /// Neither confirmed nor refused.
    public var isPending: Bool { deviceID == nil && errorCode == nil }
}

/// One device of a user in v12 (§1, table Device). All but the id may be missing.
public struct ZulipDeviceRow: Sendable {
    /// `device_id`, the server's own name for it; the relay has none.
    public let id: Int64
    /// `push_key_id`, 32 bits, chosen by the client.
    public var keyID: UInt32?
    /// What its contents are sealed with.
    public var key: PushKey?
    /// Of ``tokenID``.
    public var kind: TokenKind?
    /// Hash of the token that the relay has confirmed; pushes go there.
    public var tokenID: TokenID?
    /// Told, and not yet confirmed by the relay; stays where the relay refused it.
    public var pendingTokenID: TokenID?
    /// When the client told its token last; Unix seconds.
    public var updatedAt: Int64?
    /// Why the relay refused ``pendingTokenID``, in upper case.
    public var errorCode: String?
    /// When the relay confirmed last.
    public var confirmedAt: UnixTime?
    /// The queue item of the newest registration, while the relay has not answered it for good.
    public var registration: UInt64?

    /// A new device: it has neither key nor token.
    public init(id: Int64) { self.id = id }
}

/// Why the relay refused a registration whose record is gone: the entry `failed` of the map (§14.10).
public struct ZulipRegistrationFailure: Sendable, Hashable {
    /// `push_account_id`.
    public let id: Int64
    /// In upper case.
    public let code: String
    /// When the relay refused; the note goes ``ZulipOriginLimits/noteLife`` later.
    public let at: UnixTime

    /// - Parameter code: the relay's, in upper case.
    public init(id: Int64, code: String, at: UnixTime) {
        self.id = id
        self.code = code
        self.at = at
    }
}

/// One registration on its way to the relay (§14.11). It is made in the commit that makes or changes its
/// record, and goes in the commit that settles it.
public struct ZulipQueueItem: Sendable {
    /// Whose registration it is.
    public enum Subject: Sendable, Hashable {
        /// `push_account_id`.
        case account(Int64)
        /// `device_id` of v12.
        case device(Int64)
    }

    /// Random, so that the items of a restored backup and those made since beside it have no name in common.
    public let id: UInt64
    /// Whose registration it is.
    public let subject: Subject
    /// What goes to the relay; it says nothing of the token.
    public let registration: SealedRegistration
    /// When the client called: the item's end is counted from here.
    public let calledAt: UnixTime
    /// How often the relay has been asked; 0: not yet.
    public var tries: Int
    /// When the relay is to be asked (again).
    public var nextTry: UnixTime
    /// Administrators know that it is refused; once for a registration is enough.
    public var hasTold: Bool

    /// An item as it was committed, or a new one: no try yet.
    public init(
        id: UInt64, subject: Subject, registration: SealedRegistration, calledAt: UnixTime, tries: Int = 0,
        nextTry: UnixTime, hasTold: Bool = false
    ) {
        self.id = id
        self.subject = subject
        self.registration = registration
        self.calledAt = calledAt
        self.tries = tries
        self.nextTry = nextTry
        self.hasTold = hasTold
    }
}
