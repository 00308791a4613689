import PushModel

/// What a lane knows of one of the authorities that its pushes name (``ServiceMessage/authority``): whether
/// it may be sent to now. It is what a lane is to a service of one authority, with the same parts. A value.
struct Destination: Sendable {
    private(set) var breaker: Breaker
    private var throttle: Throttle
    private var reach: Reach
    /// Requests under way.
    private(set) var inFlight = 0
    /// How many may be. It opens with each answer, so that one that only takes requests takes few.
    private var window: Int
    private var nextProbe: ContinuousClock.Instant?
    /// When the last of those that were put off comes back; `nil`: it has answered well since.
    private var lastReturn: ContinuousClock.Instant?
    private let tickSpan: Duration
    private let probeEvery: Duration
    private let returns: Duration
    private let returnsCap: Duration
    private let mostWindow: Int

    init(limits: DeliveryLimits) {
        tickSpan = limits.tick
        probeEvery = limits.probeEvery
        returns = limits.destinationReturns
        returnsCap = limits.retryAfterCap
        mostWindow = limits.lanePushes
        window = limits.destinationWindow
        breaker = Breaker(
            answers: limits.breakerAnswers, addresses: limits.breakerAddresses,
            witnesses: limits.breakerWitnesses, memory: limits.originsRemembered,
            counted: limits.destinationOrigins)
        throttle = Throttle(refusals: limits.throttleRefusals, open: limits.lanePushes)
        reach = Reach(limits: limits)
    }

    /// Whether pushes are put off for more than want of a free request.
    var isHeld: Bool { breaker.state != .open || !throttle.maySend || reach.isSilent }

    /// How long a push must wait; `nil`: it may leave.
    ///
    /// Those that wait come back one behind the other, so that the ones of a destination that is out do not
    /// fill the lane's memory: beyond the first seconds' worth they wait in the store.
    mutating func wait(for push: OwedPush, at instant: ContinuousClock.Instant) -> Duration? {
        if breaker.state == .halted(.targets), push.custody == .durable,
            breaker.heard(of: push.origin, at: instant) == .reopened
        {
            nextProbe = nil
        }
        guard let wait = wait(at: instant) else { return inFlight < window ? nil : tickSpan }
        guard push.pushClass != .urgent else { return wait }
        let turn = max(instant + wait, (lastReturn ?? instant) + returns)
        let due = min(turn, instant + returnsCap)
        lastReturn = due
        return due - instant
    }

    private func wait(at instant: ContinuousClock.Instant) -> Duration? {
        if breaker.state != .open {
            guard let nextProbe, nextProbe > instant else { return nil }
            return nextProbe - instant
        }
        return throttle.maySend ? reach.untilNextTry(instant) : tickSpan
    }

    mutating func sent(at instant: ContinuousClock.Instant) {
        inFlight += 1
        throttle.sent()
        reach.sent(at: instant)
        if breaker.state != .open { nextProbe = instant + probeEvery }
    }

    /// A request is under way no more.
    mutating func ended() { inFlight = max(0, inFlight - 1) }

    /// - Parameter others: origins that wait in the lane.
    mutating func note(
        _ answer: Answer, of push: OwedPush, address: Int, others: [Digest16],
        at instant: ContinuousClock.Instant, random: UInt64
    ) -> Breaker.Change {
        if answer.fate == .answered { window = min(window + 1, mostWindow) }
        if Reach.isSilence(answer) { window = max(1, window / 2) }
        if answer.outcome == .accepted { lastReturn = nil }
        _ = reach.note(answer, at: instant, random: random)
        _ = throttle.note(answer)
        if Breaker.isTargetFault(answer) {
            // As in a lane: an address that anybody can make up halts nothing.
            if push.custody == .volatile { return .none }
            if breaker.isNearHalt { for origin in others { _ = breaker.heard(of: origin, at: instant) } }
        }
        let origin = push.custody == .durable ? push.origin : nil
        let change = breaker.note(answer, address: address, origin: origin, at: instant)
        switch change {
        case .halted: nextProbe = instant + probeEvery
        case .resumed, .reopened: nextProbe = nil
        case .none: break
        }
        return change
    }

    mutating func tick() { _ = throttle.tick() }
}

/// The destinations that a lane met last. Bounded: anyone who names a new one may make another forgotten,
/// which then begins anew.
struct Destinations: Sendable {
    private struct Known: Sendable {
        var destination: Destination
        var used: UInt64 = 0

        init(_ limits: DeliveryLimits) { destination = Destination(limits: limits) }
    }

    private var known: [Int: Known] = [:]
    private var uses: UInt64 = 0
    private let limits: DeliveryLimits

    init(limits: DeliveryLimits) { self.limits = limits }

    var numbers: Set<Int> { Set(known.keys) }
    var held: Int { known.values.count { $0.destination.isHeld } }

    /// Changes the destination of that number, as it is known or as a new one.
    mutating func change<Value>(_ number: Int, _ body: (inout Destination) -> Value) -> Value {
        uses += 1
        if known[number] == nil, known.count >= limits.destinations { forget() }
        known[number, default: Known(limits)].used = uses
        return body(&known[number, default: Known(limits)].destination)
    }

    /// The one that nobody has asked for longest: of those with nothing under way, if there is one.
    private mutating func forget() {
        let idle = known.lazy.filter { $0.value.destination.inFlight == 0 }
        let oldest = idle.min { $0.value.used < $1.value.used } ?? known.min { $0.value.used < $1.value.used }
        if let oldest { known[oldest.key] = nil }
    }

    /// In place: no copy of what is known.
    mutating func tick() {
        var index = known.startIndex
        while index != known.endIndex {
            known.values[index].destination.tick()
            known.formIndex(after: &index)
        }
    }
}
