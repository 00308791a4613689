import PushModel

/// A budget for each of at most so many keys.
///
/// When full, the oldest key that has something left makes room; where the oldest are all spent, the new key
/// is refused: those are the ones that the budget is for.
struct KeyedBudget: Sendable {
    private let rule: RateRule
    private let limit: Int
    private var budgets: [Digest16: Budget<UInt16>] = [:]
    private var order = KeyQueue<Digest16>()
    /// How many old keys are looked at for one that can go: a full table costs no walk.
    private static let probes = 16

    init(_ rule: RateRule, limit: Int) {
        let most = Int(UInt16.max)
        self.rule = RateRule(perMinute: min(rule.perMinute, most), perHour: min(rule.perHour, most))
        self.limit = limit
    }

    var count: Int { budgets.count }

    /// False when nothing is left for the key, or no room for it; then nothing was charged.
    ///
    /// - Parameter members: processes that share what comes, each of which allows an equal part of the rule,
    ///   rounded up: what falls to whom cannot be chosen, so the whole holds over all of them.
    mutating func charge(_ key: Digest16, at now: Int64, among members: Int = 1) -> Bool {
        let rule = rule.part(of: members)
        if budgets[key] != nil { return budgets[key]?.charge(rule, at: now) ?? false }
        guard budgets.count < limit || makeRoom(rule, at: now) else { return false }
        var budget = Budget<UInt16>()
        guard budget.charge(rule, at: now) else { return false }
        budgets[key] = budget
        order.append(key)
        return true
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

/// A queue on one array; as long as its user keeps it.
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
            // Moved seldom, and at most as many as were taken since.
            if head >= 1_024, head * 2 >= items.count {
                items.removeFirst(head)
                head = 0
            }
        }
        return items[head]
    }
}
