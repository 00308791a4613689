import WireFormats

/// What a user's clients are told (§3.5, §3.7, §14.10, §14.13). State and events agree: a client that has the
/// state and applies the events has what a new fetch gives.
public enum ZulipEvent: Sendable, Hashable {
    /// How far a registration has come at the relay.
    public enum Status: String, Sendable, Hashable {
        /// The relay has not answered for good.
        case pending
        /// The relay has it.
        case active
        /// The relay refuses it.
        case failed
    }

    /// The members of a device of v12 that change. The outer `nil` leaves a member out, the inner is JSON's
    /// null, which clears it.
    public struct DeviceChange: Sendable, Hashable {
        /// `push_key_id`, 32 bits. It is never cleared.
        public var keyID: UInt32?
        /// `push_token_id`: hash of the token that the relay has confirmed.
        public var tokenID: TokenID??
        /// `pending_push_token_id`: hash of the token that it has not.
        public var pendingTokenID: TokenID??
        /// Unix seconds.
        public var updatedAt: Int64?
        /// `push_registration_error_code`, in upper case.
        public var errorCode: String??

        /// Nothing changes.
        public init() {}
    }

    /// `push_account`, `add`: a record was made, and is pending.
    case accountAdded(Int64)
    /// `push_account`, `update`: confirmed, or pending again.
    case accountUpdated(Int64, Status)
    /// `push_account`, `remove`: with a code, the entry becomes `failed`; without, there is none.
    case accountRemoved(Int64, code: String?)
    /// `push_device` of v11, which knows no removal.
    case pushDevice(Int64, Status, code: String?)
    /// `device`, `add`: this `device_id`, with neither key nor token.
    case deviceAdded(Int64)
    /// `device`, `update`: what changes of this `device_id`.
    case deviceUpdated(Int64, DeviceChange)
    /// `device`, `remove`: this `device_id`.
    case deviceRemoved(Int64)
    /// `realm`, `update`: whether the realm's notifications must be encrypted has changed.
    case requiresEncryption(Bool)

    /// By which clients choose events.
    public var type: String {
        switch self {
        case .accountAdded, .accountUpdated, .accountRemoved: "push_account"
        case .pushDevice: "push_device"
        case .deviceAdded, .deviceUpdated, .deviceRemoved: "device"
        case .requiresEncryption: "realm"
        }
    }

    /// Compact JSON.
    ///
    /// - Parameter id: the event's own in its queue; `nil`: without.
    public func json(id: Int64? = nil) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        switch self {
        case .accountAdded(let account):
            head("add", &writer)
            writer.member("push_account_id", account)
            writer.member("status", Status.pending.rawValue)
        case .accountUpdated(let account, let status):
            head("update", &writer)
            writer.member("push_account_id", account)
            writer.member("status", status.rawValue)
        case .accountRemoved(let account, let code):
            head("remove", &writer)
            writer.member("push_account_id", account)
            if let code { writer.member("error_code", code) }
        case .pushDevice(let account, let status, let code):
            head(nil, &writer)
            writer.member("push_account_id", account)
            writer.member("status", status.rawValue)
            if let code { writer.member("error_code", code) }
        case .deviceAdded(let device):
            head("add", &writer)
            writer.member("device_id", device)
        case .deviceRemoved(let device):
            head("remove", &writer)
            writer.member("device_id", device)
        case .deviceUpdated(let device, let change):
            head("update", &writer)
            writer.member("device_id", device)
            change.write(&writer)
        case .requiresEncryption(let isRequired):
            head("update", &writer)
            writer.member("property", "require_e2ee_push_notifications")
            writer.member("value", isRequired)
        }
        if let id { writer.member("id", id) }
        writer.endObject()
        return writer.bytes
    }

    private func head(_ operation: String?, _ writer: inout JSONWriter) {
        writer.member("type", type)
        if let operation { writer.member("op", operation) }
    }
}

extension ZulipEvent.DeviceChange {
    var isEmpty: Bool { self == Self() }

    fileprivate func write(_ writer: inout JSONWriter) {
        if let keyID { writer.member("push_key_id", Int64(keyID)) }
        if let tokenID { writer.optional("push_token_id", tokenID?.text) }
        if let pendingTokenID { writer.optional("pending_push_token_id", pendingTokenID?.text) }
        if let updatedAt { writer.member("push_token_last_updated_timestamp", updatedAt) }
        if let errorCode { writer.optional("push_registration_error_code", errorCode) }
    }
}
