package import Dialling
import Foundation
package import PushModel

/// The result of a look from outside, which writes nothing, migrates nothing and takes no lease.
package struct PostgresInspection: Sendable {
    /// What is owed, in sum, by all processes.
    package typealias Owed = OwedSum

    /// How the schema relates to this program.
    package enum Schema: Sendable, Hashable {
        /// There is no schema yet; a starting relay creates it.
        case absent
        case current
        /// A starting relay updates it to this program's.
        case older
        /// Written by a newer program; this one can work with it.
        case newer
        /// A step was begun and is not finished.
        case half(step: Int)
    }

    /// The sealed check values, by name.
    package var checks: [String: [UInt8]]
    /// The store's own last time, where it has one.
    package var lastTime: UnixTime?
    /// `nil`: counting took longer than the span that was given.
    package var owed: Owed?
    package var schema: Schema
    package var durability: Durability
    /// As the server says it: `15.14 (Debian 15.14-0+deb12u1)`.
    package var serverVersion: String
    /// Whether it is a primary.
    package var isWritable: Bool

    /// Looks into the database.
    ///
    /// - Parameters:
    ///   - span: for counting; if it takes longer, the count is left out.
    ///   - dialling: how the names of hosts are looked up and their addresses are tried.
    /// - Throws: `.denied`, `.unavailable`, `.newerSchema` when an older program can do nothing with it,
    ///   `.corrupt` when the tables are not ours.
    package static func look(
        at address: PostgresAddress, within span: Duration, limits: PostgresLimits = PostgresLimits(),
        dialling: DialOptions = DialOptions()
    ) async throws(StoreError) -> PostgresInspection {
        let connector = PostgresConnector(
            address: address, limits: limits, purpose: .inspection, dialling: dialling)
        let outcome: Result<PostgresInspection, StoreError> = await withCheckedContinuation { continuation in
            let thread = Thread {
                do throws(StoreError) {
                    let session = try connector.connect { false }
                    let found = Result { () throws(PostgresFault) in try look(session, within: span) }
                    continuation.resume(returning: found.mapError(\.error))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
            thread.name = "postgres"
            thread.stackSize = 1 << 20
            thread.start()
        }
        return try outcome.get()
    }

    private static func look(
        _ session: PostgresSession, within span: Duration
    ) throws(PostgresFault) -> PostgresInspection {
        var found = PostgresInspection(
            checks: [:], owed: Owed(), schema: .absent, durability: session.facts.durability,
            serverVersion: session.facts.version, isWritable: session.facts.isWritable)
        let tables = try session.run([Query(InspectionSQL.tables)], commits: false)[0]
        guard tables.bool(0, 0) else { return found }
        found.schema = try PostgresSchema.standing(session)
        guard tables.bool(0, 1) else { return found }
        let checks = try session.run([Query(InspectionSQL.checks)], commits: false)[0]
        for row in 0..<checks.count { found.checks[checks.text(row, 0)] = checks.bytes(row, 1) }
        let last = try session.run(
            [Query(SettingSQL.setting) { $0.add(LastTime.setting) }], commits: false)[0]
        if last.count == 1 { found.lastTime = LastTime.time(last.bytes(0, 0)) }
        found.owed = try count(session, within: span)
        return found
    }

    /// `nil` when the server was not done in time.
    private static func count(
        _ session: PostgresSession, within span: Duration
    ) throws(PostgresFault) -> Owed? {
        do {
            return try session.transaction { session throws(PostgresFault) in
                let limit = Query(PostgresSQL.configureOnce) { query in
                    query.add(texts: ["statement_timeout"])
                    query.add(texts: [String(max(1, span.wholeMilliseconds))])
                }
                try session.run([Query(PostgresSQL.begin), limit], commits: false)
                session.answerWithin = span + .seconds(5)
                let results = try session.run(
                    [
                        Query(InspectionSQL.owedByLane),
                        Query(InspectionSQL.oldest) { $0.add(Digest16(high: 0, low: 0)) },
                        Query(PostgresSQL.commit)
                    ], commits: false)
                var owed = Owed()
                for row in 0..<results[0].count {
                    let rows = Int(try results[0].int(row, 1))
                    owed.lanes[results[0].text(row, 0)] = rows
                    owed.rows += rows
                    owed.bytes += Int(try results[0].int(row, 2))
                }
                if results[1].count == 1 { owed.oldest = PushID(try results[1].digest(0, 0)) }
                return owed
            }
        } catch .refused(let state) where state.text == "57014" {
            return nil
        }
    }
}
