import PushModel
import Synchronization

/// Claims: the parked pushes that a lane takes, and those that end unsent.
final class PostgresClaiming: Sendable {
    private let owner: Digest16
    private let limits: PostgresLimits
    private let counts: OwedCounts
    private let deaths: DeathClock
    private let settling: PostgresSettling
    private let journal: Journal

    private struct Cursor: Hashable {
        var lane: String
        var pushClass: PushClass
    }

    /// The origin after which the next claim of a class begins.
    private let cursors = Mutex<[Cursor: Digest16]>([:])

    init(
        owner: Digest16, limits: PostgresLimits, counts: OwedCounts, deaths: DeathClock,
        settling: PostgresSettling, journal: Journal
    ) {
        self.settling = settling
        self.journal = journal
        self.owner = owner
        self.limits = limits
        self.counts = counts
        self.deaths = deaths
    }

    /// By class, then round robin over origins, in one transaction.
    func claim(
        _ lane: String, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>, _ session: PostgresSession
    ) throws(PostgresFault) -> [StoredPush] {
        typealias Claimed = (taken: [StoredPush], aside: Int)
        let claimed = try session.transaction { session throws(PostgresFault) -> Claimed in
            var taken: [StoredPush] = []
            var unreadable: [StoredSettlement] = []
            var opening = [Query(PostgresSQL.begin)]
            for pushClass in PushClass.allCases where classes.contains(pushClass) && taken.count < limit {
                taken += try claim(
                    Cursor(lane: lane, pushClass: pushClass), due: due, limit: limit - taken.count, session,
                    &opening, &unreadable)
            }
            // Without a request no transaction was begun.
            if opening.isEmpty {
                // A row that cannot be read is set aside, without affecting others.
                let aside = unreadable.isEmpty ? [] : [settling.asideQuery(unreadable)]
                try session.run(
                    aside + [Query(PostgresSQL.commit)], commits: !taken.isEmpty || !unreadable.isEmpty)
            }
            return (taken, unreadable.count)
        }
        counts.park(lane, by: -claimed.taken.count - claimed.aside)
        note(aside: claimed.aside, of: lane)
        return claimed.taken
    }

    private func note(aside count: Int, of lane: String) {
        guard count > 0 else { return }
        counts.park(Aside.text(lane), by: count)
        journal.note(
            "owed pushes cannot be read and are set aside",
            [.count: count, .code: ErrorCode(StoreError(.corrupt))], level: .error)
    }

    private func claim(
        _ place: Cursor, due: UnixTime, limit: Int, _ session: PostgresSession, _ opening: inout [Query],
        _ unreadable: inout [StoredSettlement]
    ) throws(PostgresFault) -> [StoredPush] {
        var after = cursors.withLock { $0[place] } ?? Digest16(high: 0, low: 0)
        var taken: [StoredPush] = []
        for _ in 0..<limits.passesPerClaim where taken.count < limit {
            let query = Query(OutboxSQL.claim) { query in
                query.add(owner)
                query.add(place.lane)
                query.add(int16: Int(place.pushClass.rawValue))
                query.add(after)
                query.add(Int64(limits.originsPerClaim))
                query.add(due)
                query.add(Int64(limit - taken.count))
            }
            guard let rows = try session.run(opening + [query], commits: false).last else { break }
            opening = []
            let pass = try read(rows, place)
            taken += pass.pushes
            unreadable += pass.unreadable
            let sawAll = pass.origins < limits.originsPerClaim
            if taken.count >= limit {
                // Whose turn it is next.
                after = pass.pushes.last?.origin ?? after
            } else if !sawAll {
                after = pass.last ?? after
            } else if pass.pushes.isEmpty && pass.unreadable.isEmpty {
                break
            }
        }
        cursors.withLock { [after] in $0[place] = after }
        return taken
    }

    private struct Pass {
        var origins = 0
        var last: Digest16?
        var pushes: [StoredPush] = []
        var unreadable: [StoredSettlement] = []
    }

    private func read(_ rows: Rows, _ place: Cursor) throws(PostgresFault) -> Pass {
        var pass = Pass()
        var turns: [(turn: Int64, place: Int64, push: StoredPush)] = []
        for row in 0..<rows.count {
            pass.origins = Int(try rows.int(row, 0))
            pass.last = try rows.digestIfAny(row, 1)
            guard !rows.isNull(row, 2) else { continue }
            let id = PushID(try rows.digest(row, 2))
            guard let origin = rows.identity(row, 3), let record = rows.identityIfAny(row, 4),
                let touchedAt = rows.moment(row, 5), let notBefore = rows.moment(row, 6),
                let custodyEnds = rows.moment(row, 7),
                let attempt = rows.integer(row, 8, in: RowBounds.attempts),
                let epoch = rows.integer(row, 9, in: RowBounds.counts),
                let mark = rows.identityIfAny(row, 10), let sealed = rows.blob(row, 11),
                let address = rows.identityIfAny(row, 14)
            else {
                pass.unreadable.append(
                    StoredSettlement(
                        row: PostgresAccepting.row(of: id), id: id, epoch: try rows.int(row, 9), mark: nil,
                        step: .park, first: nil))
                continue
            }
            let push = StoredPush(
                row: PostgresAccepting.row(of: id), id: id, lane: place.lane, pushClass: place.pushClass,
                origin: origin, record: record, touchedAt: touchedAt, address: address, notBefore: notBefore,
                custodyEnds: custodyEnds, attempt: Int(attempt), epoch: epoch, parked: false, mark: mark,
                sealed: sealed)
            turns.append((try rows.int(row, 12), try rows.int(row, 13), push))
        }
        pass.pushes = turns.sorted { ($0.turn, $0.place) < ($1.turn, $1.place) }.map(\.push)
        return pass
    }

    /// Due rows that cannot be read are set aside, because no claim brings them.
    func nextDue(_ lane: String, _ session: PostgresSession) throws(PostgresFault) -> UnixTime? {
        let query = Query(OutboxSQL.nextDue) { query in
            query.add(owner)
            query.add(lane)
        }
        // Ends, because each round sets a row aside or is the last.
        for _ in 0..<limits.unreadableAtOnce {
            let rows = try session.run([query], commits: false)[0]
            guard rows.count > 0 else { return nil }
            let (id, epoch) = (PushID(try rows.digest(0, 1)), try rows.int(0, 3))
            if let due = rows.moment(0, 0), rows.level(0, 2) != nil { return due }
            let unreadable = StoredSettlement(
                row: PostgresAccepting.row(of: id), id: id, epoch: epoch, mark: nil, step: .park, first: nil)
            let moved = try session.run([settling.asideQuery([unreadable])], commits: true)[0]
            // Another process has it by now.
            guard moved.count > 0 else { continue }
            counts.park(lane, by: -1)
            note(aside: 1, of: lane)
        }
        // There may be more: the next claim, and the question behind it, go on.
        return .distantPast
    }

    func endCustody(
        before: UnixTime, limit: Int, _ session: PostgresSession
    ) throws(PostgresFault) -> [String: Int] {
        let ahead = try deaths.ahead(session)
        let query = Query(OutboxSQL.endCustody) { query in
            query.add(owner)
            query.add(before)
            query.add(Int64(limit))
            query.add(ahead)
        }
        let rows = try session.run([query], commits: true)[0]
        var ended: [String: Int] = [:]
        if rows.count > 0 { counts.noteDeletedPushes() }
        for row in 0..<rows.count {
            let (lane, count) = (rows.text(row, 0), Int(try rows.int(row, 1)))
            ended[lane, default: 0] += count
            // The counts of a dead owner are corrected once it owns nothing.
            guard rows.bool(row, 3) else { continue }
            counts.park(lane, by: -count)
            counts.add(lane, rows: -count, bytes: -Int(try rows.int(row, 2)))
        }
        return ended
    }
}
