import PushModel

/// The mark index with what undoes its changes. In one value, so that a change of both is one access to the
/// writer's memory: every push makes two of them.
struct UndoableMarks {
    private var index: MarkIndex
    /// What stood before, newest last, so that a transaction can be undone.
    private var before: [(mark: Digest16, place: MarkIndex.Place?)] = []

    init(limits: SQLiteLimits) { index = MarkIndex(limits: limits) }

    /// `nil` when the mark is not held.
    func place(of mark: Digest16, now: UnixTime) -> MarkIndex.Place? { index.place(of: mark, now: now) }

    /// As ``MarkIndex/oldest(now:)``.
    func oldest(now: UnixTime) -> UnixTime { index.oldest(now: now) }

    /// Takes in a mark that stands in the file, outside any transaction.
    mutating func load(_ mark: Digest16, _ place: MarkIndex.Place, now: UnixTime) {
        index.insert(mark, place, now: now)
    }

    mutating func insert(_ mark: Digest16, _ place: MarkIndex.Place, now: UnixTime) {
        before.append((mark, index.place(of: mark, now: now)))
        index.insert(mark, place, now: now)
    }

    /// Moves a mark from its row to a blob, or releases it (`nil`).
    mutating func move(_ mark: Digest16, to place: MarkIndex.Place?, now: UnixTime) {
        before.append((mark, index.place(of: mark, now: now)))
        index.move(mark, to: place)
    }

    // MARK: undoing

    var changes: Int { before.count }

    mutating func keep() { before.removeAll(keepingCapacity: true) }

    mutating func undo(to changes: Int) {
        while before.count > changes, let (mark, place) = before.popLast() { index.move(mark, to: place) }
    }
}
