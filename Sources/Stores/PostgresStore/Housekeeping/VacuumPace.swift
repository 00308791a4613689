import PushModel

/// How often the server vacuums the tables of pushes while it can remove nothing from them (decision 0042).
///
/// An old snapshot, an open transaction or a replication slot keeps every row that was deleted since. The
/// server decides by the number of dead rows and not by the result of its last vacuum, so once a minute it
/// reads all of them again. After a vacuum that left many, the next one waits until there are twice as many,
/// and for ten minutes at most: the reading then costs each push the same, however many rows have gathered.
struct VacuumPace {
    /// A table as the server's statistics show it.
    struct Sight {
        var table: PacedTable
        var dead: Int
        /// Vacuums that the server began by itself and ended.
        var vacuums: Int
        /// Since the last of these; nil where there was none.
        var sinceVacuum: Duration?
        /// The numbers of dead and inserted rows from which the server begins a vacuum; nil if the table does
        /// not set them.
        var threshold: Int?
        var insertThreshold: Int?
    }

    private var vacuums: [PacedTable: Int] = [:]

    /// The threshold that a table should have; nil if it may stay as it is.
    ///
    /// A pair of equal thresholds above ours is our own work, of this process or another; any other number
    /// that is not the schema's is an operator's, who knows better.
    func threshold(for sight: Sight, limits: PostgresLimits) -> Int? {
        let usual = sight.table.threshold
        let isRaised = sight.insertThreshold == sight.threshold && (sight.threshold ?? 0) > usual
        guard isRaised || (sight.threshold == usual && sight.insertThreshold == nil) else { return nil }
        if let before = vacuums[sight.table], before != sight.vacuums {
            guard sight.dead >= limits.deadRows else { return isRaised ? usual : nil }
            let wanted = min(2 * sight.dead, Self.highest)
            // Another process saw the same vacuum a little earlier.
            if isRaised, let present = sight.threshold, wanted <= present + present / 4 { return nil }
            return wanted
        }
        if isRaised, sight.sinceVacuum.map({ $0 >= limits.vacuumEvery }) ?? true { return usual }
        return nil
    }

    /// This look needs no further step.
    mutating func saw(_ sight: Sight) { vacuums[sight.table] = sight.vacuums }

    /// Below the greatest that the server takes.
    static let highest = 2_000_000_000
}

/// Tables from which every push removes a row.
enum PacedTable: String, Sendable {
    case outbox, marks

    /// Dead rows behind which the server vacuums it: the schema's third step.
    var threshold: Int {
        switch self {
        case .outbox: 2_000
        case .marks: 5_000
        }
    }
}

/// Keeps the pace.
struct VacuumPacing {
    let limits: PostgresLimits
    let journal: Journal

    /// Looks at both tables and changes what should be changed; a table that is locked is left for the next
    /// look.
    func look(by pace: VacuumPace, _ session: PostgresSession) throws(PostgresFault) -> VacuumPace {
        var pace = pace
        for sight in try sights(session) {
            if let threshold = pace.threshold(for: sight, limits: limits) {
                guard try set(threshold, sight, session) else { continue }
            }
            pace.saw(sight)
        }
        return pace
    }

    private func sights(_ session: PostgresSession) throws(PostgresFault) -> [VacuumPace.Sight] {
        let rows = try session.run([Query(HousekeepingSQL.vacuumSights)], commits: false)[0]
        var sights: [VacuumPace.Sight] = []
        for row in 0..<rows.count {
            guard let table = PacedTable(rawValue: rows.text(row, 0)) else { continue }
            let numbers = try (1...5 as ClosedRange<Int32>).map { column throws(PostgresFault) in
                rows.isNull(row, column) ? nil : Int(try rows.int(row, column))
            }
            sights.append(
                VacuumPace.Sight(
                    table: table, dead: numbers[0] ?? 0, vacuums: numbers[1] ?? 0,
                    sinceVacuum: numbers[2].map { .milliseconds($0) }, threshold: numbers[3],
                    insertThreshold: numbers[4]))
        }
        return sights
    }

    /// - Returns: false where a vacuum, or somebody else, holds the table: the wait is far shorter than
    ///   `deadlock_timeout`, behind which the server would end its vacuum for our sake.
    private func set(
        _ threshold: Int, _ sight: VacuumPace.Sight, _ session: PostgresSession
    ) throws(PostgresFault) -> Bool {
        // One transaction with the change: whatever comes of it, the session waits for locks as before.
        let patience = Query(PostgresSQL.configureOnce) { query in
            query.add(texts: ["lock_timeout"])
            query.add(texts: [String(limits.forgetPatience.wholeMilliseconds)])
        }
        var state: SQLState?
        do {
            let statement = HousekeepingSQL.vacuum(sight.table, from: threshold)
            try session.run([patience, Query(statement)], commits: false)
        } catch .refused(let refusal) where ["55P03", "57014", "42501"].contains(refusal.text) {
            state = refusal
        }
        if let state, state.text != "42501" { return false }
        if state != nil {
            journal.note("vacuum not paced: the table is another role's", level: .warning)
        } else if sight.threshold == sight.table.threshold {
            journal.note("dead rows stay behind a vacuum", [.rows: sight.dead], level: .warning)
        }
        return true
    }
}
