import PushModel

/// Accepting: one statement for all calls that wait.
struct PostgresAccepting {
    let owner: Digest16
    let limits: PostgresLimits
    let counts: OwedCounts

    /// Pushes that one statement took and left out.
    struct Written {
        var rows = 0
        var bytes = 0
        var ids: Set<Digest16> = []
    }

    /// How often a push is written again whose mark was held and then released, because its holder was
    /// withdrawn.
    private static let rounds = 4

    func accept(_ jobs: [Job], _ session: PostgresSession) throws(PostgresFault) -> [@Sendable () -> Void] {
        var calls: [(pushes: [StoredPush], answer: @Sendable ([StoredAdmission]) -> Void)] = []
        for job in jobs {
            if case .accept(let pushes, let answer) = job.work { calls.append((pushes, answer)) }
        }
        let all = calls.flatMap(\.pushes)
        let written = try session.run([acceptance(all)], commits: true)[0]
        let admissions = try finish(all, written, session)
        var at = 0
        return calls.map { call in
            let own = Array(admissions[at..<(at + call.pushes.count)])
            at += call.pushes.count
            return { call.answer(own) }
        }
    }

    /// What became of pushes whose statement has been committed.
    func finish(
        _ pushes: [StoredPush], _ rows: Rows, _ session: PostgresSession
    ) throws(PostgresFault) -> [StoredAdmission] {
        var (written, gone) = try ids(rows)
        note(pushes, written)
        guard written.count < pushes.count else { return pushes.map(Self.owed) }
        var holders: [Digest16: (id: PushID, first: OutcomeKind?)] = [:]
        do {
            for _ in 0..<Self.rounds {
                let left = pushes.filter { push in
                    guard let mark = push.mark, !gone.contains(push.id.value) else { return false }
                    return !written.contains(push.id.value) && holders[mark] == nil
                }
                if left.isEmpty { break }
                for (mark, holder) in try holding(left.compactMap(\.mark), session) { holders[mark] = holder }
                // The holder was withdrawn between our two looks, so the push is new and is written.
                let free = left.filter { push in push.mark.map { holders[$0] == nil } ?? true }
                if free.isEmpty { break }
                let more = try ids(try session.run([acceptance(free)], commits: true)[0])
                note(free, more.written)
                written.formUnion(more.written)
                gone.formUnion(more.gone)
            }
        } catch {
            // Some of the pushes stand, and their caller will not learn which.
            throw .lost(mayStand: true)
        }
        return try pushes.map { push throws(PostgresFault) in
            if written.contains(push.id.value) { return Self.owed(push) }
            if gone.contains(push.id.value) { return .gone }
            guard let holder = push.mark.flatMap({ holders[$0] }) else { throw .lost(mayStand: true) }
            return .repeated(of: holder.id, first: holder.first)
        }
    }

    /// The caller that reserved room gives back what was not written.
    private func note(_ pushes: [StoredPush], _ written: Set<Digest16>) {
        for push in pushes where push.parked && written.contains(push.id.value) {
            counts.park(push.lane, by: 1)
        }
    }

    /// Pushes that were written, and those whose registration no longer exists.
    private func ids(
        _ rows: Rows
    ) throws(PostgresFault) -> (written: Set<Digest16>, gone: Set<Digest16>) {
        var (written, gone): (Set<Digest16>, Set<Digest16>) = ([], [])
        written.reserveCapacity(rows.count)
        for row in 0..<rows.count {
            let id = try rows.digest(row, 0)
            if rows.bool(row, 1) { written.insert(id) } else { gone.insert(id) }
        }
        return (written, gone)
    }

    private func holding(
        _ marks: [Digest16], _ session: PostgresSession
    ) throws(PostgresFault) -> [(Digest16, (id: PushID, first: OutcomeKind?))] {
        let rows = try session.run(
            [Query(OutboxSQL.holders) { $0.add(digests: marks) }], commits: false)[0]
        var found: [(Digest16, (id: PushID, first: OutcomeKind?))] = []
        for row in 0..<rows.count {
            found.append(
                (try rows.digest(row, 0), (PushID(try rows.digest(row, 1)), rows.outcome(row, 2))))
        }
        return found
    }

    private static func owed(_ push: StoredPush) -> StoredAdmission {
        .owed(row: row(of: push.id), epoch: 1)
    }

    /// The engine's handle: rows are found by their id, so it only has to differ.
    static func row(of id: PushID) -> Int64 {
        Int64(truncatingIfNeeded: id.value.low & 0x7FFF_FFFF_FFFF_FFFF)
    }

    func acceptance(_ pushes: [StoredPush]) -> Query {
        // Two items of one call never share a mark; should they, the second is a push without one.
        var seen: Set<Digest16> = []
        let marks = pushes.map { push in push.mark.flatMap { seen.insert($0).inserted ? $0 : nil } }
        return Query(OutboxSQL.accept) { query in
            query.add(owner)
            query.add(limits.aheadMilliseconds)
            query.add(int32: limits.markMinutes)
            query.add(digests: pushes.map(\.id.value))
            query.add(texts: pushes.map(\.lane))
            query.add(int16s: pushes.map { Int($0.pushClass.rawValue) })
            query.add(digests: pushes.map(\.origin))
            query.add(optionalDigests: pushes.map(\.record))
            query.add(times: pushes.map(\.touchedAt))
            query.add(times: pushes.map(\.notBefore))
            query.add(times: pushes.map(\.custodyEnds))
            query.add(int32s: pushes.map(\.attempt))
            query.add(bools: pushes.map(\.parked))
            query.add(optionalDigests: marks)
            query.add(blobs: pushes.map(\.sealed))
            query.add(optionalDigests: pushes.map(\.address))
        }
    }
}
