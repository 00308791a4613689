/// How a simulated push service's connections behave. Each can be changed at run time: a change of SETTINGS
/// reaches open connections at once, any other takes effect with the next frame or request.
///
/// Facts: docs/push-services.md §3, last paragraph. The defaults are those of a connection to Apple's service
/// (§2.6).
public struct ConnectionKnobs: Sendable, Equatable {
    /// What to do with a stream above the announced limit.
    public enum Excess: String, Sendable, CaseIterable {
        /// It is served anyway.
        case serve
        /// RST_STREAM with REFUSED_STREAM.
        case refuse
        /// GOAWAY with ENHANCE_YOUR_CALM and "Maximum active streams violated", then the end of the
        /// connection. Streams that the peer opened before it acknowledged a lower limit are refused
        /// instead.
        case goAway
    }

    /// SETTINGS_HEADER_TABLE_SIZE, SETTINGS_INITIAL_WINDOW_SIZE, SETTINGS_MAX_FRAME_SIZE and
    /// SETTINGS_MAX_HEADER_LIST_SIZE, sent when a connection opens.
    public var headerTableBytes: UInt32 = 4096
    /// SETTINGS_INITIAL_WINDOW_SIZE.
    public var initialWindowBytes: UInt32 = 65_535
    /// SETTINGS_MAX_FRAME_SIZE.
    public var frameBytes: UInt32 = 16_384
    /// SETTINGS_MAX_HEADER_LIST_SIZE.
    public var headerListBytes: UInt32 = 8000
    /// SETTINGS_MAX_CONCURRENT_STREAMS at the start of a connection.
    public var streamsAtStart: UInt32 = 1
    /// The same after the first accepted request.
    public var streams: UInt32 = 1000
    /// A rejected request drops the limit to 1, an accepted one lifts it again (§2.6).
    public var dropsOnRejection = false
    /// What is done with a stream above the limit.
    public var excess = Excess.serve
    /// No WINDOW_UPDATE is sent. The outstanding ones are sent when this is reset.
    public var withholdsWindow = false
    /// PINGs get no acknowledgement.
    public var ignoresPing = false
    /// When connections end in order; `nil`: they do not.
    public var goAway: GoAwayKnob?
    /// At most 16; the first that matches is done.
    public var faults: [RequestFault] = []
    /// At most 16; the first that may still be given is given. A fault takes precedence.
    public var answers: [PreparedAnswer] = []
    /// How long each answer takes.
    public var answerDelay = AnswerDelay.none
    /// The delay of every frame; the order is kept.
    public var roundTrip = Duration.zero

    /// The connection that Apple's service offers.
    public init() {}
}

/// When and how connections end in an orderly way (RFC 9113 §6.8).
public struct GoAwayKnob: Sendable, Equatable {
    /// Which stream GOAWAY names as the last.
    public enum LastStream: Sendable, Equatable {
        /// The highest stream that was judged. Higher ones are not judged.
        case lastJudged
        /// The last `count` requests before the GOAWAY are received, but neither judged nor answered; their
        /// ids are above the one in the GOAWAY.
        case below(count: Int)
        /// First 2³¹−1, then, this much later, the highest stream that was judged.
        case graceful(after: Duration)
    }

    /// What becomes of the socket behind a GOAWAY.
    public enum End: String, Sendable, CaseIterable {
        /// The socket is closed right after the GOAWAY: pending answers are lost.
        case atOnce
        /// The socket is closed once all streams at or below the id have ended.
        case whenDrained
    }

    /// After this many requests on a connection; `nil`: the number does not matter.
    public var afterRequests: Int?
    /// This long after a connection's first bytes; `nil`: the time does not matter.
    public var after: Duration?
    /// Which stream is named as the last.
    public var lastStream: LastStream
    /// What becomes of the socket.
    public var end: End
    /// RFC 9113 §7; 0 is NO_ERROR.
    public var errorCode: UInt32
    /// Debug data, such as `{"reason":"Shutdown"}`.
    public var debugData: String?

    /// NO_ERROR, when the connection is drained, unless said otherwise.
    ///
    /// - Parameter afterRequests: on one connection.
    /// - Parameter errorCode: of RFC 9113 §7; 0 is NO_ERROR.
    public init(
        afterRequests: Int? = nil, after: Duration? = nil, lastStream: LastStream = .lastJudged,
        end: End = .whenDrained, errorCode: UInt32 = 0, debugData: String? = nil
    ) {
        self.afterRequests = afterRequests
        self.after = after
        self.lastStream = lastStream
        self.end = end
        self.errorCode = errorCode
        self.debugData = debugData
    }
}

/// A fault of single requests.
public struct RequestFault: Sendable, Equatable {
    /// What goes wrong.
    public enum Kind: Sendable, Equatable {
        /// The stream stays open for ever.
        case neverAnswered
        /// RST_STREAM with this code (RFC 9113 §7).
        case reset(code: UInt32)
        /// A part of the answer's first frame is sent, then the socket is closed.
        case killedMidFrame
        /// RST_STREAM with NO_ERROR after a complete answer (RFC 9113 §8.1).
        case resetAfterAnswer
    }

    /// Which requests it happens to.
    public enum Choice: Sendable, Equatable {
        /// The request with this number on its connection, counted from 1.
        case number(Int)
        /// Each request whose number on its connection is a multiple of this.
        case every(Int)
        /// Each request with this probability, 0 to 1.
        case share(Double)
    }

    /// What goes wrong.
    public var kind: Kind
    /// Which requests it happens to.
    public var choice: Choice
    /// Whether the request is judged and recorded before the fault: a sender cannot tell the two cases apart.
    public var isJudged: Bool

    /// - Parameter isJudged: the request is judged and recorded before it goes wrong.
    public init(_ kind: Kind, on choice: Choice, isJudged: Bool) {
        self.kind = kind
        self.choice = choice
        self.isJudged = isJudged
    }
}

/// How long an answer takes.
public enum AnswerDelay: Sendable, Equatable {
    /// At once.
    case none
    /// Always so long, 0 or more.
    case fixed(Duration)
    /// Uniform between the two.
    case uniform(Duration, Duration)
    /// Exponential with this mean, cut at 10 times the mean.
    case exponential(mean: Duration)

    /// A delay, drawn with 64 random bits.
    func draw(_ bits: UInt64) -> Duration {
        let share = Double(bits >> 11) / Double(UInt64(1) << 53)
        return switch self {
        case .none: .zero
        case .fixed(let span): span
        case .uniform(let low, let high): low + (high - low) * share
        case .exponential(let mean): mean * min(10, -naturalLogarithm(1 - share))
        }
    }
}
