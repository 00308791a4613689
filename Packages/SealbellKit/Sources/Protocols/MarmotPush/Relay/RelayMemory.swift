import PushModel

/// Everything that this server remembers: keys for repeats and budgets, as digests, in memory, bounded.
///
/// A value type. Times are milliseconds of a monotonic clock, so that setting the wall clock neither lets a
/// repeat through nor spends a budget.
struct RelayMemory: Sendable {
    /// What one wrap has reserved so far.
    struct Reservation: Sendable {
        var wrap: Digest16
        var rumor: Digest16?
        var content: Digest16?
        /// Devices to wake.
        var devices: [Digest16] = []
    }

    /// Where a wrap came from, and when.
    struct Visit: Sendable {
        var relay: Int
        /// Inbox relays that share the budget for everything.
        var relays: Int
        /// Processes that share the budgets of keys.
        var members: Int
        var now: Int64
    }

    private var rule: RateRule
    private var everything = Budget<UInt32>()
    /// How much of it each inbox relay has used.
    private var relays: [Int: Budget<UInt32>] = [:]
    /// Every reload may give relays new numbers; the oldest are forgotten.
    private static let relayLimit = 64
    private var senders: KeyedBudget
    private var encryptedTokens: KeyedBudget
    private var deviceTokens: KeyedBudget
    private var wraps: ReplayWindow
    private var rumors: ReplayWindow
    private var contents: ReplayWindow
    private var pauses: DevicePauses

    init(_ serving: MarmotServing) {
        let budgets = serving.budgets
        rule = budgets.everything
        senders = KeyedBudget(budgets.sender, limit: budgets.keys)
        encryptedTokens = KeyedBudget(budgets.encryptedToken, limit: budgets.keys)
        deviceTokens = KeyedBudget(budgets.deviceToken, limit: budgets.keys)
        let events = MarmotLimits.replaySpan.wholeMilliseconds
        wraps = ReplayWindow(span: events, limit: budgets.keys)
        rumors = ReplayWindow(span: events, limit: budgets.keys)
        contents = ReplayWindow(
            span: serving.contentSpan.wholeMilliseconds, limit: budgets.keys)
        pauses = DevicePauses(span: serving.pause.wholeMilliseconds, limit: budgets.keys)
    }

    /// Uses other rules from now on, and forgets nothing.
    mutating func adopt(_ serving: MarmotServing) {
        rule = serving.budgets.everything
        senders.rule = serving.budgets.sender
        contents.span = serving.contentSpan.wholeMilliseconds
        pauses.span = serving.pause.wholeMilliseconds
    }

    /// Keys in memory, for tests.
    var keys: Int {
        senders.count + encryptedTokens.count + deviceTokens.count + wraps.count + rumors.count
            + contents.count + pauses.count
    }

    /// Forgets what is over, for an idle server.
    mutating func forget(at now: Int64) {
        senders.forget(at: now)
        encryptedTokens.forget(at: now)
        deviceTokens.forget(at: now)
        wraps.forget(at: now)
        rumors.forget(at: now)
        contents.forget(at: now)
        pauses.forget(at: now)
    }

    /// Steps 3 and 4.
    mutating func begin(_ wrap: Digest16, _ visit: Visit) -> MarmotError.Code? {
        guard wraps.reserve(wrap, at: visit.now) else { return .repeated }
        guard chargeAttempt(visit) else {
            wraps.release(wrap)
            return .overBudget
        }
        return nil
    }

    /// Steps 7 and 8.
    mutating func admit(
        rumor: Digest16, content: Digest16?, sender: Digest16, _ held: inout Reservation, _ visit: Visit
    ) -> MarmotError.Code? {
        guard rumors.reserve(rumor, at: visit.now) else { return .repeated }
        held.rumor = rumor
        if let content {
            guard contents.reserve(content, at: visit.now) else { return .repeated }
            held.content = content
        }
        return senders.charge(sender, at: visit.now, among: visit.members) ? nil : .overBudget
    }

    /// The work could not be done: the same trigger may come again.
    mutating func release(_ held: Reservation) {
        wraps.release(held.wrap)
        if let rumor = held.rumor { rumors.release(rumor) }
        if let content = held.content { contents.release(content) }
        for device in held.devices { pauses.release(device) }
    }

    mutating func charge(encryptedToken key: Digest16, _ visit: Visit) -> Bool {
        encryptedTokens.charge(key, at: visit.now, among: visit.members)
    }

    mutating func refund(encryptedToken key: Digest16) { encryptedTokens.refund(key) }

    /// Charges one or two multiplications on the curve. Each relay has a share of the budget, so that none
    /// can use up what the others' wraps need.
    mutating func chargeAttempt(_ visit: Visit) -> Bool {
        func share(_ count: Int) -> Int { count == 0 ? 0 : max(1, count / max(1, visit.relays)) }
        let own = RateRule(perMinute: share(rule.perMinute), perHour: share(rule.perHour))
        var used = relays[visit.relay] ?? Budget()
        guard !used.isSpent(own, at: visit.now), everything.charge(rule, at: visit.now) else { return false }
        _ = used.charge(own, at: visit.now)
        if relays[visit.relay] == nil, relays.count >= Self.relayLimit, let oldest = relays.keys.min() {
            relays[oldest] = nil
        }
        relays[visit.relay] = used
        return true
    }

    /// Whether and when a device may be woken; `nil`: its budget is spent.
    mutating func wake(deviceToken key: Digest16, _ visit: Visit) -> DevicePauses.Turn? {
        // The budget is checked first: otherwise a pause would have begun without a wake, and triggers during
        // it would wake nobody.
        guard deviceTokens.charge(key, at: visit.now, among: visit.members) else { return nil }
        let turn = pauses.take(key, at: visit.now)
        // A trigger that an earlier wake covers costs nothing more.
        if turn == .covered { deviceTokens.refund(key) }
        return turn
    }
}
