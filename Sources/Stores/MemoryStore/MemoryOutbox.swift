package import PushModel
import Synchronization

extension MemoryStore: StoredOutbox {
    package func accept(
        _ pushes: [StoredPush], changes: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> StoredAccepted {
        let result = changing { $0.accept(pushes, changes, owner, now, clock: clock()) }
        guard let result else { throw StoreError(.full) }
        return result
    }

    package func settle(
        _ steps: [StoredSettlement], feedback: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> [Bool] {
        changing { state in
            let results = steps.map { state.settle($0, owner, now: clock()) }
            for change in feedback { _ = state.apply([change], now) }
            return results
        }
    }

    package func setAside(_ pushes: [StoredSettlement]) async throws(StoreError) -> [Bool] {
        shared.state.withLock { state in pushes.map { state.setAside($0, owner) } }
    }

    package func claim(
        _ lane: String, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>
    ) async throws(StoreError) -> [StoredPush] {
        shared.state.withLock { $0.claim(lane, due, limit, classes, owner, spans()) }
    }

    package func nextDue(_ lane: String) async throws(StoreError) -> UnixTime? {
        shared.state.withLock { $0.nextDue(lane, owner, spans()) }
    }

    package func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [String: Int] {
        shared.state.withLock { $0.endCustody(before, limit, owner, spans()) }
    }
}

extension MemoryState {
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
            } else if push.record.map({ push.stands(by: records[$0]) }) ?? true {
                admissions.append(.owed(row: insert(push, owner), epoch: 1))
            } else {
                admissions.append(.gone)
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

    mutating func remove(_ row: Row) {
        rows[row.push.row] = nil
        bytes -= row.push.sealed.count
        owedByApp.add(row.push.lane, rows: -1, bytes: -row.push.sealed.count)
        unpark(row)
    }

    mutating func noteCustody(_ push: StoredPush) {
        custody.insert(MomentHeap.Item(at: push.custodyEnds, row: push.row))
        // Rebuilt before removed entries outnumber present ones.
        guard custody.count > 2 * rows.count + 1_024 else { return }
        custody = MomentHeap()
        for row in rows.values {
            custody.insert(MomentHeap.Item(at: row.push.custodyEnds, row: row.push.row))
        }
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
}
