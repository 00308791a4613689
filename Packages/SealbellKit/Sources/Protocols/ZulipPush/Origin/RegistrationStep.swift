import PushModel
public import SealbellKit

/// A change of a user's rows. The changes of one step go in one commit, in their order, and before the client
/// or the relay hears anything.
public enum ZulipChange: Sendable {
    /// Writes the row in place of the one with its id.
    case account(ZulipAccountRow)
    /// Deletes the row of this `push_account_id`.
    case removeAccount(Int64)
    /// Writes the row in place of the one with its id.
    case device(ZulipDeviceRow)
    /// Deletes the row of this `device_id`.
    case removeDevice(Int64)
    /// Writes the note in place of the one with its id.
    case note(ZulipRegistrationFailure)
    /// Deletes the note of this `push_account_id`.
    case removeNote(Int64)
    /// Writes the item in place of the one with its id.
    case item(ZulipQueueItem)
    /// Deletes the item with this id.
    case removeItem(UInt64)
}

/// One try of a queue item: a call to make now. Its answer goes to
/// ``ZulipRegistrations/settle(_:_:now:using:)`` with the same ``id``; ``CallAnswer/none`` where there was
/// none, because no other try is made before.
public struct ZulipQueuedCall: Sendable {
    /// Names the registration and the try, so that an answer that comes twice counts once.
    public struct ID: Sendable, Hashable {
        /// ``ZulipQueueItem/id``.
        public let item: UInt64
        /// Which try it is: 1 is the first.
        public let attempt: Int
    }

    /// Goes back with the answer.
    public let id: ID
    /// Canonical lower-case UUID.
    public let realm: String
    /// What goes to the relay.
    public let registration: SealedRegistration

    /// The HTTP request of this try, ``ZulipOrigin/register(_:realm:)``.
    public func call(by origin: ZulipOrigin) -> HTTPCall { origin.register(registration, realm: realm) }
}

/// What follows from something that happened to a user's registrations.
public struct ZulipStep: Sendable {
    /// To be committed together, and before all else that follows.
    public var changes: [ZulipChange] = []
    /// For all the user's clients, in order.
    public var events: [ZulipEvent] = []
    /// To be made once the changes are committed.
    public var calls: [ZulipQueuedCall] = []
    /// For administrators.
    public var alerts: [ZulipAlert] = []
    /// What `register_client_device` answers.
    public var deviceID: Int64?

    /// Nothing follows yet.
    public init() {}

    /// Nothing is to be committed, said or sent.
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
