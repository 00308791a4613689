import PushModel

/// What a lane knows of one of the authorities that its pushes name (``ServiceMessage/authority``): whether
/// it may be sent to now. It has the same parts as a lane for a service with one authority. A value.
struct Destination: Sendable {
    private(set) var breaker: Breaker
    private var throttle: Throttle
    private var reach: Reach
    /// Requests under way.
    private(set) var inFlight = 0
    /// How many may be under way. Each answer raises it, so a destination that takes requests and never
    /// answers gets few.
    private var window: Int
    private var probes: ProbePace
    /// When the last push that was put off comes back; `nil`: the destination has answered well since.
    private var lastReturn: ContinuousClock.Instant?
    private let tickSpan: Duration
    private let silentCap: Duration
    private let returns: Duration
    private let returnsCap: Duration
    private let mostWindow: Int

    init(limits: DeliveryLimits) {
        tickSpan = limits.tick
        silentCap = limits.silentCap
        probes = ProbePace(limits: limits)
        returns = limits.destinationReturns
        returnsCap = limits.retryAfterCap
        mostWindow = limits.lanePushes
        window = limits.destinationWindow
        breaker = Breaker(
            answers: limits.breakerAnswers, addresses: limits.breakerAddresses,
            witnesses: limits.breakerWitnesses, memory: limits.originsRemembered,
            counted: limits.destinationOrigins,
            faults: (limits.breakerFaults, limits.breakerFaultsBesideProof))
        throttle = Throttle(limits: limits)
        reach = Reach(limits: limits)
    }

    /// Whether pushes are put off for another reason than too many requests under way.
    var isHeld: Bool { breaker.state != .open || !throttle.maySend || reach.isSilent }

    /// Requests under way although the last answer was none.
    var doubtfulRequests: Int { reach.silences > 0 ? inFlight : 0 }

    /// Whether it answers others while a push is not answered.
    func speaks(among sends: Int) -> Bool { reach.speaks(among: sends) }

    /// How long a push must wait; `nil`: it may leave.
    ///
    /// Pushes that wait come back one after the other, so that those of a destination that is out do not fill
    /// the lane's memory: all but the first few seconds' worth wait in the store.
    ///
    /// - Parameter mayDoubt: false: the lane has as many requests under way as may be to others that have
    ///   not answered.
    mutating func wait(
        for push: OwedPush, at instant: ContinuousClock.Instant, mayDoubt: Bool = true
    ) -> Duration? {
        if breaker.state == .halted(.targets), push.isDurable,
            breaker.heard(of: push.origin, at: instant) == .reopened
        {
            probes.end()
        }
        guard let wait = wait(at: instant) else {
            let mayLeave = inFlight < window && (mayDoubt || reach.silences == 0)
            return mayLeave ? nil : tickSpan
        }
        guard push.pushClass != .urgent else { return wait }
        let turn = max(instant + wait, (lastReturn ?? instant) + returns)
        let due = min(turn, instant + returnsCap)
        lastReturn = due
        return due - instant
    }

    private func wait(at instant: ContinuousClock.Instant) -> Duration? {
        if breaker.state != .open { return probes.wait(at: instant) }
        guard throttle.maySend else { return tickSpan }
        guard let wait = reach.untilNextTry(instant) else { return nil }
        // The answer to the try sets the next moment. It does not wake the pushes that sleep here; they look
        // again soon.
        return reach.isTryUnderWay ? min(wait, silentCap) : wait
    }

    mutating func sent(at instant: ContinuousClock.Instant) {
        inFlight += 1
        throttle.sent()
        reach.sent(at: instant)
        if breaker.state != .open { probes.sent(at: instant) }
    }

    /// A request is under way no more.
    mutating func ended() { inFlight = max(0, inFlight - 1) }

    /// What an answer tells of how many requests it takes, and how fast.
    ///
    /// - Returns: addresses that alone were refused, too few to slow the destination.
    mutating func note(
        _ answer: Answer, address: Int, at instant: ContinuousClock.Instant, random: UInt64
    ) -> Set<Int> {
        if answer.isAnswered { window = min(window + 1, mostWindow) }
        if Reach.isSilence(answer) { window = max(1, window / 2) }
        if answer.outcome.isAccepted { lastReturn = nil }
        _ = reach.note(answer, at: instant, random: random)
        if case .few(let addresses) = throttle.note(answer, address: address) { return addresses }
        return []
    }

    /// What it tells of the credential and of targets.
    ///
    /// - Parameter others: origins that wait in the lane.
    mutating func judge(
        _ answer: Answer, of push: OwedPush, address: Int, others: [Digest16],
        at instant: ContinuousClock.Instant
    ) {
        if Breaker.isTargetFault(answer) {
            // As in a lane, an address that anybody can invent halts nothing.
            if push.isVolatile { return }
            if breaker.isNearHalt { for origin in others { _ = breaker.heard(of: origin, at: instant) } }
        }
        let origin = push.isDurable ? push.origin : nil
        switch breaker.note(answer, address: address, origin: origin, at: instant) {
        case .halted: probes.begin(at: instant)
        case .resumed, .reopened: probes.end()
        case .none: break
        }
    }

    mutating func tick() { _ = throttle.tick() }
}

/// The destinations that a lane met last. Bounded: a new one may push out another, which then starts from
/// nothing. Each change costs the same, however many are known.
struct Destinations: Sendable {
    private struct Known: Sendable {
        var number: Int
        var destination: Destination
        /// Neighbours in the order of use; `nil` at its ends.
        var older: Int?
        var newer: Int?
    }

    /// Order of use: the one that was not used for the longest time comes first.
    private struct Order: Sendable {
        var oldest: Int?
        var newest: Int?

        mutating func leave(_ place: Int, _ older: Int?, _ newer: Int?) {
            if oldest == place { oldest = newer }
            if newest == place { newest = older }
        }
    }

    private var known: [Known] = []
    /// Number → index of ``known``.
    private var places: [Int: Int] = [:]
    /// Those with nothing under way.
    private var idle = Order()
    private var busy = Order()
    private let limits: DeliveryLimits
    /// Of all of them (``Destination/doubtfulRequests``).
    private var doubtful = 0

    init(limits: DeliveryLimits) { self.limits = limits }

    /// Whether that one may have one more request although its last answer was none: what counts is the
    /// others', so that a lane of one destination has its window alone.
    func mayDoubt(_ number: Int) -> Bool {
        let own = places[number].map { known[$0].destination.doubtfulRequests } ?? 0
        return doubtful - own < limits.doubtfulRequests
    }

    var numbers: Set<Int> { Set(places.keys) }
    var held: Int { known.count { $0.destination.isHeld } }

    /// Changes the destination of that number, as it is known or as a new one.
    mutating func change<Value>(_ number: Int, _ body: (inout Destination) -> Value) -> Value {
        let place: Int
        if let found = places[number] {
            place = found
            unlink(place)
        } else {
            place = room(for: number)
            places[number] = place
        }
        doubtful -= known[place].destination.doubtfulRequests
        defer {
            doubtful += known[place].destination.doubtfulRequests
            link(place)
        }
        return body(&known[place].destination)
    }

    /// In place: no copy of what is known.
    mutating func tick() {
        for place in known.indices { known[place].destination.tick() }
    }

    // MARK: parts

    /// A new one's index, in neither order. If the memory is full, it replaces the destination that was not
    /// used for the longest time, if possible one with nothing under way.
    private mutating func room(for number: Int) -> Int {
        let fresh = Known(number: number, destination: Destination(limits: limits))
        guard known.count >= limits.destinations, let oldest = idle.oldest ?? busy.oldest else {
            known.append(fresh)
            return known.count - 1
        }
        unlink(oldest)
        doubtful -= known[oldest].destination.doubtfulRequests
        places[known[oldest].number] = nil
        known[oldest] = fresh
        return oldest
    }

    private mutating func unlink(_ place: Int) {
        let (older, newer) = (known[place].older, known[place].newer)
        if let older { known[older].newer = newer }
        if let newer { known[newer].older = older }
        idle.leave(place, older, newer)
        busy.leave(place, older, newer)
    }

    /// As the one that was used last.
    private mutating func link(_ place: Int) {
        let isIdle = known[place].destination.inFlight == 0
        let last = isIdle ? idle.newest : busy.newest
        (known[place].older, known[place].newer) = (last, nil)
        if let last { known[last].newer = place }
        if isIdle {
            idle = Order(oldest: idle.oldest ?? place, newest: place)
        } else {
            busy = Order(oldest: busy.oldest ?? place, newest: place)
        }
    }
}
