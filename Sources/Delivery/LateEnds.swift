import PushModel

/// Pushes that a late answer has ended while a repeat of them waited or was under way (decision 0077). A
/// value.
///
/// A row is told of the end in the name that it has. The store may just have given it out under another, by a
/// claim that was made before the end came; then it is told once more, where the push is met again. A repeat
/// under way is known here, so that its row is told at once; whatever it is answered changes nothing more.
///
/// Bounded: of those that nobody met again the longest known are forgotten. A push that was forgotten so is
/// sent once more at worst.
struct LateEnds: Sendable {
    /// What a push that is met again is owed.
    enum End: Sendable {
        /// Nothing: its row has been told.
        case told
        /// Its row has another name by now.
        case untold
    }

    /// In what epoch their rows were told.
    private var known: [PushID: Int64] = [:]
    private var inOrder = Fifo<PushID>()
    /// Durable pushes under way that were sent before without an answer: no more than are under way.
    private var repeats: [PushID: OwedPush] = [:]
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    var isEmpty: Bool { known.isEmpty }

    mutating func sent(_ push: OwedPush) { if Self.isRepeat(push) { repeats[push.id] = push } }

    /// It is under way no more.
    mutating func answered(_ push: OwedPush) { if Self.isRepeat(push) { repeats[push.id] = nil } }

    /// The repeat of that push which is under way.
    func underWay(_ id: PushID) -> OwedPush? { repeats[id] }

    /// The push has ended, and its row is told in this name.
    mutating func insert(_ push: OwedPush) {
        guard known.updateValue(push.epoch, forKey: push.id) == nil else { return }
        inOrder.append(push.id)
        // Those that were met stand in the order still: it is as long as what is known at least.
        while inOrder.count > limit, let oldest = inOrder.popFirst() { known[oldest] = nil }
    }

    /// What is owed to a push that has ended so; `nil`: it has not. It is met once.
    mutating func take(_ push: OwedPush) -> End? {
        guard !known.isEmpty, let epoch = known.removeValue(forKey: push.id) else { return nil }
        return epoch == push.epoch ? .told : .untold
    }

    private static func isRepeat(_ push: OwedPush) -> Bool {
        push.attempts.unknown > 0 && push.isDurable
    }
}
