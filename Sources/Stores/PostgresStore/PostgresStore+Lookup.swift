package import PushModel

// An operator's questions about single pushes.
extension PostgresStore: OwedLookup {
    package func owed(_ id: PushID) async throws(StoreError) -> StoredPush? {
        try await core.single(.read) { session throws(PostgresFault) in
            let rows = try session.run([Query(InspectionSQL.owed) { $0.add(id.value) }], commits: false)[0]
            guard rows.count == 1 else { return nil }
            guard let level = PushClass(rawValue: UInt8(truncatingIfNeeded: try rows.int(0, 1))) else {
                throw .store(StoreError(.corrupt))
            }
            return StoredPush(
                row: PostgresAccepting.row(of: id), id: id, lane: rows.text(0, 0), pushClass: level,
                origin: Digest16(high: 0, low: 0), record: nil, touchedAt: try rows.time(0, 2),
                notBefore: try rows.time(0, 3), custodyEnds: try rows.time(0, 4),
                attempt: Int(try rows.int(0, 5)), epoch: try rows.int(0, 6), parked: rows.bool(0, 7),
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
