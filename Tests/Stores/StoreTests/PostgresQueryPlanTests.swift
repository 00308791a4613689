import PushModel
import PushTesting
import Testing

@testable import PostgresStore

/// No statement that a push passes may read a whole table, whatever the planner thinks of its size.
@Suite("PostgreSQL's plans", .timeLimit(.minutes(30)))
struct PostgresQueryPlanTests {
    private static let hot: [(Statement, parameters: Int, index: String)] = [
        (OutboxSQL.accept, 16, "outbox_pkey"), (OutboxSQL.holders, 1, "marks_pkey"),
        (OutboxSQL.settle, 7, "outbox_pkey"), (OutboxSQL.putOff, 9, "outbox_pkey"),
        (OutboxSQL.claim, 7, "parked_by_origin"), (OutboxSQL.nextDue, 2, "parked_by_due"),
        (OutboxSQL.endCustody, 4, "parked_by_custody"),
        (OwnerSQL.takeOverInMemory, 4, "in_memory_by_owner"),
        (OwnerSQL.takeOverParked, 4, "parked_by_"), (OwnerSQL.letGo, 4, "parked_by_"),
        (OwnerSQL.reclaim, 2, "in_memory_by_owner"),
        (HousekeepingSQL.buryOwners, 3, "in_memory_by_owner"),
        (HousekeepingSQL.dropMarks, 4, "marks_by_minute"),
        (RecordSQL.find, 1, "records_pkey"), (RecordSQL.change, 17, "records_pkey"),
        (RecordSQL.purge, 2, "records_by_expiry"),
        (RecordSQL.forget, 2, "records_by_owner"), (RecordSQL.pageSpace, 4, "records_by_space"),
        (RecordSQL.pageOwner, 4, "records_by_owner"), (RecordSQL.pageAddress, 4, "records_by_address"),
        (RecordSQL.pageExpired, 5, "expired_by_owner"),
        (OutboxSQL.endOwed, 3, "parked_by_record"),
        (RecordSQL.tally, 1, "records_by_owner"), (RecordSQL.count, 1, "records_by_owner"),
        (InspectionSQL.owed, 1, "outbox_pkey"), (InspectionSQL.oldest, 1, "outbox_pkey")
    ]

    private static let cut = "=== plan"

    @Test("Every hot statement finds its rows by an index, whatever the server believes of their number")
    func indexes() async throws {
        let database = try await PostgresDatabase()
        let cluster = try await PostgresCluster.shared
        let name = String(try #require(database.url.split(separator: "/").last))
        var limits = database.limits
        limits.outboxRows = 100_000
        let store = try await database.open(OwnerID(Digest16(high: 4, low: 4)), limits: limits)
        let now = database.clock.now
        let planning = PostgresOpening.planning.map { "SET \($0) = \($1);" }.joined(separator: " ")
        let pushes = (0..<3_000 as Range<UInt64>).map { number in
            var push = PostgresSamples.push(
                number, database.clock, parked: number % 2 == 0, origin: number % 50)
            push.mark = PostgresSamples.digest(number + 500_000)
            return push
        }
        _ = try await store.accept(pushes, changes: [], now: now)
        let records = (0..<3_000 as Range<UInt64>).map { number in
            var record = PostgresSamples.record(number)
            (record.owner, record.address) = (PostgresSamples.digest(number % 70), record.key)
            return StoredChange.put(record, if: .any)
        }
        _ = try await store.apply(records, now: now)
        // By the sizes of the files alone; with what the server has counted; and when a vacuum has just found
        // next to nothing alive: what it believes then stands until it counts again.
        let emptied = "UPDATE pg_class SET reltuples = 1 WHERE relnamespace = 'public'::regnamespace;"
        for (before, opening) in [("", ""), ("ANALYZE", ""), ("", emptied)] {
            if !before.isEmpty { try await cluster.execute(before, database: name) }
            let script = Self.hot.map { statement, count, _ in
                let values =
                    count == 0 ? "" : "(\(repeatElement("NULL", count: count).joined(separator: ",")))"
                return """
                    SELECT '\(Self.cut)'; PREPARE \(statement.name) AS \(statement.text);
                    EXPLAIN EXECUTE \(statement.name)\(values);
                    """
            }
            let plans = try await cluster.execute(
                "\(planning) BEGIN; \(opening) \(script.joined(separator: "\n")) ROLLBACK;", database: name)
            let parts = plans.split(separator: Self.cut).map(String.init)
            try #require(parts.count == Self.hot.count)
            for ((statement, _, index), plan) in zip(Self.hot, parts) {
                #expect(plan.contains(index), "\(statement.name): \(plan)")
                #expect(Self.wholeScans(plan).isEmpty, "\(statement.name): \(plan)")
            }
        }
        await store.close()
    }

    /// Scans of a large table without a condition on its index, where nothing bounds them from above.
    private static func wholeScans(_ plan: String) -> [Substring] {
        let lines = plan.split(separator: "\n")
        return lines.indices.compactMap { at in
            let line = lines[at]
            guard line.contains(" on outbox") || line.contains(" on marks") || line.contains(" on records"),
                line.contains("Scan")
            else { return nil }
            if line.contains("Seq Scan") { return line }
            let next = at + 1 < lines.count ? lines[at + 1] : ""
            let isBounded = at > 0 && lines[at - 1].contains("Limit")
            return next.contains("Index Cond") || next.contains("Recheck Cond") || isBounded ? nil : line
        }
    }
}
