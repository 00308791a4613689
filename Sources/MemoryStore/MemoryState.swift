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

    /// How long a mark is held after its push has ended (DESIGN §2.7).
    static let markSpan = Duration.seconds(600)
    /// Marks of ended pushes in memory: ten minutes at 1,700 a second, in some 100 MB at worst.
    static let markLimit = 1_000_000
    /// Records of one address that one answer of a push service can expire.
    static let addressLimit = 10_000

    let rowLimit: Int
    let byteLimit: Int
    var records: [Digest16: StoredRecord] = [:]
    var revision: UInt64 = 0
    var rows: [Int64: Row] = [:]
    var nextRow: Int64 = 1
    var bytes = 0
    var parked: [String: Set<Int64>] = [:]
    var marks: [Digest16: Mark] = [:]
    /// Ended marks, oldest first; consumed up to `endedHead`.
    var ended: [(mark: Digest16, at: UnixTime)] = []
    var endedHead = 0
    var aliveUntil: [OwnerID: UnixTime] = [:]
    /// Where the next claim of a lane and class begins its round.
    var cursors: [String: Digest16] = [:]
    var settings: [String: [UInt8]] = [:]

    init(rowLimit: Int, byteLimit: Int) {
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
        let gone = records.values.lazy.filter { $0.expiresAt < before }.prefix(limit).map(\.key)
        let keys = Array(gone)
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
            revision += 1
            new.revision = revision
            records[new.key] = new
        case .expire(let key, let at, let condition):
            guard isMet(condition, key, now) else { return false }
            expire(key, at, now)
        case .expireAddress(let address, let at, let touched):
            let keys = records.values.filter { $0.address == address && $0.touchedAt <= touched }.map(\.key)
            for key in keys.prefix(Self.addressLimit) { expire(key, at, now) }
        case .delete(let key, let condition):
            guard isMet(condition, key, now) else { return false }
            records[key] = nil
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
        _ pushes: [StoredPush], _ changes: [StoredChange], _ owner: OwnerID, _ now: UnixTime
    ) -> StoredAccepted? {
        dropMarks(now)
        let repeats = pushes.map { $0.mark.flatMap { marks[$0] } }
        let new = repeats.count { $0 == nil }
        let newBytes = zip(pushes, repeats).reduce(0) { $0 + ($1.1 == nil ? $1.0.sealed.count : 0) }
        guard rows.count + new <= rowLimit, bytes + newBytes <= byteLimit else { return nil }
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
        rows[push.row] = Row(push: push, owner: owner, first: nil)
        bytes += push.sealed.count
        if push.parked { parked[push.lane, default: []].insert(push.row) }
        if let mark = push.mark { marks[mark] = Mark(id: push.id, row: push.row, first: nil, endedAt: nil) }
        return push.row
    }

    mutating func settle(_ step: StoredSettlement, _ owner: OwnerID, _ now: UnixTime) -> Bool {
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
            if row.push.parked { parked[row.push.lane]?.remove(step.row) }
            row.push.notBefore = notBefore
            row.push.attempt = attempt
            row.push.lane = lane.description
            row.push.parked = isParked
            keep(row)
        case .park:
            row.push.parked = true
            keep(row)
        }
        return true
    }

    private mutating func keep(_ row: Row) {
        rows[row.push.row] = row
        if row.push.parked { parked[row.push.lane, default: []].insert(row.push.row) }
        if let mark = row.push.mark, marks[mark]?.row == row.push.row { marks[mark]?.first = row.first }
    }

    private mutating func remove(_ row: Row) {
        rows[row.push.row] = nil
        bytes -= row.push.sealed.count
        if row.push.parked { parked[row.push.lane]?.remove(row.push.row) }
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
        _ lane: String, _ due: UnixTime, _ limit: Int, _ owner: OwnerID, _ clock: UnixTime
    ) -> [StoredPush] {
        var queues: [PushClass: [Digest16: [Row]]] = [:]
        for handle in parked[lane] ?? [] {
            guard let row = rows[handle], row.push.notBefore <= due,
                row.owner == owner || isDead(row.owner, clock)
            else { continue }
            queues[row.push.pushClass, default: [:]][row.push.origin, default: []].append(row)
        }
        var taken: [StoredPush] = []
        for pushClass in PushClass.allCases where taken.count < limit {
            guard let origins = queues[pushClass] else { continue }
            let name = "\(lane)#\(pushClass.rawValue)"
            let cursor = cursors[name] ?? Digest16(high: 0, low: 0)
            let sorted = origins.keys.sorted()
            let order = sorted.filter { $0 > cursor } + sorted.filter { $0 <= cursor }
            let lists = order.map { origin in
                (origins[origin] ?? []).sorted {
                    ($0.push.notBefore, $0.push.row) < ($1.push.notBefore, $1.push.row)
                }
            }
            let rounds = lists.map(\.count).max() ?? 0
            for round in 0..<rounds {
                for list in lists where round < list.count && taken.count < limit {
                    taken.append(take(list[round], owner))
                    cursors[name] = list[round].push.origin
                }
            }
        }
        return taken
    }

    private mutating func take(_ row: Row, _ owner: OwnerID) -> StoredPush {
        var row = row
        parked[row.push.lane]?.remove(row.push.row)
        if row.owner != owner { row.push.epoch += 1 }
        row.owner = owner
        row.push.parked = false
        rows[row.push.row] = row
        return row.push
    }

    private func isDead(_ owner: OwnerID, _ clock: UnixTime) -> Bool {
        (aliveUntil[owner] ?? .distantPast) <= clock
    }

    func nextDue(_ lane: String) -> UnixTime? {
        parked[lane]?.compactMap { rows[$0]?.push.notBefore }.min()
    }

    mutating func endCustody(_ before: UnixTime, _ limit: Int) -> [String: Int] {
        var gone: [Row] = []
        for handle in parked.values.joined() where gone.count < limit {
            if let row = rows[handle], row.push.custodyEnds < before { gone.append(row) }
        }
        var counts: [String: Int] = [:]
        for row in gone {
            remove(row)
            if let mark = row.push.mark, marks[mark]?.row == row.push.row { marks[mark] = nil }
            counts[row.push.lane, default: 0] += 1
        }
        return counts
    }

    mutating func takeOver(_ limit: Int, _ owner: OwnerID, _ clock: UnixTime) -> Int {
        var taken: [Row] = []
        for row in rows.values where taken.count < limit {
            if row.owner != owner, isDead(row.owner, clock) { taken.append(row) }
        }
        for var row in taken {
            row.owner = owner
            row.push.epoch += 1
            row.push.parked = true
            keep(row)
        }
        return taken.count
    }
}
