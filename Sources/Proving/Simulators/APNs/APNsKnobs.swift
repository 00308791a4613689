public import PushModel

/// What the simulated APNs does beyond judging; each can be turned at run time.
public struct APNsKnobs: Sendable, Equatable {
    /// 503 `Shutdown` to everything until then, by the simulated clock.
    public var shutdownUntil: UnixTime?
    /// 500 `InternalServerError` to this share of requests, 0 to 1.
    public var errorShare = 0.0
    /// So many pushes to one device in `deviceSpan`, then 429 `TooManyRequests`; `nil`: no limit.
    public var deviceLimit: Int?
    public var deviceSpan = Duration.seconds(60)
    /// Unknown tokens are taken as devices of the topic that they are first pushed to.
    public var learnsDevices = false
    /// Answers in the place of its judgement; at most 16, of which the first that fits is given.
    public var strays: [StrayAnswer] = []

    public init() {}
}

/// How a simulated APNs is set up.
public struct APNsSimulatorConfiguration: Sendable {
    public var environment: APNsEnvironment
    public var host = "127.0.0.1"
    /// 0: any free one.
    public var port = 0
    public var keys: [APNsKeyRegistration]
    public var knobs = APNsKnobs()
    public var connection = ConnectionKnobs()
    /// Deliveries that are kept for ``APNsSimulator/deliveries(after:limit:)``, and bytes of their bodies.
    public var keptDeliveries = 4096
    public var keptBodyBytes = 16 * 1024 * 1024
    /// `apns-id`s that are remembered to tell doubles.
    public var rememberedIDs = 1 << 18

    public init(environment: APNsEnvironment, keys: [APNsKeyRegistration] = []) {
        self.environment = environment
        self.keys = keys
    }
}
