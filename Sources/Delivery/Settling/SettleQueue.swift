import PushModel

/// Settlements that wait for the store, in order, and how many of them are tried at once. A value.
///
/// If the store cannot write one of them (a locked row, a damaged page, a rule of the database), all that are
/// tried with it fail. So after a failure fewer are tried together, in the end a single one, and after each
/// success twice as many.
struct SettleQueue: Sendable {
    /// Some of them, in order. The settlements stand apart from the rest, so that the store is given them as
    /// they are: a settlement is large, and every push has one.
    struct Batch: Sendable {
        private(set) var settlements: [Settlement] = []
        private(set) var rests: [Settler.Item.Rest] = []

        var count: Int { settlements.count }
        var isEmpty: Bool { settlements.isEmpty }
        var indices: Range<Int> { settlements.indices }
        var items: [Settler.Item] { indices.map { Settler.Item(settlements[$0], rests[$0]) } }

        /// Whether a push that the store calls not ours is not withdrawn but goes on where it is.
        func goesOn(_ index: Int) -> Bool {
            settlements[index].step == .withdraw && !rests[index].mayBeTold
        }

        init() {}

        init(_ items: [Settler.Item]) { append(items) }

        fileprivate mutating func append(_ more: some Collection<Settler.Item>) {
            for item in more {
                settlements.append(item.settlement)
                rests.append(item.rest)
            }
        }

        fileprivate mutating func reserve(_ count: Int) {
            settlements.reserveCapacity(count)
            rests.reserveCapacity(count)
        }

        fileprivate mutating func takeFirst(_ count: Int) -> Batch {
            var taken = Batch()
            (taken.settlements, taken.rests) = (Array(settlements.prefix(count)), Array(rests.prefix(count)))
            settlements.removeFirst(count)
            rests.removeFirst(count)
            return taken
        }

        fileprivate mutating func doubt(_ places: Range<Int>) {
            for place in places { rests[place].mayBeTold = true }
        }
    }

    /// Being tried: the first of all.
    private var tried = Batch()
    private var waiting = Batch()
    /// Failures since the last success.
    private(set) var failures = 0
    private var width: Int
    private let widest: Int

    /// - Parameter widest: how many are tried at once at most.
    init(widest: Int) {
        self.widest = widest
        width = widest
    }

    var count: Int { tried.count + waiting.count }
    var isEmpty: Bool { tried.isEmpty && waiting.isEmpty }
    /// All of them, those that are being tried first.
    var items: [Settler.Item] { tried.items + waiting.items }

    /// What is to be tried next. It stays in the queue until the store has taken it.
    mutating func next() -> Batch {
        join()
        // The room that was made for what comes stays with it.
        guard !waiting.isEmpty else { return Batch() }
        if waiting.count > width {
            tried = waiting.takeFirst(width)
        } else {
            // Nearly always: handed out without a copy. As many will come until the store has taken these.
            swap(&tried, &waiting)
            waiting.reserve(tried.count)
        }
        return tried
    }

    mutating func append(_ more: some Collection<Settler.Item>) { waiting.append(more) }

    /// The store has taken this many from the front.
    mutating func settled(_ count: Int) {
        if count == tried.count {
            tried = Batch()
        } else {
            join()
            _ = waiting.takeFirst(count)
        }
        failures = 0
        width = min(width * 2, widest)
    }

    /// The store has not taken this many from the front.
    ///
    /// - Returns: whether fewer of them are to be tried at once.
    mutating func failed(_ count: Int, _ code: StoreError.Code) -> Bool {
        join()
        failures += 1
        // Each of them, because they are not always tried again together.
        if code == .uncertain { waiting.doubt(0..<min(count, waiting.count)) }
        guard code.mayBlameOneRow, count > 1 else { return false }
        // Three halvings at once: each try may take a lock's whole patience.
        width = max(1, count / 8)
        return true
    }

    /// Takes out the first, with everything behind it for the same push, because the settlements of one push
    /// must stay in order.
    mutating func takeFirst() -> [Settler.Item] {
        join()
        let items = waiting.items
        guard let id = items.first?.settlement.push.id else { return [] }
        waiting = Batch(items.filter { $0.settlement.push.id != id })
        return items.filter { $0.settlement.push.id == id }
    }

    /// Takes in settlements that failed alone elsewhere: they are not tried at once.
    mutating func takeOver(_ failed: [Settler.Item]) {
        waiting.append(failed)
        failures = max(failures, 1)
    }

    /// The first has its next turn when all others have had theirs.
    mutating func rotate() { waiting.append(takeFirst()) }

    /// Nothing is being tried any more.
    private mutating func join() {
        guard !tried.isEmpty else { return }
        var all = tried
        all.append(waiting.items)
        (tried, waiting) = (Batch(), all)
    }
}

extension Settler {
    /// One settlement, the registry changes that follow from the answer, and what waits for the commit.
    struct Item: Sendable {
        /// What does not go to the store with the settlement.
        struct Rest: Sendable {
            var feedback: [Change] = []
            /// The push's first outcome, if a peer may hear of it only when the commit stands (or the store
            /// said that the push was no longer ours).
            var first: OutcomeKind?
            /// The push as it is tried again.
            var again: Return?
            /// The store was told before, and its answer was lost: a row that it now calls not ours may be
            /// one that we ended ourselves.
            var mayBeTold = false
        }

        var settlement: Settlement
        var rest: Rest

        init(_ settlement: Settlement, _ rest: Rest = Rest()) {
            self.settlement = settlement
            self.rest = rest
        }
    }
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
