/// What the simulated FCM does besides judging; each can be changed at run time.
public struct FCMKnobs: Sendable, Equatable {
    /// How long a refusal asks the sender to wait.
    public enum RetryAfter: Sendable, Equatable {
        /// It does not say.
        case off
        /// So many seconds.
        case seconds(Int)
        /// An HTTP date this many seconds ahead.
        case date(secondsAhead: Int)
    }

    /// What goes wrong at the token endpoint.
    public enum TokenFault: Sendable, Equatable {
        /// Nothing.
        case none
        /// 500 to every request for a token.
        case serverError
        /// 429 to every request for a token.
        case tooMany(RetryAfter)
        /// An answer without `expires_in`.
        case noExpiry
        /// An answer of this many bytes.
        case oversized(bytes: Int)
    }

    /// The delay of the token endpoint's answers.
    public var tokenDelay = Duration.zero
    /// What goes wrong at the token endpoint, until it is turned back.
    public var tokenFault = TokenFault.none
    /// How long an access token lasts, by the simulated clock; also the value of `expires_in`.
    public var tokenLifeSeconds: Int64 = 3599
    /// Answers of the token endpoint and of the send endpoint that replace their judgement; at most 16 each,
    /// of which the first that matches is given.
    public var tokenStrays: [StrayAnswer] = []
    /// The same for the send endpoint.
    public var strays: [StrayAnswer] = []
    /// Shares of 500 `INTERNAL` and 503 `UNAVAILABLE` at the send endpoint, 0 to 1.
    public var errorShare = 0.0
    /// Of 503 `UNAVAILABLE`.
    public var unavailableShare = 0.0
    /// The `Retry-After` of 429 and 503 from the send endpoint.
    public var retryAfter = RetryAfter.seconds(60)
    /// Messages a minute of one project, and to one device (docs/push-services.md §4.3); `nil`: no limit.
    public var projectMinuteLimit: Int? = 600_000
    /// 240 messages a minute.
    public var deviceMinuteLimit: Int? = 240
    /// 5,000 messages an hour.
    public var deviceHourLimit: Int? = 5000
    /// Unknown addresses count as devices of the project that first pushes to them.
    public var learnsDevices = false

    /// FCM as it is documented, with no faults.
    public init() {}
}

/// How a simulated FCM is set up.
public struct FCMSimulatorConfiguration: Sendable {
    /// Where it listens.
    public var host = "127.0.0.1"
    /// 0: any free one.
    public var port = 0
    /// Service accounts on file.
    public var accounts: [ServiceAccountRegistration]
    /// Projects that exist and belong to none of the accounts.
    public var otherProjects: Set<String> = []
    /// How it begins to behave.
    public var knobs = FCMKnobs()
    /// FCM offers 100 streams from the start.
    public var connection: ConnectionKnobs
    /// HTTP/2 is not offered.
    public var isPlainOnly = false
    /// Deliveries that are kept for ``FCMSimulator/deliveries(after:limit:)``.
    public var keptDeliveries = 4096
    /// 16 MiB, of the bodies of deliveries that are kept.
    public var keptBodyBytes = 16 * 1024 * 1024

    /// FCM's own connection: 100 streams, header lists of 16 KiB.
    public init(accounts: [ServiceAccountRegistration] = []) {
        self.accounts = accounts
        connection = ConnectionKnobs()
        connection.streamsAtStart = 100
        connection.streams = 100
        connection.headerListBytes = 16_384
    }
}
