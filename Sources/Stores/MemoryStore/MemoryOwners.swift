package import PushModel
import Synchronization

extension MemoryStore: StoredOwners {
    package func renew(for span: Duration) async throws(StoreError) {
        let until = spans() + span
        changing { $0.aliveUntil[owner] = until }
    }

    package func enrol(in groups: [GroupName], for span: Duration) async throws(StoreError) -> [Member] {
        shared.state.withLock { $0.members.enrol(owner, in: groups, until: spans() + span, now: spans()) }
    }

    package func takeOver(_ lanes: [String], limit: Int) async throws(StoreError) -> Int {
        shared.state.withLock { $0.takeOver(lanes, limit, owner, spans()) }
    }

    package func letGo(besides lanes: [String], limit: Int) async throws(StoreError) -> Int {
        shared.state.withLock { $0.letGo(besides: lanes, limit, owner) }
    }

    package func reclaim(limit: Int) async throws(StoreError) -> Int {
        shared.state.withLock { $0.reclaim(limit, owner) }
    }

    package func load() async throws(StoreError) -> (rows: Int, bytes: Int, lanes: [String: Int]) {
        shared.state.withLock { state in
            (state.rows.count, state.bytes, state.claimable(owner, spans()))
        }
    }
}

extension MemoryState {
    func isDead(_ owner: OwnerID, _ clock: UnixTime) -> Bool {
        (aliveUntil[owner] ?? .distantPast) <= clock
    }

    /// Parked pushes by lane that this owner may claim.
    func claimable(_ owner: OwnerID, _ clock: UnixTime) -> [String: Int] {
        var counts: [String: Int] = [:]
        for (place, count) in parkedCounts where place.owner == owner || isDead(place.owner, clock) {
            counts[place.lane, default: 0] += count
        }
        return counts
    }

    mutating func reclaim(_ limit: Int, _ owner: OwnerID) -> Int {
        var taken: [Row] = []
        for row in rows.values where taken.count < limit {
            if row.owner == owner, !row.push.parked { taken.append(row) }
        }
        for var row in taken {
            row.push.epoch += 1
            row.push.parked = true
            rows[row.push.row] = row
            park(row)
        }
        return taken.count
    }

    mutating func takeOver(_ lanes: [String], _ limit: Int, _ owner: OwnerID, _ clock: UnixTime) -> Int {
        var taken: [Row] = []
        for row in rows.values where taken.count < limit {
            if row.owner != owner, lanes.contains(row.push.lane), isDead(row.owner, clock) {
                taken.append(row)
            }
        }
        for row in taken { give(row, to: owner) }
        return taken.count
    }

    mutating func letGo(besides lanes: [String], _ limit: Int, _ owner: OwnerID) -> Int {
        var gone: [Row] = []
        for row in rows.values where gone.count < limit {
            if row.owner == owner, row.push.parked, !lanes.contains(row.push.lane) { gone.append(row) }
        }
        for row in gone { give(row, to: .nobody) }
        return gone.count
    }

    private mutating func give(_ row: Row, to owner: OwnerID) {
        var row = row
        unpark(row)
        row.owner = owner
        row.push.epoch += 1
        row.push.parked = true
        rows[row.push.row] = row
        // A parked row may have a second place: the first that comes up counts.
        park(row)
    }
}
