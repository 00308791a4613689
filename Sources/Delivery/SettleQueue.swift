import PushModel

/// Settlements that wait for the store, in order, and how many of them are tried at once. A value.
///
/// What one of them cannot have (a row that somebody has locked, a page that is damaged, a rule of the
/// database against it) fails all that it is tried with. So behind a failure fewer are tried together, in the
/// end one alone, and behind each success twice as many.
struct SettleQueue: Sendable {
    private(set) var items: [Settler.Item] = []
    /// Failures since the last success.
    private(set) var failures = 0
    private var width: Int
    private let widest: Int

    /// - Parameter widest: how many are tried at once at most.
    init(widest: Int) {
        self.widest = widest
        width = widest
    }

    /// What is to be tried next.
    var batch: [Settler.Item] { Array(items.prefix(width)) }

    mutating func append(_ more: some Collection<Settler.Item>) { for item in more { items.append(item) } }

    /// The store has taken the first so many.
    mutating func settled(_ count: Int) {
        items.removeFirst(count)
        failures = 0
        width = min(width * 2, widest)
    }

    /// The store has not taken the first so many.
    ///
    /// - Returns: whether fewer of them are to be tried at once.
    mutating func failed(_ count: Int, _ code: StoreError.Code) -> Bool {
        failures += 1
        // Each, for they are not always told again together.
        if code == .uncertain {
            for place in items.indices.prefix(count) { items[place].mayBeTold = true }
        }
        guard code.mayBlameOneRow, count > 1 else { return false }
        // Three halvings at once: each try may take a lock's whole patience.
        width = max(1, count / 8)
        return true
    }

    /// Takes out the first, with what waits behind it for the same push: what is said of one push is said in
    /// order.
    mutating func takeFirst() -> [Settler.Item] {
        guard let id = items.first?.settlement.push.id else { return [] }
        let taken = items.filter { $0.settlement.push.id == id }
        items.removeAll { $0.settlement.push.id == id }
        return taken
    }

    /// Takes in what has failed alone elsewhere: it is not tried at once.
    mutating func takeOver(_ failed: [Settler.Item]) {
        items += failed
        failures = max(failures, 1)
    }

    /// The first has its next turn when all others have had theirs.
    mutating func rotate() { items += takeFirst() }
}

extension StoreErrorCode {
    /// Whether it may be said of one row while others can be written.
    var mayBlameOneRow: Bool {
        switch self {
        case .unavailable, .corrupt: true
        case .full, .noSpace, .readOnly, .uncertain, .wrongKey, .inUse, .newerSchema, .halfMigrated, .denied,
            .notDurable, .moved, .unfinished:
            false
        }
    }
}
