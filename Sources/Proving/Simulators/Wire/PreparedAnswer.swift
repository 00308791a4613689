/// An answer that a simulated push service gives instead of its own, or its own answer at another time.
public struct PreparedAnswer: Sendable, Equatable {
    /// 200 to 999; `nil`: the service's own answer, which may come late.
    public var status: Int?
    /// At most 64 KiB; empty if there is no status.
    public var body: [UInt8]
    /// `content-type`; `nil`: none is sent.
    public var contentType: String?
    /// `retry-after`: seconds or a date; `nil`: none is sent.
    public var retryAfter: String?
    /// How long the answer takes; 0: it is given at once.
    public var delay: Duration
    /// The number of requests that are answered so, on whichever connections they come; `nil`: all, from now
    /// on.
    public var times: Int?
    /// Whether the request is judged, and recorded if accepted, regardless of the answer.
    public var isJudged: Bool

    static let bodyLimitBytes = 64 * 1024

    /// Another answer than the service's own, with a body of at most 64 KiB.
    public init(
        status: Int, body: [UInt8] = [], contentType: String? = nil, retryAfter: String? = nil,
        delay: Duration = .zero, times: Int? = nil, isJudged: Bool = false
    ) {
        self.status = status
        self.body = Array(body.prefix(Self.bodyLimitBytes))
        self.contentType = contentType
        self.retryAfter = retryAfter
        self.delay = delay
        self.times = times
        self.isJudged = isJudged
    }

    /// The service's own answer, so much later, to this number of requests; `nil`: to all.
    public init(own delay: Duration, times: Int? = nil) {
        status = nil
        body = []
        self.delay = delay
        self.times = times
        isJudged = true
    }

    /// - Parameter own: the service's own; `nil` if it was not asked.
    func answer(insteadOf own: SimulatedAnswer?) -> SimulatedAnswer {
        guard let status else {
            var late = own ?? SimulatedAnswer(status: 200)
            late.delay = max(late.delay, delay)
            return late
        }
        return SimulatedAnswer(
            status: status, apnsID: own?.apnsID ?? [], contentType: contentType, retryAfter: retryAfter,
            body: body, delay: delay)
    }
}

/// What happens to the open connections without telling the peer. Later ones are normal.
public enum ConnectionLapse: String, Sendable, CaseIterable {
    /// PING is answered, but requests from now on are not.
    case mute
    /// Nothing is answered, as when the peer is gone and its socket does not show it.
    case dead
}
