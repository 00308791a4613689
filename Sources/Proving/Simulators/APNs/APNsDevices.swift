public import PushModel

/// A simulated device's registration at the simulated APNs.
public struct APNsDevice: Sendable, Equatable {
    /// Whether the token is good, and since when it is not.
    public enum State: Sendable, Equatable {
        /// The app is there.
        case live
        /// The app was removed: 410 `Unregistered` since then.
        case removed(since: UnixTime)
        /// The token was replaced: 410 `ExpiredToken` since then.
        case expired(since: UnixTime)
    }

    /// Bundle ids, or whole topics, for which the token is valid.
    public var topics: [String]
    /// Whether the token is good.
    public var state: State
    /// An offline device's pushes are kept, one for each topic, until it comes back.
    public var isOnline: Bool

    /// - Parameter topics: bundle ids, or whole topics.
    public init(topics: [String], state: State = .live, isOnline: Bool = true) {
        self.topics = topics
        self.state = state
        self.isOnline = isOnline
    }
}

/// The device tokens of one environment.
struct APNsDevices {
    /// The most devices; a load test of a million registrations fits.
    static let limit = 2_000_000

    private var devices: [String: APNsDevice] = [:]
    private var rates = RateWindows()
    /// Unknown tokens count as devices of the topic to which they are first pushed.
    var learns: Bool

    init(learns: Bool) { self.learns = learns }

    subscript(token: String) -> APNsDevice? {
        get { devices[token] }
        set {
            guard newValue == nil || devices[token] != nil || devices.count < Self.limit else { return }
            devices[token] = newValue
        }
    }

    /// Step 6 from the second sentence on: the fault of this token for this topic; `nil`: none.
    mutating func fault(token: String, topic: String, bundle: String) -> APNsRefusal? {
        guard let device = devices[token] else {
            guard learns else { return APNsRefusal(.badDeviceToken) }
            self[token] = APNsDevice(topics: [bundle])
            return nil
        }
        guard device.topics.contains(topic) || device.topics.contains(bundle) else {
            return APNsRefusal(.deviceTokenNotForTopic)
        }
        switch device.state {
        case .live: return nil
        case .removed(let since): return APNsRefusal(.unregistered, since: since)
        case .expired(let since): return APNsRefusal(.expiredToken, since: since)
        }
    }

    /// Step 8: counts one push to the device; false if it is one too many.
    mutating func allows(token: String, rate: Rate, now: UnixTime) -> Bool {
        rates.allows(token, rate, now: now)
    }
}

/// A refusal: the reason and, with 410, since when.
struct APNsRefusal: Equatable, Sendable {
    var reason: APNsReason
    var since: UnixTime?

    init(_ reason: APNsReason, since: UnixTime? = nil) {
        self.reason = reason
        self.since = since
    }
}
