import PushModel

/// A budget for each key, with a limit on the number of keys. A key that was not charged for an hour is
/// forgotten: its entry would only show that it was there.
///
/// When the table is full, the oldest key with budget left makes room. If the oldest are all spent, the new
/// key is refused, because the spent ones are those that the budget is for.
struct KeyedBudget: Sendable {
    var rule: RateRule { didSet { rule = Self.bounded(rule) } }
    private let limit: Int
    private var budgets: [Digest16: Budget<UInt16>] = [:]
    /// The keys. Each is checked in turn, and goes to the end if it is not idle.
    private var order = KeyQueue<Digest16>()
    /// How many keys each charge checks, so that a busy table frees more than it takes; and how many one call
    /// of ``forget(at:)`` checks, so that it never delays others for long.
    private static let forgotten = 2
    private static let swept = 4_096
    /// How many old keys are checked for one that can go, so that a full table is never scanned.
    private static let probes = 16

    init(_ rule: RateRule, limit: Int) {
        self.rule = Self.bounded(rule)
        self.limit = limit
    }

    /// The most that 16 bits can count.
    private static func bounded(_ rule: RateRule) -> RateRule {
        let most = Int(UInt16.max)
        return RateRule(perMinute: min(rule.perMinute, most), perHour: min(rule.perHour, most))
    }

    var count: Int { budgets.count }

    /// False if the key has nothing left, or there is no room for it; then nothing was charged.
    ///
    /// - Parameter members: processes that share the load. Each allows an equal part of the rule, rounded up:
    ///   nobody can choose which process gets what, so the whole rule holds over all of them.
    mutating func charge(_ key: Digest16, at now: Int64, among members: Int = 1) -> Bool {
        let rule = rule.part(of: members)
        forget(at: now, looking: Self.forgotten)
        if budgets[key] != nil { return budgets[key]?.charge(rule, at: now) ?? false }
        guard budgets.count < limit || makeRoom(rule, at: now) else { return false }
        var budget = Budget<UInt16>()
        guard budget.charge(rule, at: now) else { return false }
        budgets[key] = budget
        order.append(key)
        return true
    }

    /// Forgets keys that were idle for an hour.
    mutating func forget(at now: Int64) { forget(at: now, looking: min(order.count, Self.swept)) }

    private mutating func forget(at now: Int64, looking count: Int) {
        for _ in 0..<count {
            guard let key = order.popFirst() else { return }
            if budgets[key]?.isIdle(at: now) ?? true { budgets[key] = nil } else { order.append(key) }
        }
    }

    mutating func refund(_ key: Digest16) { budgets[key]?.refund() }

    private mutating func makeRoom(_ rule: RateRule, at now: Int64) -> Bool {
        for _ in 0..<Self.probes {
            guard let oldest = order.popFirst() else { return false }
            if budgets[oldest]?.isSpent(rule, at: now) ?? false {
                order.append(oldest)
            } else {
                budgets[oldest] = nil
                return true
            }
        }
        return false
    }
}

/// A queue in one array; its user keeps it short.
struct KeyQueue<Element: Sendable>: Sendable {
    private var items: [Element] = []
    private var head = 0

    var count: Int { items.count - head }
    var first: Element? { head < items.count ? items[head] : nil }

    mutating func append(_ element: Element) { items.append(element) }

    mutating func popFirst() -> Element? {
        guard head < items.count else { return nil }
        defer {
            head += 1
            // Elements move seldom, and at most as many as were taken since the last time.
            if head >= 1_024, head * 2 >= items.count {
                items.removeFirst(head)
                head = 0
            }
        }
        return items[head]
    }
}
