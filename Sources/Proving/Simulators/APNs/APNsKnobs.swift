public import PushModel

/// What the simulated APNs does besides judging; each can be changed at run time.
public struct APNsKnobs: Sendable, Equatable {
    /// 503 `Shutdown` to everything until then, by the simulated clock.
    public var shutdownUntil: UnixTime?
    /// 500 `InternalServerError` to this share of requests, 0 to 1.
    public var errorShare = 0.0
    /// The most pushes to one device in `deviceSpan`, then 429 `TooManyRequests`; `nil`: no limit.
    public var deviceLimit: Int?
    /// A minute unless it is turned; see ``deviceLimit``.
    public var deviceSpan = Duration.seconds(60)
    /// Unknown tokens count as devices of the topic to which they are first pushed.
    public var learnsDevices = false
    /// Answers that replace its judgement; at most 16, of which the first that matches is given.
    public var strays: [StrayAnswer] = []

    /// APNs as it is documented, with no faults.
    public init() {}
}

/// How a simulated APNs is set up.
public struct APNsSimulatorConfiguration: Sendable {
    /// Production or sandbox; a token is good for one of them.
    public var environment: APNsEnvironment
    /// Where it listens.
    public var host = "127.0.0.1"
    /// 0: any free one.
    public var port = 0
    /// Signing keys on file.
    public var keys: [APNsKeyRegistration]
    /// How it begins to behave.
    public var knobs = APNsKnobs()
    /// How its connections begin to behave.
    public var connection = ConnectionKnobs()
    /// Deliveries that are kept for ``APNsSimulator/deliveries(after:limit:)``, and bytes of their bodies.
    public var keptDeliveries = 4096
    /// 16 MiB, of the bodies of deliveries that are kept.
    public var keptBodyBytes = 16 * 1024 * 1024
    /// How many `apns-id`s are remembered to recognise doubles.
    public var rememberedIDs = 1 << 18

    /// Apple's own connection, and any free port.
    public init(environment: APNsEnvironment, keys: [APNsKeyRegistration] = []) {
        self.environment = environment
        self.keys = keys
    }
}
