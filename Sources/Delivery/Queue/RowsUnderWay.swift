import PushModel

/// Durable pushes of a lane that are under way, and the names that their rows have been given meanwhile
/// (decision 0108). A value.
///
/// A lease that runs out while a request is under way lets another process have the row, and what that one
/// leaves may come back here while the request is still under way. The push is not sent twice at the same
/// time: its row's new name waits here, and the answer to the request is recorded under that name.
///
/// As many as are under way. Every push passes here, so it is found by a number instead of a hash.
struct RowsUnderWay: Sendable {
    /// The name of a row since the store has given it out again.
    struct Name: Sendable {
        let push: OwedPush
        /// The lease's term in which the store was asked for it.
        let term: Int
    }

    private var ids: [PushID] = []
    /// Unused places in `ids`.
    private var free: [Int32] = []
    /// The term of the last claim.
    private var term = 0
    /// The pushes that were under way when that term's first claim came: no claim brings a push that left
    /// later, because its row is ours and counts as in memory.
    private var older: Set<PushID> = []
    private var names: [PushID: Name] = [:]

    /// A push leaves.
    ///
    /// - Returns: its place.
    mutating func sent(_ push: OwedPush) -> Int32 {
        guard push.isDurable else { return -1 }
        if let place = free.popLast() {
            ids[Int(place)] = push.id
            return place
        }
        ids.append(push.id)
        return Int32(truncatingIfNeeded: ids.count - 1)
    }

    /// It is no longer under way.
    ///
    /// - Returns: its row's name, if that is another than its own.
    mutating func ended(_ entry: LaneQueue.Entry) -> Name? {
        guard entry.place >= 0 else { return nil }
        free.append(entry.place)
        guard !older.isEmpty, older.remove(entry.push.id) != nil else { return nil }
        return names.removeValue(forKey: entry.push.id).flatMap { $0.isNews(to: entry.push) ? $0 : nil }
    }

    /// The name of a row whose push is under way, if it is another than its own.
    func name(of entry: LaneQueue.Entry) -> Name? {
        guard !names.isEmpty, let name = names[entry.push.id] else { return nil }
        return name.isNews(to: entry.push) ? name : nil
    }

    private var present: Set<PushID> {
        let nobody = Set(free)
        var present: Set<PushID> = []
        for (place, id) in ids.enumerated() where !nobody.contains(Int32(truncatingIfNeeded: place)) {
            present.insert(id)
        }
        return present
    }

    /// Pushes that the store has just given out: those that are under way go on under their new names.
    ///
    /// - Returns: the others.
    mutating func keep(_ pushes: [OwedPush], term: Int) -> [OwedPush] {
        if term > self.term {
            self.term = term
            older = present
        }
        guard !older.isEmpty else { return pushes }
        return pushes.filter { push in
            guard older.contains(push.id) else { return true }
            if names[push.id].map({ $0.push.epoch < push.epoch }) ?? true {
                names[push.id] = Name(push: push, term: term)
            }
            return false
        }
    }
}

extension RowsUnderWay.Name {
    fileprivate func isNews(to push: OwedPush) -> Bool { self.push.epoch != push.epoch }

    /// The push as it comes from the store.
    var entry: LaneQueue.Entry { LaneQueue.Entry(claimed: push, term: term) }
}

extension LaneQueue.Entry {
    /// A push that the store has given out.
    ///
    /// - Parameter term: in which it was asked for it.
    init(claimed push: OwedPush, term: Int) {
        self.init(push: push, isFirst: push.attempt == 0, environmentKnown: false, term: term)
        hasWaited = true
    }

    /// Continues under the present name of its row, in the lane where it is.
    mutating func take(_ name: RowsUnderWay.Name) {
        let lane = push.lane
        push = name.push
        push.lane = lane
        term = name.term
        // Another process may have sent it meanwhile, and have reported the result.
        isFirst = isFirst && push.attempt == 0
        hasWaited = true
    }
}
