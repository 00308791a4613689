import PushModel

/// The rows, and what may be done with them. No lock and no clock of its own.
struct MemoryState {
    struct Row {
        var push: StoredPush
        var owner: OwnerID
        var first: OutcomeKind?
    }

    struct Mark {
        var id: PushID
        var row: Int64
        var first: OutcomeKind?
        /// When the push ended; `nil` while it is owed.
        var endedAt: UnixTime?
    }

    struct ParkedOwner: Hashable {
        var lane: String
        var owner: OwnerID
    }

    struct ParkedName: Hashable {
        var lane: String
        var pushClass: PushClass
    }

    /// How long a mark is held after its push has ended (decision 0003).
    static let markSpan = Duration.seconds(600)
    /// Marks of ended pushes in memory: ten minutes at 1,700 a second, in some 100 MB at worst.
    static let markLimit = 1_000_000

    let rowLimit: Int
    let byteLimit: Int
    let share: AppShare
    var owedByApp = OwedByApp()
    var records: [Digest16: StoredRecord] = [:]
    var revision: UInt64 = 0
    var rows: [Int64: Row] = [:]
    var nextRow: Int64 = 1
    var bytes = 0
    var parked: [ParkedName: ParkedRows] = [:]
    private var parkedCounts: [ParkedOwner: Int] = [:]
    /// When custody of each row ends; what has gone meanwhile is passed over.
    private var custody = MomentHeap()
    var marks: [Digest16: Mark] = [:]
    /// Ended marks, oldest first; consumed up to `endedHead`.
    var ended: [(mark: Digest16, at: UnixTime)] = []
    var endedHead = 0
    var aliveUntil: [OwnerID: UnixTime] = [:]
    var members = MemberTable()
    var settings: [String: [UInt8]] = [:]

    init(rowLimit: Int, byteLimit: Int, share: AppShare) {
        self.share = share
        self.rowLimit = rowLimit
        self.byteLimit = byteLimit
    }

    // MARK: records

    func record(_ key: Digest16, _ now: UnixTime) -> StoredRecord? {
        records[key].flatMap { $0.expiresAt > now ? $0 : nil }
    }

    /// Looks through all records: this engine is small.
    func page(_ index: StoredIndex, _ after: UInt64, _ limit: Int, _ now: UnixTime) -> [StoredRecord] {
        let found = records.values.filter { record in
            guard record.revision > after, record.expiresAt > now else { return false }
            return switch index {
            case .space(let space): record.space == space
            case .owner(let owner): record.owner == owner
            case .address(let address): record.address == address
            }
        }
        return Array(found.sorted { $0.revision < $1.revision }.prefix(limit))
    }

    mutating func purge(_ before: UnixTime, _ limit: Int) -> Int {
        remove(limit) { $0.expiresAt < before } + remove(limit) { $0.space == Space.retired.text }
    }

    mutating func forget(_ owner: Digest16, _ limit: Int) -> Int { remove(limit) { $0.owner == owner } }

    func tally(_ owners: [Digest16]) -> [RecordTally] {
        var tallies: [Digest16: RecordTally] = [:]
        for owner in owners { tallies[owner] = RecordTally.none }
        for record in records.values {
            guard let owner = record.owner, let so = tallies[owner] else { continue }
            tallies[owner] = so + RecordTally(records: 1, bytes: record.body.count)
        }
        return owners.map { tallies[$0] ?? .none }
    }

    private mutating func remove(_ limit: Int, _ isGone: (StoredRecord) -> Bool) -> Int {
        var keys: [Digest16] = []
        for record in records.values where isGone(record) && keys.count < limit { keys.append(record.key) }
        for key in keys { records[key] = nil }
        return keys.count
    }

    mutating func apply(_ changes: [StoredChange], _ now: UnixTime) -> Applied {
        let saved = changes.count > 1 ? (records, revision) : nil
        for (index, change) in changes.enumerated() where !make(change, now) {
            if let saved { (records, revision) = saved }
            return .refused(index: index)
        }
        return .committed
    }

    /// False when the condition is not met; then nothing was changed.
    private mutating func make(_ change: StoredChange, _ now: UnixTime) -> Bool {
        switch change {
        case .put(var new, let condition):
            guard isMet(condition, new.key, now) else { return false }
            if case .besideLive = condition, let beside = new.address, record(beside, now)?.state != .live {
                return false
            }
            revision += 1
            new.revision = revision
            records[new.key] = new
        case .expire(let key, let at, let condition):
            guard isMet(condition, key, now) else { return false }
            expire(key, at, now)
        case .delete(let key, let condition):
            guard isMet(condition, key, now) else { return false }
            records[key] = nil
        case .deleteBeside(let keys):
            let beside = Set(keys)
            let gone = records.values.filter { $0.address.map(beside.contains) ?? false }
            for record in gone { records[record.key] = nil }
        }
        return true
    }

    private func isMet(_ condition: Condition, _ key: Digest16, _ now: UnixTime) -> Bool {
        condition.isMet(
            by: record(key, now).map {
                Standing(revision: $0.revision, version: $0.version, touchedAt: $0.touchedAt)
            })
    }

    /// Only what is live expires: the first moment stands, and a tombstone stays one.
    private mutating func expire(_ key: Digest16, _ at: UnixTime, _ now: UnixTime) {
        guard var standing = record(key, now), standing.state == .live else { return }
        revision += 1
        standing.state = .expired(at: at)
        // As in every engine: what has expired is only known to be so.
        standing.body = []
        standing.expiresAt = min(standing.expiresAt, at + Record.expiredLife)
        standing.revision = revision
        records[key] = standing
    }

    // MARK: pushes

    /// `nil`: full.
    mutating func accept(
        _ pushes: [StoredPush], _ changes: [StoredChange], _ owner: OwnerID, _ now: UnixTime,
        clock: UnixTime
    ) -> StoredAccepted? {
        dropMarks(clock)
        let repeats = pushes.map { $0.mark.flatMap { marks[$0] } }
        let new = repeats.count { $0 == nil }
        let newBytes = zip(pushes, repeats).reduce(0) { $0 + ($1.1 == nil ? $1.0.sealed.count : 0) }
        guard rows.count + new <= rowLimit, bytes + newBytes <= byteLimit,
            owedByApp.hasRoom(
                for: zip(pushes, repeats).compactMap { $1 == nil ? $0 : nil }, rows: share.of(rowLimit),
                bytes: share.of(byteLimit))
        else { return nil }
        if case .refused(let index) = apply(changes, now) { return .refused(index: index) }
        var admissions: [StoredAdmission] = []
        for (push, held) in zip(pushes, repeats) {
            if let held {
                admissions.append(.repeated(of: held.id, first: held.first))
            } else {
                admissions.append(.owed(row: insert(push, owner), epoch: 1))
            }
        }
        return .committed(admissions)
    }

    private mutating func insert(_ push: StoredPush, _ owner: OwnerID) -> Int64 {
        var push = push
        push.row = nextRow
        push.epoch = 1
        nextRow += 1
        let row = Row(push: push, owner: owner, first: nil)
        rows[push.row] = row
        bytes += push.sealed.count
        owedByApp.add(push.lane, rows: 1, bytes: push.sealed.count)
        if push.parked { park(row) }
        noteCustody(push)
        if let mark = push.mark { marks[mark] = Mark(id: push.id, row: push.row, first: nil, endedAt: nil) }
        return push.row
    }

    mutating func settle(_ step: StoredSettlement, _ owner: OwnerID, now: UnixTime) -> Bool {
        guard var row = rows[step.row], row.push.id == step.id, row.push.epoch == step.epoch,
            row.owner == owner
        else { return false }
        row.first = row.first ?? step.first
        switch step.step {
        case .settle:
            remove(row)
            if let mark = row.push.mark { end(mark, row, now) }
        case .withdraw:
            remove(row)
            if let mark = row.push.mark, marks[mark]?.row == row.push.row { marks[mark] = nil }
        case .retry(let notBefore, let attempt, let lane, let isParked):
            unpark(row)
            row.push.notBefore = notBefore
            row.push.attempt = attempt
            row.push.lane = lane.description
            row.push.parked = isParked
            keep(row)
        case .park:
            unpark(row)
            row.push.parked = true
            keep(row)
        }
        return true
    }

    mutating func setAside(_ step: StoredSettlement, _ owner: OwnerID) -> Bool {
        guard var row = rows[step.row], row.push.id == step.id, row.push.epoch == step.epoch,
            row.owner == owner
        else { return false }
        if let mark = row.push.mark, marks[mark]?.row == row.push.row { marks[mark] = nil }
        unpark(row)
        row.push.mark = nil
        row.push.lane = Aside.text(row.push.lane)
        row.push.parked = true
        keep(row)
        return true
    }

    private mutating func keep(_ row: Row) {
        rows[row.push.row] = row
        if row.push.parked { park(row) }
        if let mark = row.push.mark, marks[mark]?.row == row.push.row { marks[mark]?.first = row.first }
    }

    private mutating func remove(_ row: Row) {
        rows[row.push.row] = nil
        bytes -= row.push.sealed.count
        owedByApp.add(row.push.lane, rows: -1, bytes: -row.push.sealed.count)
        unpark(row)
    }

    mutating func park(_ row: Row) {
        let push = row.push
        let name = ParkedName(lane: push.lane, pushClass: push.pushClass)
        parked[name, default: ParkedRows()].insert(
            MomentHeap.Item(at: push.notBefore, row: push.row), of: push.origin)
        parkedCounts[ParkedOwner(lane: push.lane, owner: row.owner), default: 0] += 1
    }

    /// Before a row changes; its place among the parked goes when it comes up.
    private mutating func unpark(_ row: Row) {
        guard row.push.parked else { return }
        let place = ParkedOwner(lane: row.push.lane, owner: row.owner)
        let left = parkedCounts[place, default: 0] - 1
        parkedCounts[place] = left > 0 ? left : nil
    }

    /// Parked pushes by lane that this owner may claim.
    func claimable(_ owner: OwnerID, _ clock: UnixTime) -> [String: Int] {
        var counts: [String: Int] = [:]
        for (place, count) in parkedCounts where place.owner == owner || isDead(place.owner, clock) {
            counts[place.lane, default: 0] += count
        }
        return counts
    }

    mutating func noteCustody(_ push: StoredPush) {
        custody.insert(MomentHeap.Item(at: push.custodyEnds, row: push.row))
        // Made anew before what has gone outweighs what is there.
        guard custody.count > 2 * rows.count + 1_024 else { return }
        custody = MomentHeap()
        for row in rows.values {
            custody.insert(MomentHeap.Item(at: row.push.custodyEnds, row: row.push.row))
        }
    }

    private func isParked(_ item: MomentHeap.Item, in lane: String) -> Bool {
        guard let push = rows[item.row]?.push else { return false }
        return push.parked && push.notBefore == item.at && push.lane == lane
    }

    private mutating func end(_ mark: Digest16, _ row: Row, _ now: UnixTime) {
        guard marks[mark]?.row == row.push.row else { return }
        marks[mark] = Mark(id: row.push.id, row: row.push.row, first: row.first, endedAt: now)
        ended.append((mark, now))
    }

    private mutating func dropMarks(_ now: UnixTime) {
        while endedHead < ended.count {
            let oldest = ended[endedHead]
            guard oldest.at + Self.markSpan <= now || ended.count - endedHead > Self.markLimit else { break }
            endedHead += 1
            if marks[oldest.mark]?.endedAt == oldest.at { marks[oldest.mark] = nil }
        }
        if endedHead > 4096, endedHead * 2 > ended.count {
            ended.removeFirst(endedHead)
            endedHead = 0
        }
    }

    mutating func claim(
        _ lane: String, _ due: UnixTime, _ limit: Int, _ classes: ClosedRange<PushClass>, _ owner: OwnerID,
        _ clock: UnixTime
    ) -> [StoredPush] {
        var taken: [StoredPush] = []
        for pushClass in PushClass.allCases where classes.contains(pushClass) && taken.count < limit {
            let name = ParkedName(lane: lane, pushClass: pushClass)
            guard var waiting = parked.removeValue(forKey: name) else { continue }
            // Ends: each round takes rows out, or is the last. A row that was put off and brought back to the
            // same moment stands there twice, and then a round brings fewer than it was asked for.
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

    func isDead(_ owner: OwnerID, _ clock: UnixTime) -> Bool {
        (aliveUntil[owner] ?? .distantPast) <= clock
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
        // One that is in a lane's memory ends there.
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
        // A second place for one that was parked: the first that comes up counts.
        park(row)
    }
}
