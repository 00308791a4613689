import PushModel

// Pushes that wait in the store: claims, and what ends there.
extension MemoryState {
    mutating func park(_ row: Row) {
        let push = row.push
        let name = ParkedName(lane: push.lane, pushClass: push.pushClass)
        parked[name, default: MemoryParkedRows()].insert(
            MomentHeap.Item(at: push.notBefore, row: push.row), of: push.origin)
        parkedCounts[ParkedOwner(lane: push.lane, owner: row.owner), default: 0] += 1
    }

    /// Called before a row changes; its place among the parked is dropped when it comes up.
    mutating func unpark(_ row: Row) {
        guard row.push.parked else { return }
        let place = ParkedOwner(lane: row.push.lane, owner: row.owner)
        let left = parkedCounts[place, default: 0] - 1
        parkedCounts[place] = left > 0 ? left : nil
    }

    private func isParked(_ item: MomentHeap.Item, in lane: String) -> Bool {
        guard let push = rows[item.row]?.push else { return false }
        return push.parked && push.notBefore == item.at && push.lane == lane
    }

    mutating func claim(
        _ lane: String, _ due: UnixTime, _ limit: Int, _ classes: ClosedRange<PushClass>, _ owner: OwnerID,
        _ clock: UnixTime
    ) -> [StoredPush] {
        var taken: [StoredPush] = []
        for pushClass in PushClass.allCases where classes.contains(pushClass) && taken.count < limit {
            let name = ParkedName(lane: lane, pushClass: pushClass)
            guard var waiting = parked.removeValue(forKey: name) else { continue }
            // Ends, because each round takes rows out or is the last. A row that was put off and brought back
            // to the same moment is listed twice; then a round brings fewer rows than it was asked for.
            while taken.count < limit {
                let handles = waiting.take(
                    due: due, limit: limit - taken.count, counts: { isParked($0, in: lane) },
                    mayTake: { item in rows[item.row].map { mayTake($0, owner, clock) } ?? false })
                if handles.isEmpty { break }
                for handle in handles {
                    if let row = rows[handle], row.push.parked { taken.append(take(row, owner)) }
                }
            }
            parked[name] = waiting
        }
        return taken
    }

    private func mayTake(_ row: Row, _ owner: OwnerID, _ clock: UnixTime) -> Bool {
        row.owner == owner || isDead(row.owner, clock)
    }

    private mutating func take(_ row: Row, _ owner: OwnerID) -> StoredPush {
        var row = row
        unpark(row)
        row.push.epoch += 1
        row.owner = owner
        row.push.parked = false
        rows[row.push.row] = row
        return row.push
    }

    mutating func nextDue(_ lane: String, _ owner: OwnerID, _ clock: UnixTime) -> UnixTime? {
        var next: UnixTime?
        for pushClass in PushClass.allCases {
            let name = ParkedName(lane: lane, pushClass: pushClass)
            guard var waiting = parked.removeValue(forKey: name) else { continue }
            let earliest = waiting.earliest(
                counts: { isParked($0, in: lane) },
                mayTake: { item in rows[item.row].map { mayTake($0, owner, clock) } ?? false })
            if let earliest { next = min(next ?? earliest, earliest) }
            parked[name] = waiting
        }
        return next
    }

    mutating func endCustody(
        _ before: UnixTime, _ limit: Int, _ owner: OwnerID, _ clock: UnixTime
    ) -> [String: Int] {
        var gone: [Row] = []
        var spared: [MomentHeap.Item] = []
        var ended = custody
        custody = MomentHeap()
        // A push that is in a lane's memory ends there.
        while gone.count < limit, let item = ended.first({ rows[$0.row] != nil }), item.at <= before {
            _ = ended.removeFirst()
            guard let row = rows[item.row] else { continue }
            if row.push.parked, mayTake(row, owner, clock) { gone.append(row) } else { spared.append(item) }
        }
        for item in spared { ended.insert(item) }
        custody = ended
        var counts: [String: Int] = [:]
        for row in gone {
            remove(row)
            if let mark = row.push.mark, marks[mark]?.row == row.push.row { marks[mark] = nil }
            counts[row.push.lane, default: 0] += 1
        }
        return counts
    }
}
