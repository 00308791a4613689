import PushModel
import Synchronization

/// Claims: what a lane takes of its parked pushes, and what of them ends unsent.
final class PostgresClaiming: Sendable {
    private let owner: Digest16
    private let limits: PostgresLimits
    private let counts: OwedCounts
    private let deaths: DeathClock

    private struct Cursor: Hashable {
        var lane: String
        var pushClass: PushClass
    }

    /// The origin behind which the next claim of a class begins.
    private let cursors = Mutex<[Cursor: Digest16]>([:])

    init(owner: Digest16, limits: PostgresLimits, counts: OwedCounts, deaths: DeathClock) {
        self.owner = owner
        self.limits = limits
        self.counts = counts
        self.deaths = deaths
    }

    /// By class, then round robin over origins, in one transaction.
    func claim(
        _ lane: String, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>, _ session: PostgresSession
    ) throws(PostgresFault) -> [StoredPush] {
        let taken = try session.transaction { session throws(PostgresFault) -> [StoredPush] in
            var taken: [StoredPush] = []
            var opening = [Query(PostgresSQL.begin)]
            for pushClass in PushClass.allCases where classes.contains(pushClass) && taken.count < limit {
                taken += try claim(
                    Cursor(lane: lane, pushClass: pushClass), due: due, limit: limit - taken.count, session,
                    &opening)
            }
            // Nothing was begun where nothing was asked for.
            if opening.isEmpty { try session.run([Query(PostgresSQL.commit)], commits: !taken.isEmpty) }
            return taken
        }
        counts.park(lane, by: -taken.count)
        return taken
    }

    private func claim(
        _ place: Cursor, due: UnixTime, limit: Int, _ session: PostgresSession, _ opening: inout [Query]
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
            let sawAll = pass.origins < limits.originsPerClaim
            if taken.count >= limit {
                // Whose turn it is next.
                after = pass.pushes.last?.origin ?? after
            } else if !sawAll {
                after = pass.last ?? after
            } else if pass.pushes.isEmpty {
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
    }

    private func read(_ rows: Rows, _ place: Cursor) throws(PostgresFault) -> Pass {
        var pass = Pass()
        var turns: [(turn: Int64, place: Int64, push: StoredPush)] = []
        for row in 0..<rows.count {
            pass.origins = Int(try rows.int(row, 0))
            pass.last = try rows.digestIfAny(row, 1)
            guard !rows.isNull(row, 2) else { continue }
            let id = PushID(try rows.digest(row, 2))
            let push = StoredPush(
                row: PostgresAccepting.row(of: id), id: id, lane: place.lane, pushClass: place.pushClass,
                origin: try rows.digest(row, 3), record: try rows.digestIfAny(row, 4),
                touchedAt: try rows.time(row, 5), address: try rows.digestIfAny(row, 14),
                notBefore: try rows.time(row, 6), custodyEnds: try rows.time(row, 7),
                attempt: Int(try rows.int(row, 8)), epoch: try rows.int(row, 9), parked: false,
                mark: try rows.digestIfAny(row, 10),
                sealed: rows.bytes(row, 11))
            turns.append((try rows.int(row, 12), try rows.int(row, 13), push))
        }
        pass.pushes = turns.sorted { ($0.turn, $0.place) < ($1.turn, $1.place) }.map(\.push)
        return pass
    }

    func nextDue(_ lane: String, _ session: PostgresSession) throws(PostgresFault) -> UnixTime? {
        let query = Query(OutboxSQL.nextDue) { query in
            query.add(owner)
            query.add(lane)
        }
        let rows = try session.run([query], commits: false)[0]
        return rows.count == 0 ? nil : try rows.time(0, 0)
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
            // What a dead owner said of itself is set right once it owns nothing.
            guard rows.bool(row, 3) else { continue }
            counts.park(lane, by: -count)
            counts.add(lane, rows: -count, bytes: -Int(try rows.int(row, 2)))
        }
        return ended
    }
}
