import PushModel

/// Which addresses wait because the service has refused them for themselves, and how many requests to each
/// are under way (decision 0080). A value.
///
/// Each phone has its own quota at its push service. When it is used up, only this phone's pushes wait: they
/// queue behind the one that was refused, the wait doubles with each further refusal, and when it ends, one
/// request finds out for all of them. Each acceptance then allows one more request at once.
///
/// Bounded by ``DeliveryLimits/waitingAddresses``: a further address is not remembered, and its pushes back
/// off one by one.
struct AddressWaits: Sendable {
    private struct Wait: Sendable {
        /// In a row.
        var refusals = 0
        /// Before this moment no push leaves, and no call.
        var until: ContinuousClock.Instant
        var callsUntil: ContinuousClock.Instant
        /// Pushes that were put off since it was answered last: each comes back behind the one before it.
        var turns = 0
        /// When the last of them comes back.
        var lastReturn: ContinuousClock.Instant?
        /// Requests that may be under way.
        var window: Int

        /// Whether others are on their way back. From the store they come a little late.
        func hasQueue(at instant: ContinuousClock.Instant) -> Bool {
            guard let lastReturn else { return false }
            return lastReturn + (refusals > 0 ? .seconds(1) : .zero) > instant
        }
    }

    /// Requests under way, of addresses that share the lowest bits: an array, because every push pays for it.
    /// Two addresses that share a place delay each other only when one of them is busy.
    private var underWay = [UInt16](repeating: 0, count: places)
    private static let places = 4_096
    private var waits: [Int: Wait] = [:]
    /// When addresses that wait no longer are looked for; `nil`: none are known.
    private var looksAt: ContinuousClock.Instant?
    private let most: Int
    private let window: Int
    private let base: Duration
    private let cap: Duration
    private let asked: Duration
    private let callWait: Duration
    private let returns: Duration
    private let tickSpan: Duration
    /// Ticks between looks for addresses that wait no longer.
    private static let looksEvery = 10

    init(limits: DeliveryLimits) {
        most = limits.waitingAddresses
        window = limits.addressWindow
        base = limits.backoffBase
        cap = limits.backoffCap
        asked = limits.retryAfterCap
        callWait = limits.addressCallWait
        returns = limits.destinationReturns
        tickSpan = limits.tick
    }

    /// Answers that are about how much one address was sent.
    static func isRefusal(_ answer: Answer) -> Bool {
        guard case .retry = answer.outcome, answer.isAnswered else { return false }
        return answer.reason.meaning.contains(.limitsAddress)
    }

    /// Addresses that were refused and have not been accepted since, as far as they are remembered.
    var refused: Int { waits.values.count { $0.refusals > 0 } }

    // MARK: sending

    /// How long a push must wait for its address; `nil`: it may leave.
    ///
    /// Pushes that wait come back one after the other, in their order, and pushes that have not waited yet go
    /// behind them: otherwise a flood would always be first when a wait ends.
    ///
    /// - Parameter hasWaited: it has been put off before, or comes from the store.
    mutating func wait(
        for address: Int, _ pushClass: PushClass, hasWaited: Bool, at instant: ContinuousClock.Instant
    ) -> Duration? {
        let busy = Int(underWay[Self.place(address)])
        if busy < window, waits.isEmpty { return nil }
        guard let wait = waits[address] else {
            // If there is no room to count an address's requests, they are not limited.
            guard busy >= window, hasRoom else { return nil }
            waits[address] = Wait(until: instant, callsUntil: instant, window: window)
            return tickSpan
        }
        let until = pushClass == .urgent ? wait.callsUntil : wait.until
        if until <= instant, hasWaited || pushClass == .urgent || !wait.hasQueue(at: instant) {
            return busy < wait.window ? nil : putOff(address, until: instant + tickSpan, at: instant)
        }
        guard pushClass != .urgent else { return until - instant }
        let apart = apart(wait)
        var turn = max(until, instant) + apart * wait.turns
        if !hasWaited, let last = wait.lastReturn { turn = max(turn, last + apart) }
        waits[address]?.turns += 1
        return putOff(address, until: min(turn, instant + asked), at: instant)
    }

    /// How far behind each other they come back. A phone that has refused nothing is only asked for as many
    /// at a time as its window holds: services answer within some twenty milliseconds, so its window is used
    /// four times in a tick. Else a phone that many write to would get twenty pushes a second.
    private func apart(_ wait: Wait) -> Duration {
        wait.refusals > 0 ? returns : min(returns, tickSpan / (4 * max(1, wait.window)))
    }

    private mutating func putOff(
        _ address: Int, until due: ContinuousClock.Instant, at instant: ContinuousClock.Instant
    ) -> Duration {
        let last = waits[address]?.lastReturn ?? due
        waits[address]?.lastReturn = max(due, last)
        return due - instant
    }

    mutating func sent(to address: Int) {
        let place = Self.place(address)
        if underWay[place] < .max { underWay[place] += 1 }
    }

    /// A request is no longer under way.
    mutating func ended(_ address: Int) {
        let place = Self.place(address)
        if underWay[place] > 0 { underWay[place] -= 1 }
    }

    // MARK: answers

    /// - Parameter random: 64 random bits.
    mutating func note(
        _ answer: Answer, of address: Int, at instant: ContinuousClock.Instant, random: UInt64
    ) {
        guard answer.isAnswered else { return }
        if case .retry(let after) = answer.outcome {
            // If the address waits already, another answer that puts off its push counts as one more refusal.
            let isRefusal =
                Self.isRefusal(answer) || Throttle.isRefusal(answer) && waits[address]?.refusals ?? 0 > 0
            if isRefusal { refuse(address, asked: after, at: instant, random: random) }
            return
        }
        // Nearly always empty.
        guard !waits.isEmpty, var wait = waits[address] else { return }
        // A request that left before the wait began does not end it.
        guard wait.refusals == 0 || wait.callsUntil <= instant else { return }
        wait.refusals = 0
        (wait.until, wait.callsUntil, wait.turns) = (instant, instant, 0)
        wait.window = min(wait.window + 1, Self.places)
        waits[address] = wait
    }

    /// The service asks for time, and only where these addresses are concerned.
    mutating func refuse(_ addresses: Set<Int>, at instant: ContinuousClock.Instant, random: UInt64) {
        for address in addresses { refuse(address, asked: nil, at: instant, random: random) }
    }

    private mutating func refuse(
        _ address: Int, asked after: Duration?, at instant: ContinuousClock.Instant, random: UInt64
    ) {
        guard waits[address] != nil || hasRoom else { return }
        var wait = waits[address] ?? Wait(until: instant, callsUntil: instant, window: 1)
        let floor = min(max(after ?? .zero, .zero), asked)
        // A request that left before the wait began only repeats what is known.
        let isNews = wait.refusals == 0 || wait.callsUntil <= instant
        if isNews { (wait.refusals, wait.turns) = (wait.refusals + 1, 0) }
        let delay = isNews ? delay(after: wait.refusals, random) : .zero
        wait.until = max(wait.until, instant + max(delay, floor))
        wait.callsUntil = max(wait.callsUntil, instant + max(min(delay, callWait), floor))
        wait.window = 1
        waits[address] = wait
    }

    /// Half of the ceiling that doubles, and a random part of the other half.
    private func delay(after refusals: Int, _ random: UInt64) -> Duration {
        let doublings = min(refusals - 1, 20)
        let half = max(1, min(cap.wholeMilliseconds, base.wholeMilliseconds << Int64(doublings)) / 2)
        return .milliseconds(half + Int64(random.multipliedFullWidth(by: UInt64(half)).high))
    }

    // MARK: room

    mutating func tick(at instant: ContinuousClock.Instant) {
        guard !waits.isEmpty else { return looksAt = nil }
        let isDue = looksAt.map { $0 <= instant } ?? false
        if isDue { forget(instant) }
        if isDue || looksAt == nil { looksAt = instant + tickSpan * Self.looksEvery }
    }

    private var hasRoom: Bool { waits.count < most }

    /// Addresses without a request under way that have been accepted since, or whose last refusal is longer
    /// ago than the longest wait.
    private mutating func forget(_ instant: ContinuousClock.Instant) {
        let gone = waits.filter { address, wait in
            underWay[Self.place(address)] == 0 && (wait.refusals == 0 || wait.until + cap <= instant)
        }
        for address in gone.keys { waits[address] = nil }
    }

    private static func place(_ address: Int) -> Int { address & (places - 1) }
}
