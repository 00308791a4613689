import PushModel

/// The rules for an engine's list of expired records.
extension EngineConformance {
    static var expiredLists: [ConformanceCase] {
        [
            ConformanceCase("what has expired is listed by owner and version, page by page", expiredPages),
            ConformanceCase("that list follows every commit, from expiry to collection", expiredKept)
        ]
    }

    /// Versions of an owner's list.
    private static func list(
        _ engine: any Engine, _ owner: UInt64, by: UnixTime, after: UInt64 = 0, limit: Int = 100,
        now: UnixTime
    ) async throws -> [UInt64] {
        let index = StoredIndex.expired(owner: Samples.digest(owner), by: by)
        return try await engine.page(index, after: after, limit: limit, now: now).map(\.version)
    }

    private static func expiredPages(_ rig: EngineRig) async throws {
        var engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        let soon = now + .seconds(60)
        // Written in another order than the list's; numbers use all 64 bits.
        let versions: [UInt64] = [9, .max, 1 << 63, 3, 1 << 63 - 1, 7, 5]
        var changes: [StoredChange] = []
        for (key, version) in versions.enumerated() {
            changes.append(.put(Samples.record(UInt64(key), version: version, owner: 50), if: .any))
        }
        changes += [
            .put(Samples.record(20, version: 4, owner: 51), if: .any),
            .put(Samples.record(21, version: 0, owner: 50), if: .any),
            .put(Samples.record(22, version: 6), if: .any),
            .put(Samples.record(23, version: 2, expires: soon, owner: 50), if: .any)
        ]
        _ = try await engine.apply(changes, now: now)
        try expect(try await list(engine, 50, by: .distantFuture, now: now).isEmpty, "live ones are not")
        let keys = (0..<7).map { UInt64($0) } + [20, 21, 22, 23]
        // Two of them a millisecond later.
        let ends = keys.map { key in
            let late = key == 3 || key == 6
            return StoredChange.expire(
                Samples.digest(key), at: late ? now + .milliseconds(1) : now, if: .any)
        }
        _ = try await engine.settle([], feedback: ends, now: now)
        engine = try await rig.next(engine, Samples.ours)
        let all: [UInt64] = [2, 3, 5, 7, 9, 1 << 63 - 1, 1 << 63, .max]
        let later = now + .milliseconds(1)
        try expect(try await list(engine, 50, by: later, now: now) == all, "without sign, and rising")
        let early: [UInt64] = [2, 7, 9, 1 << 63 - 1, 1 << 63, .max]
        try expect(try await list(engine, 50, by: now, now: now) == early, "the moment itself counts")
        try expect(
            try await list(engine, 50, by: now - .milliseconds(1), now: now).isEmpty, "none before it")
        try expect(try await list(engine, 51, by: later, now: now) == [4], "each owner's its own")
        try expect(try await list(engine, 99, by: later, now: now).isEmpty, "nobody has nothing")
        var pages: [[UInt64]] = []
        var after: UInt64 = 0
        while pages.count < 9 {
            let page = try await list(engine, 50, by: later, after: after, limit: 3, now: now)
            guard let last = page.last else { break }
            pages.append(page)
            after = last
        }
        try expect(pages == [[2, 3, 5], [7, 9, 1 << 63 - 1], [1 << 63, .max]], "page by page")
        try expect(
            try await list(engine, 50, by: later, now: soon) == Array(all.dropFirst()),
            "what is past its expiry is none")
    }

    private static func expiredKept(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        let puts = (1...6 as ClosedRange<UInt64>).map {
            StoredChange.put(Samples.record($0, version: $0 * 10, owner: 50), if: .any)
        }
        _ = try await engine.apply(puts, now: now)
        let ends = (1...6 as ClosedRange<UInt64>).map {
            StoredChange.expire(Samples.digest($0), at: now, if: .any)
        }
        _ = try await engine.apply(ends, now: now)
        func kept() async throws -> [UInt64] { try await list(engine, 50, by: now, now: now) }
        try expect(try await kept() == [10, 20, 30, 40, 50, 60], "all are listed")
        _ = try await engine.apply([puts[0]], now: now)
        try expect(try await kept() == [20, 30, 40, 50, 60], "one that came back is not")
        _ = try await engine.apply([.delete(Samples.digest(2), if: .any)], now: now)
        try expect(try await kept() == [30, 40, 50, 60], "nor one that was deleted")
        let refused = try await engine.apply(
            [.delete(Samples.digest(3), if: .any), .delete(Samples.digest(4), if: .revision(1))], now: now)
        try expect(refused == .refused(index: 1), "the second is refused")
        try expect(try await kept() == [30, 40, 50, 60], "so the list stays as it was")
        let tombstone = { (record: StoredRecord) in
            var record = record
            record.state = .tombstone
            return record
        }
        _ = try await engine.apply(
            [.put(tombstone(Samples.record(3, version: 30, owner: 50)), if: .any)], now: now)
        try expect(try await kept() == [40, 50, 60], "a tombstone has not expired")
        _ = try await engine.apply([.put(Samples.record(4, version: 41, owner: 52), if: .any)], now: now)
        _ = try await engine.apply([.expire(Samples.digest(4), at: now, if: .any)], now: now)
        try expect(try await kept() == [50, 60], "one that changed its owner left")
        try expect(try await list(engine, 52, by: now, now: now) == [41], "for the new one's list")
        let end = now + Record.expiredLife
        _ = try await engine.purge(before: end + .milliseconds(1), limit: 9)
        try expect(try await kept().isEmpty, "what is collected is not listed")
        _ = try await engine.apply(
            [.put(Samples.record(7, version: 70, owner: 50), if: .any)], now: now)
        _ = try await engine.apply([.expire(Samples.digest(7), at: now, if: .any)], now: now)
        _ = try await engine.forget(owner: Samples.digest(50), limit: 9)
        try expect(try await kept().isEmpty, "nor what is forgotten")
    }
}
