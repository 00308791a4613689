import PushModel

/// A change of a user's rows. The changes of one step go in one commit, in their order, and before the client
/// or the relay hears anything.
public enum ZulipChange: Sendable {
    /// Writes the row in place of the one with its id.
    case account(ZulipAccountRow)
    case removeAccount(Int64)
    case device(ZulipDeviceRow)
    case removeDevice(Int64)
    case note(ZulipNote)
    case removeNote(Int64)
    case item(ZulipQueueItem)
    case removeItem(UInt64)
}

/// One try of a queue item: a call to make now. Its answer goes to
/// ``ZulipRegistrations/settle(_:_:now:using:)`` with the same ``id``; ``ZulipAnswer/none`` where there was
/// none, because no other try is made before.
public struct ZulipQueuedCall: Sendable {
    /// Names the registration and the try, so that an answer that comes twice counts once.
    public struct ID: Sendable, Hashable {
        public let item: UInt64
        public let attempt: Int
    }

    public let id: ID
    public let realm: String
    public let registration: SealedRegistration

    public func call(by origin: ZulipOrigin) -> ZulipCall { origin.register(registration, realm: realm) }
}

/// What follows from something that happened to a user's registrations.
public struct ZulipStep: Sendable {
    public var changes: [ZulipChange] = []
    /// For all the user's clients, in order.
    public var events: [ZulipEvent] = []
    /// To be made once the changes are committed.
    public var calls: [ZulipQueuedCall] = []
    /// For administrators.
    public var alerts: [ZulipAlert] = []
    /// What `register_client_device` answers.
    public var deviceID: Int64?

    public init() {}

    public var isEmpty: Bool { changes.isEmpty && events.isEmpty && calls.isEmpty && alerts.isEmpty }

    /// Both, this one first.
    mutating func append(_ next: ZulipStep) {
        changes += next.changes
        events += next.events
        calls += next.calls
        alerts += next.alerts
        deviceID = next.deviceID ?? deviceID
    }
}
