import PushModel

/// What a device asks a server for beside its registration (§3.5, §14.10): the state, which opens an event
/// queue beside it, and the events, while something is to be awaited there. Decides when; sends nothing.
struct EventQueue: Sendable {
    /// It is not closed when nothing is awaited any more.
    let staysOpen: Bool
    /// A queue at the server.
    struct Open: Sendable {
        let id: String
        var last: Int64
        /// It is closed then, whatever has come.
        var until: UnixTime
        var polls = 0
    }

    enum Ask: Sendable {
        case fetch
        case poll(Open)
        case close(String)
    }

    private(set) var open: Open?
    /// When to fetch the state.
    private var fetchAt: UnixTime?
    /// When to ask the open queue.
    private var pollAt: UnixTime?
    private var closing: [String] = []
    private var isAsking = false
    private var askedAt: UnixTime?
    /// In a row, of whatever kind.
    private var failures = 0

    init(staysOpen: Bool) { self.staysOpen = staysOpen }

    /// To fetch the state at that time, or earlier where that was wanted already.
    mutating func want(at time: UnixTime) { fetchAt = min(fetchAt ?? time, time) }

    /// Something new is awaited: an open queue stays open for it, else the state is fetched.
    mutating func expect(at now: UnixTime) {
        guard open != nil else { return want(at: now) }
        open?.until = now + ZulipLimits.registrationGrace
    }

    /// Nothing is asked for any more; what is open is closed.
    mutating func end() {
        if let open { close(open) }
        (fetchAt, pollAt, isAsking, failures) = (nil, nil, false, 0)
    }

    private mutating func close(_ queue: Open) {
        drop(queue.id)
        open = nil
        pollAt = nil
    }

    /// What to ask for now.
    ///
    /// - Parameter isPending: the server has not said yet what became of the registration.
    /// - Parameter isBusy: a registering call is under way; what the state shows before its answer is old.
    mutating func asks(_ now: UnixTime, isPending: Bool, isBusy: Bool) -> [Ask] {
        var asks: [Ask] = []
        if isAsking {
            // An answer that the app has not brought by then is lost, and asked for again.
            let age = askedAt.map { now.since($0) } ?? .zero
            if age >= ZulipLimits.callLife || age < .zero {
                isAsking = false
                if open == nil { want(at: now) } else { pollAt = now }
            }
        }
        if !isAsking {
            if !staysOpen, let open, !isPending || isOver(open, now) {
                close(open)
                failures = 0
                // Nobody waits that long; but a later word is not to be missed for as long as the app runs.
                if isPending { want(at: now + ZulipLimits.laterLook) }
            }
            if let fetchAt, fetchAt <= now, !isBusy {
                if let open { close(open) }
                self.fetchAt = nil
                asks.append(.fetch)
            } else if let open, let pollAt, pollAt <= now {
                self.pollAt = nil
                asks.append(.poll(open))
            }
            if !asks.isEmpty { (isAsking, askedAt) = (true, now) }
        }
        asks += closing.map { .close($0) }
        closing = []
        return asks
    }

    private func isOver(_ queue: Open, _ now: UnixTime) -> Bool {
        // A clock that was set back must not keep it open.
        let left = queue.until.since(now)
        return left <= .zero || left > ZulipLimits.registrationGrace || queue.polls >= ZulipLimits.polls
    }

    // MARK: answers

    /// The state came, and a queue beside it.
    mutating func fetched(_ id: String, last: Int64, _ now: UnixTime) {
        isAsking = false
        open = Open(id: id, last: last, until: now + ZulipLimits.registrationGrace)
        pollAt = now
    }

    /// A queue for which there is no use any more.
    mutating func drop(_ id: String) {
        closing.append(id)
        if closing.count > ZulipLimits.closingQueues { closing.removeFirst() }
    }

    /// Events came; those that were asked for already are no progress, and are not asked for at once again.
    mutating func polled(
        _ last: Int64?, _ now: UnixTime, using generator: inout some RandomNumberGenerator
    ) {
        isAsking = false
        guard let open else { return }
        self.open?.polls += 1
        guard let last, last > open.last else { return pollAt = pause(now, nil, &generator) }
        self.open?.last = last
        failures = 0
        pollAt = now
    }

    /// The server does not know the queue any more: the state is fetched anew, at once the first time.
    mutating func lost(_ now: UnixTime, using generator: inout some RandomNumberGenerator) {
        isAsking = false
        open = nil
        pollAt = nil
        let pause = pause(now, nil, &generator)
        want(at: failures == 1 ? now : pause)
    }

    /// Nobody answered, or with nothing that is of use.
    mutating func failed(
        _ asked: Duration?, _ now: UnixTime, using generator: inout some RandomNumberGenerator
    ) {
        isAsking = false
        let pause = pause(now, asked, &generator)
        if open == nil { want(at: pause) } else { pollAt = pause }
    }

    private mutating func pause(
        _ now: UnixTime, _ asked: Duration?, _ generator: inout some RandomNumberGenerator
    ) -> UnixTime {
        failures = min(failures, ZulipLimits.countedFailures) + 1
        let wait = staysOpen ? ZulipLimits.eventsRetry : ZulipLimits.callRetry
        let drawn = wait.draw(failures, using: &generator)
        return now + min(max(drawn, asked ?? .zero), ZulipLimits.longestWait)
    }

    /// When ``asks(_:isPending:isBusy:)`` has something; `nil`: only when something happens.
    func next(isPending: Bool, isBusy: Bool) -> UnixTime? {
        if !closing.isEmpty || (open != nil && !staysOpen && !isPending && !isAsking) { return .distantPast }
        if isAsking { return askedAt.map { $0 + ZulipLimits.callLife } }
        let until = staysOpen ? nil : open?.until
        return [isBusy ? nil : fetchAt, until, open == nil ? nil : pollAt].compactMap(\.self).min()
    }
}
