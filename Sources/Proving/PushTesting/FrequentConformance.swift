import PushModel

/// The rules for rows that an engine may keep in memory.
extension EngineConformance {
    static var frequent: [ConformanceCase] {
        [
            ConformanceCase("what is asked for often is as it stands, whatever has changed it", asItStands),
            ConformanceCase("of a change that was not made nothing is seen", notMade)
        ]
    }

    private static let key = Samples.digest(1)

    /// The stored row, read three times as a frequent one, so that an engine that keeps rows in memory keeps
    /// it.
    private static func standing(
        _ engine: any Engine, _ step: String, now: UnixTime
    ) async throws -> StoredRecord? {
        let plain = try await engine.find([key, Samples.digest(2)], now: now)
        for _ in 0..<3 {
            let often = try await engine.find([key, Samples.digest(2)], often: 1, now: now)
            try expect(often == plain, "after \(step)")
        }
        return plain[0]
    }

    private static func asItStands(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        let soon = now + .seconds(60)
        func make(_ changes: StoredChange...) async throws {
            try expect(try await engine.apply(changes, now: now) == .committed, "the change is made")
        }
        func put(
            _ version: UInt64, owner: UInt64? = nil, address: UInt64? = nil,
            expires: UnixTime = .distantFuture
        ) -> StoredChange {
            .put(
                Samples.record(1, version: version, expires: expires, owner: owner, address: address),
                if: .any)
        }
        func stands(_ step: String) async throws -> StoredRecord? {
            try await standing(engine, step, now: now)
        }
        try expect(try await stands("nothing") == nil, "nothing stands")
        try await make(put(1), .put(Samples.record(2), if: .any))
        try expect(try await stands("a put")?.version == 1, "the first stands")
        try await make(put(2))
        try expect(try await stands("another put")?.version == 2, "the second stands")
        let push = Samples.push(1, rig)
        _ = try await engine.accept([push], changes: [put(3)], now: now)
        try expect(try await stands("a put beside a push")?.version == 3, "the third stands")
        _ = try await engine.settle([], feedback: [.expire(key, at: now, if: .any)], now: now)
        let expired = try await stands("an expiry")
        try expect(expired?.state == .expired(at: now) && expired?.body == [], "it has expired")
        try await make(put(4, address: 7))
        try expect(try await stands("a put with an address")?.version == 4, "the fourth stands")
        try await make(.deleteBeside([Samples.digest(7)]))
        try expect(try await stands("a deletion by address") == nil, "it went with its address")
        try await make(put(5, owner: 6))
        _ = try await stands("a put of an owner's")
        _ = try await engine.forget(owner: Samples.digest(6), limit: 9)
        try expect(try await stands("its owner's forgetting") == nil, "it went with its owner")
        try await make(put(6, expires: soon))
        _ = try await stands("a put with an end")
        try expect(try await standing(engine, "its end", now: soon) == nil, "what has ended is none")
        _ = try await engine.purge(before: soon + .seconds(1), limit: 9)
        try expect(try await stands("a collection") == nil, "it was collected")
        try await make(put(7))
        if let row = try await stands("a put to be set aside") {
            let seen = SeenRecord(key: key, revision: Int64(clamping: row.revision))
            _ = try await engine.setRecordsAside([seen])
        }
        try expect(try await stands("setting aside") == nil, "what stands aside is none")
        try await make(put(8))
        try await reseal(engine, try await stands("a put to be sealed anew"))
        try expect(try await stands("a new seal")?.version == 8, "the eighth stands")
        try await make(.delete(key, if: .any))
        try expect(try await stands("a deletion") == nil, "it was deleted")
    }

    private static func reseal(_ engine: any Engine, _ row: StoredRecord?) async throws {
        guard let keeper = engine as? any StoreResealing, let row else { return }
        let anew = Resealed.record(row.key, revision: row.revision, body: row.body + [1])
        try expect(try await keeper.reseal([anew]) == 1, "it is sealed anew")
    }

    private static func notMade(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        let first = Samples.record(1, version: 1)
        _ = try await engine.apply([.put(first, if: .any), .put(Samples.record(2), if: .any)], now: now)
        _ = try await standing(engine, "a put", now: now)
        let changes: [StoredChange] = [
            .put(Samples.record(1, version: 2), if: .any), .put(Samples.record(2), if: .absent)
        ]
        try expect(try await engine.apply(changes, now: now) == .refused(index: 1), "the second is refused")
        try expect(try await standing(engine, "a refusal", now: now)?.version == 1, "the first still stands")
        // It is not known whether the change was made: a reader must see what is stored.
        let full = (0...rowBound).map { Samples.push(UInt64($0 + 10), rig) }
        do throws(StoreError) {
            let put = StoredChange.put(Samples.record(1, version: 3), if: .any)
            _ = try await engine.accept(full, changes: [put], now: now)
        } catch {
            try expect(error.code == .full, "more than the store takes")
        }
        try expect(try await standing(engine, "a fault", now: now)?.version == 1, "and stands behind it")
    }
}
