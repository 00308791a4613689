package import PushModel

// An operator's questions about single pushes.
extension PostgresStore: OwedLookup {
    package func owed(_ id: PushID) async throws(StoreError) -> StoredPush? {
        try await core.single(.read) { session throws(PostgresFault) in
            let rows = try session.run([Query(InspectionSQL.owed) { $0.add(id.value) }], commits: false)[0]
            guard rows.count == 1, let lane = rows.name(0, 0), let level = rows.level(0, 1),
                let touchedAt = rows.moment(0, 2), let notBefore = rows.moment(0, 3),
                let custodyEnds = rows.moment(0, 4),
                let attempt = rows.integer(0, 5, in: RowBounds.attempts),
                let epoch = rows.integer(0, 6, in: RowBounds.counts)
            else { return nil }
            return StoredPush(
                row: PostgresAccepting.row(of: id), id: id, lane: lane, pushClass: level,
                origin: Digest16(high: 0, low: 0), record: nil, touchedAt: touchedAt, notBefore: notBefore,
                custodyEnds: custodyEnds, attempt: Int(attempt), epoch: epoch, parked: rows.bool(0, 7),
                mark: nil, sealed: [])
        }
    }

    /// Ids begin with the time at which they were given.
    package func oldest() async throws(StoreError) -> PushID? {
        try await core.single(.read) { [core] session throws(PostgresFault) in
            let asked = core.world.now()
            let query = Query(InspectionSQL.oldest) { $0.add(core.floors.firstPushID.value) }
            let rows = try session.run([query], commits: false)[0]
            let oldest = rows.count == 0 ? nil : PushID(try rows.digest(0, 0))
            core.floors.notePushes(oldest: oldest?.acceptedAt ?? asked)
            return oldest
        }
    }
}
