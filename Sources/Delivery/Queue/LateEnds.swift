import PushModel

/// Pushes that a late answer has ended while a repeat of them waited or was under way (decision 0077). A
/// value.
///
/// The end is recorded under the present name of the row. The store may just have given the row out under
/// another name, by a claim that was made before the end came; then the end is recorded again when the push
/// is met again. A repeat under way is known here, so that its row is settled at once; its own answer then
/// changes nothing.
///
/// Bounded: the oldest entries that were not met again are dropped. A push whose entry was dropped is sent
/// once more at worst.
struct LateEnds: Sendable {
    /// What to do for a push that is met again.
    enum End: Sendable {
        /// Nothing: its row has been settled.
        case told
        /// Its row now has another name.
        case untold
    }

    /// The epoch under which their rows were settled.
    private var known: [PushID: Int64] = [:]
    private var inOrder: Ring<PushID>
    /// Durable pushes under way that were sent before without an answer: at most as many as are under way.
    private var repeats: [PushID: OwedPush] = [:]

    init(limit: Int) { inOrder = Ring(limit) }

    var isEmpty: Bool { known.isEmpty }

    mutating func sent(_ push: OwedPush) { if Self.isRepeat(push) { repeats[push.id] = push } }

    /// It is no longer under way.
    mutating func answered(_ push: OwedPush) { if Self.isRepeat(push) { repeats[push.id] = nil } }

    /// The repeat of this push that is under way.
    func underWay(_ id: PushID) -> OwedPush? { repeats[id] }

    /// The push has ended, and its row is settled under this name.
    mutating func insert(_ push: OwedPush) {
        guard known.updateValue(push.epoch, forKey: push.id) == nil else { return }
        // Entries that were met are still in the order, which is at least as long as the table.
        if let oldest = inOrder.append(push.id) { known[oldest] = nil }
    }

    /// What to do for a push that has ended in this way; `nil`: it has not. Each is met once.
    mutating func take(_ push: OwedPush) -> End? {
        guard !known.isEmpty, let epoch = known.removeValue(forKey: push.id) else { return nil }
        return epoch == push.epoch ? .told : .untold
    }

    private static func isRepeat(_ push: OwedPush) -> Bool {
        push.attempts.unknown > 0 && push.isDurable
    }
}
