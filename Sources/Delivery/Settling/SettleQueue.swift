import PushModel

/// Settlements that wait for the store, in order, and how many of them are tried at once. A value.
///
/// If the store cannot write one of them (a locked row, a damaged page, a rule of the database), all that are
/// tried with it fail. So after a failure fewer are tried together, in the end a single one, and after each
/// success twice as many.
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

    /// The store has taken this many from the front.
    mutating func settled(_ count: Int) {
        items.removeFirst(count)
        failures = 0
        width = min(width * 2, widest)
    }

    /// The store has not taken this many from the front.
    ///
    /// - Returns: whether fewer of them are to be tried at once.
    mutating func failed(_ count: Int, _ code: StoreError.Code) -> Bool {
        failures += 1
        // Each of them, because they are not always tried again together.
        if code == .uncertain {
            for place in items.indices.prefix(count) { items[place].mayBeTold = true }
        }
        guard code.mayBlameOneRow, count > 1 else { return false }
        // Three halvings at once: each try may take a lock's whole patience.
        width = max(1, count / 8)
        return true
    }

    /// Takes out the first, with everything behind it for the same push, because the settlements of one push
    /// must stay in order.
    mutating func takeFirst() -> [Settler.Item] {
        guard let id = items.first?.settlement.push.id else { return [] }
        let taken = items.filter { $0.settlement.push.id == id }
        items.removeAll { $0.settlement.push.id == id }
        return taken
    }

    /// Takes in settlements that failed alone elsewhere: they are not tried at once.
    mutating func takeOver(_ failed: [Settler.Item]) {
        items += failed
        failures = max(failures, 1)
    }

    /// The first has its next turn when all others have had theirs.
    mutating func rotate() { items += takeFirst() }
}

extension StoreErrorCode {
    /// Whether the error may concern one row while others can be written.
    var mayBlameOneRow: Bool {
        switch self {
        case .unavailable, .corrupt: true
        case .full, .noSpace, .readOnly, .uncertain, .wrongKey, .inUse, .newerSchema, .halfMigrated, .denied,
            .notDurable, .moved, .unfinished:
            false
        }
    }
}
