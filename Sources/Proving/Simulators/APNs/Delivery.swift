public import PushModel

/// A push that a simulated service accepted, as a test reads it.
public struct Delivery: Sendable, Equatable {
    /// Counted from 1, without gaps, for each simulator.
    public var number: Int
    /// `apns-id`, canonical; the message name at FCM.
    public var id: String
    /// The device token, lower case at APNs; a registration token or installation id at FCM.
    public var token: String
    /// The topic at APNs, the project at FCM.
    public var topic: String
    /// `apns-push-type`; `nil` if the request had none, and at FCM.
    public var pushType: APNsPushType?
    /// 1, 5 or 10 at APNs; 5 (normal) or 10 (high) at FCM.
    public var priority: Int
    /// Unix seconds; 0: now or never; `nil`: the service chose.
    public var expirationSeconds: Int64?
    /// `apns-collapse-id`, at most 64 bytes; `nil`: there was none.
    public var collapseID: String?
    /// The body as it came: JSON.
    public var body: [UInt8]
    /// By the simulated clock.
    public var receivedAt: UnixTime
    /// The same id had been accepted before.
    public var isDouble: Bool
}

/// What a simulator has counted.
public struct SimulatorCounters: Sendable, Equatable {
    /// Requests, whatever became of them.
    public var received = 0
    /// Requests that were answered with 200.
    public var accepted = 0
    /// Accepted under an id that had been accepted before.
    public var doubles = 0
    /// The number of refusals by their literal reason.
    public var byReason: [String: Int] = [:]
    /// Access tokens given out (FCM).
    public var tokensIssued = 0
    /// Deliveries for which a subscriber was too slow.
    public var unheard = 0

    /// Nothing yet.
    public init() {}
}
