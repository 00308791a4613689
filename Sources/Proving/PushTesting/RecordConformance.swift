import PushModel

/// The rules of engines, each as a case.
package enum EngineConformance {
    /// The limit of owed pushes with which a rig opens its engine.
    package static let rowBound = 50
    package static var all: [ConformanceCase] {
        records + frequent + expiredLists + outbox + marks + shared + witnesses + feedback + endings
    }

    static var records: [ConformanceCase] {
        [
            ConformanceCase("each condition decides by what stands", conditions),
            ConformanceCase("changes are made all or none", allOrNone),
            ConformanceCase("keys of which one half is the same are different keys", sharedHalves),
            ConformanceCase("pages follow revisions, and revisions rise over reopening too", paging),
            ConformanceCase("a record past its expiry is none, and purge takes a bounded number", expiry),
            ConformanceCase("an expired record stays 42 days, and may be put anew before", expiredLife),
            ConformanceCase("an owner's records are forgotten, expired ones too", forgottenOwner),
            ConformanceCase("an owner's records are counted with what they take, expired ones too", tallies),
            ConformanceCase("a setting is written once", settings),
            ConformanceCase("what one find asks for is as one commit left it", oneMoment),
            ConformanceCase("a record that is set aside is none until it is written anew", recordAside)
        ]
    }

    private static func conditions(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        func put(_ condition: Condition, version: UInt64 = 5, touched: Int64 = 1000) async throws -> Bool {
            let record = Samples.record(1, version: version, touched: touched)
            return try await engine.apply([.put(record, if: condition)], now: now) == .committed
        }
        try expect(try await !put(.revision(1)), "no revision stands yet")
        try expect(try await put(.absent), "absent holds where nothing is")
        try expect(try await !put(.absent), "absent fails where something is")
        try expect(try await !put(.versionBelow(5)), "an equal version is not below")
        try expect(try await put(.versionBelow(6)), "a lower version is below")
        try expect(try await put(.versionBelow(.max), version: .max - 1), "versions use all 64 bits")
        try expect(try await !put(.versionBelow(.max - 1)), "and are compared without sign")
        try expect(try await !put(.touchedNotAfter(UnixTime(milliseconds: 999))), "touched later")
        try expect(try await put(.touchedNotAfter(UnixTime(milliseconds: 1000))), "touched just then")
        guard let kept = try await engine.find([Samples.digest(1)], now: now)[0] else {
            throw ConformanceFault(description: "the record is gone")
        }
        try expect(try await put(.revision(kept.revision)), "the revision that stands")
        try expect(try await !put(.revision(kept.revision)), "it stands no longer")
        let deleted = try await engine.apply([.delete(Samples.digest(1), if: .versionBelow(1))], now: now)
        try expect(deleted == .refused(index: 0), "delete has conditions too")
        _ = try await engine.apply([.delete(Samples.digest(1), if: .any)], now: now)
        try expect(try await engine.find([Samples.digest(1)], now: now) == [nil], "deleted is deleted")
    }

    private static func allOrNone(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        _ = try await engine.apply([.put(Samples.record(2), if: .any)], now: now)
        let changes: [StoredChange] = [
            .put(Samples.record(1), if: .absent), .put(Samples.record(2), if: .absent)
        ]
        try expect(try await engine.apply(changes, now: now) == .refused(index: 1), "the second is refused")
        try expect(try await engine.find([Samples.digest(1)], now: now) == [nil], "so the first is not made")
        let push = Samples.push(1, rig)
        let answer = try await engine.accept([push], changes: changes, now: now)
        try expect(answer == .refused(index: 1), "an acceptance is refused by its changes")
        try expect(try await engine.load().rows == 0, "and writes no push")
    }

    private static func recordAside(_ rig: EngineRig) async throws {
        var engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        let keys = [1, 2, 3].map(Samples.digest)
        let puts = (1...3 as ClosedRange<UInt64>).map {
            StoredChange.put(Samples.record($0, owner: 9, address: 8), if: .any)
        }
        _ = try await engine.apply(puts, now: now)
        guard let second = try await engine.find(keys, now: now)[1] else {
            throw ConformanceFault(description: "the record is not there")
        }
        let seen = SeenRecord(key: second.key, revision: Int64(clamping: second.revision))
        let stale = SeenRecord(key: second.key, revision: seen.revision + 1)
        try expect(try await engine.setRecordsAside([stale]) == 0, "it was written anew since")
        try expect(try await engine.setRecordsAside([seen, seen]) == 1, "set aside once")
        engine = try await rig.next(engine, Samples.ours)
        try expect(try await engine.setRecordsAside([]) == 1, "and stands so for every process")
        _ = try await engine.apply([.expire(second.key, at: now, if: .any)], now: now)
        try expect(try await engine.setRecordsAside([seen]) == 1, "what stands aside does not expire anew")
        let found = try await engine.find(keys, now: now).map { $0 == nil }
        try expect(found == [false, true, false], "it is none")
        for index in [
            StoredIndex.space("main/device"), .owner(Samples.digest(9)), .address(Samples.digest(8))
        ] {
            let page = try await engine.page(index, after: 0, limit: 2, now: now)
            try expect(page.map(\.key) == [keys[0], keys[2]], "nor does it fill a page")
        }
        var beside = Samples.record(5)
        beside.address = second.key
        let refused = try await engine.apply(
            [.put(beside, if: .besideLive(touchedNotAfter: now))], now: now)
        try expect(refused != .committed, "nothing stands beside it")
        try expect(
            try await engine.apply([.put(Samples.record(2), if: .absent)], now: now) == .committed,
            "to a condition it is none")
        try expect(try await engine.find([second.key], now: now)[0] != nil, "what is written anew stands")
        try expect(try await engine.setRecordsAside([]) == 0, "nothing is aside any more")
        guard let first = try await engine.find(keys, now: now)[0] else {
            throw ConformanceFault(description: "another was set aside")
        }
        _ = try await engine.setRecordsAside(
            [SeenRecord(key: first.key, revision: Int64(clamping: first.revision))])
        _ = try await engine.forget(owner: Samples.digest(9), limit: 10)
        try expect(try await engine.setRecordsAside([]) == 0, "it goes with its owner")
        _ = try await engine.apply([.put(Samples.record(6), if: .any)], now: now)
        guard let last = try await engine.find([Samples.digest(6)], now: now)[0] else {
            throw ConformanceFault(description: "the record is not there")
        }
        _ = try await engine.setRecordsAside(
            [SeenRecord(key: last.key, revision: Int64(clamping: last.revision))])
        _ = try await engine.purge(before: .distantFuture, limit: 10)
        try expect(try await engine.setRecordsAside([]) == 0, "and not for ever, though it never expired")
    }

    /// More keys than an engine may read at once, and few enough to be read together with others.
    private static func oneMoment(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        for count in [3, 300] as [UInt64] {
            let keys = (0..<count).map(Samples.digest)
            let write = { @Sendable (version: UInt64) in
                _ = try await engine.apply(
                    (0..<count).map { .put(Samples.record($0, version: version), if: .any) }, now: now)
            }
            try await write(1)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { for version in 2...12 as ClosedRange<UInt64> { try await write(version) } }
                group.addTask {
                    for _ in 0..<12 {
                        let found = try await engine.find(keys, now: now)
                        let versions = Set(found.map { $0?.version ?? 0 })
                        try expect(versions.count == 1, "rows of several commits in one answer")
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    /// Digests collide with a chance of one in billions of billions; if they do, no registration may be lost.
    private static func sharedHalves(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        let halves: [UInt64] = [0, 1 << 63 - 40, 1 << 63, .max]
        let keys = halves.flatMap { half in
            (1...12 as ClosedRange<UInt64>).flatMap {
                [Digest16(high: half, low: $0), Digest16(high: $0 << 32, low: half)]
            }
        }
        func put(_ key: Digest16, _ version: UInt64, _ condition: Condition) async throws -> Bool {
            var record = Samples.record(1, version: version)
            record.key = key
            return try await engine.apply([.put(record, if: condition)], now: now) == .committed
        }
        func kept() async throws -> [Digest16: UInt64] {
            var found: [Digest16: UInt64] = [:]
            for (key, record) in zip(keys, try await engine.find(keys, now: now)) {
                guard let record else { continue }
                try expect(record.key == key, "the record of another key")
                found[key] = record.version
            }
            return found
        }
        var wanted: [Digest16: UInt64] = [:]
        for (key, version) in zip(keys, (1 as UInt64)...) {
            try expect(try await put(key, version, .absent), "nothing stands under this key")
            wanted[key] = version
        }
        try expect(try await kept() == wanted, "each stands with what was written")
        for key in keys.enumerated().filter({ $0.offset % 3 == 0 }).map(\.element) {
            _ = try await engine.apply([.delete(key, if: .any)], now: now)
            wanted[key] = nil
        }
        try expect(try await kept() == wanted, "the others stand")
        for key in keys.enumerated().filter({ $0.offset % 2 == 0 }).map(\.element) {
            try expect(try await put(key, 1_000, .versionBelow(1_000)), "it is newer")
            wanted[key] = 1_000
        }
        try expect(try await kept() == wanted, "written over or anew, each where it was")
        if let rows = engine as? any StoredRows { try await sweep(rows, wanted) }
    }

    /// Reads all records page by page: each once.
    private static func sweep(_ rows: any StoredRows, _ wanted: [Digest16: UInt64]) async throws {
        var place: StoredPlace? = []
        var seen: [Digest16: UInt64] = [:]
        for _ in 0...wanted.count {
            guard let after = place else { break }
            let page = try await rows.records(after: after, limit: 7)
            for record in page.rows { seen[record.key] = (seen[record.key] ?? 0) + record.version }
            place = page.next
        }
        try expect(seen == wanted, "a sweep sees each record once")
    }

    private static func paging(_ rig: EngineRig) async throws {
        var engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        for key in 1...5 as ClosedRange<UInt64> {
            _ = try await engine.apply([.put(Samples.record(key, owner: key % 2), if: .any)], now: now)
        }
        let space = StoredIndex.space("main/device")
        let head = try await engine.page(space, after: 0, limit: 3, now: now)
        try expect(head.map(\.key) == [1, 2, 3].map(Samples.digest), "in the order of writing")
        let rest = try await engine.page(space, after: head.last?.revision ?? 0, limit: 10, now: now)
        try expect(rest.map(\.key) == [4, 5].map(Samples.digest), "after that revision")
        let odd = try await engine.page(.owner(Samples.digest(1)), after: 0, limit: 10, now: now)
        try expect(odd.count == 3, "an owner's records")
        let last = rest.last?.revision ?? 0
        _ = try await engine.apply([.delete(Samples.digest(5), if: .any)], now: now)
        engine = try await rig.next(engine, Samples.ours)
        _ = try await engine.apply([.put(Samples.record(6), if: .any)], now: now)
        let news = try await engine.page(space, after: last, limit: 10, now: now)
        try expect(news.map(\.key) == [Samples.digest(6)], "a revision is never given twice")
    }

    private static func expiry(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        for key in 1...4 as ClosedRange<UInt64> {
            let record = Samples.record(key, expires: now + .seconds(1))
            _ = try await engine.apply([.put(record, if: .any)], now: now)
        }
        let later = now + .seconds(2)
        try expect(try await engine.find([Samples.digest(1)], now: later) == [nil], "past its expiry")
        let revived = Samples.record(1)
        let result = try await engine.apply([.put(revived, if: .absent)], now: later)
        try expect(result == .committed, "what has expired is absent")
        try expect(try await engine.purge(before: later, limit: 2) == 2, "purge is bounded")
        try expect(try await engine.purge(before: later, limit: 9) == 1, "and goes on")
        try expect(try await engine.find([Samples.digest(1)], now: later)[0] != nil, "the new one stays")
    }

    private static func expiredLife(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        let end = now + .seconds(42 * 86_400)
        let soon = now + .seconds(60)
        let records = [
            Samples.record(1), Samples.record(2), Samples.record(3, expires: soon),
            Samples.record(4), Samples.record(5)
        ]
        _ = try await engine.apply(records.map { .put($0, if: .any) }, now: now)
        let changes = [1, 2, 3, 4].map { StoredChange.expire(Samples.digest($0), at: now, if: .any) }
        _ = try await engine.settle([], feedback: changes, now: now)
        let found = try await engine.find([1, 2, 3, 5].map(Samples.digest), now: now)
        try expect(found[0]?.expiresAt == end && found[1]?.expiresAt == end, "42 days from then")
        try expect(found[2]?.expiresAt == soon, "never later than before")
        try expect(found[3]?.expiresAt == .distantFuture, "others as they were")
        // Expiring again does not restart the span.
        let again = StoredChange.expire(Samples.digest(1), at: now + .seconds(86_400), if: .any)
        _ = try await engine.apply([again], now: now + .seconds(86_400))
        // One of them comes back in its last millisecond.
        let last = end - .milliseconds(1)
        try expect(try await engine.purge(before: last, limit: 9) == 1, "only the one that was to go anyway")
        try expect(try await engine.find([Samples.digest(1)], now: last)[0] != nil, "it still stands")
        _ = try await engine.apply([.put(Samples.record(4), if: .any)], now: last)
        try expect(try await engine.find([Samples.digest(1)], now: end) == [nil], "then it is none")
        try expect(try await engine.purge(before: end + .milliseconds(1), limit: 9) == 2, "and is purged")
        let left = try await engine.find([4, 5].map(Samples.digest), now: end)
        try expect(left[0]?.state == .live && left[0]?.expiresAt == .distantFuture, "what came back stays")
        try expect(left[1]?.state == .live, "what never expired stays")
    }

    private static func forgottenOwner(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        let records = [
            Samples.record(1, owner: 50), Samples.record(2, owner: 50), Samples.record(3, owner: 50),
            Samples.record(4, owner: 51), Samples.record(5)
        ]
        _ = try await engine.apply(records.map { .put($0, if: .any) }, now: now)
        _ = try await engine.apply([.expire(Samples.digest(2), at: now, if: .any)], now: now)
        let owner = Samples.digest(50)
        try expect(try await engine.forget(owner: owner, limit: 2) == 2, "it is bounded")
        try expect(try await engine.forget(owner: owner, limit: 2) == 1, "and goes on")
        try expect(try await engine.forget(owner: owner, limit: 2) == 0, "and ends")
        let left = try await engine.find((1...5).map { Samples.digest($0) }, now: now)
        try expect(left.map { $0 != nil } == [false, false, false, true, true], "others stay")
    }

    private static func tallies(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        let records = [
            Samples.record(1, owner: 50), Samples.record(2, owner: 50), Samples.record(3, owner: 51),
            Samples.record(4)
        ]
        _ = try await engine.apply(records.map { .put($0, if: .any) }, now: now)
        let owners = [51, 99, 50, 51].map { Samples.digest($0) }
        func bytes(_ numbers: UInt64...) async throws -> Int {
            try await engine.find(numbers.map { Samples.digest($0) }, now: now)
                .reduce(0) { $0 + ($1?.body.count ?? 0) }
        }
        let before = try await engine.tally(owners, weighing: true)
        try expect(before[1] == .none, "nobody has nothing")
        try expect(try await before[2].bytes == bytes(1, 2) && before[2].bytes > 0, "the bodies' bytes")
        _ = try await engine.apply([.expire(Samples.digest(2), at: now, if: .any)], now: now)
        let after = try await engine.tally(owners, weighing: true)
        try expect(after[2].records == 2, "an expired one still stands there")
        try expect(try await after[2].bytes == bytes(1), "and takes nothing any more")
        for tallies in [before, after] {
            try expect(tallies.map(\.records) == [1, 0, 2, 1], "one answer for each, in order")
        }
        let counted = try await engine.tally(owners, weighing: false)
        try expect(counted == [1, 0, 2, 1].map { RecordTally(records: $0, bytes: 0) }, "without bytes")
        try expect(try await engine.tally([], weighing: true).isEmpty, "of none none")
    }

    private static func settings(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        try expect(try await engine.setting("check") == nil, "none at first")
        try expect(try await engine.settle(setting: "check", to: [1]) == [1], "the first stands")
        try expect(try await engine.settle(setting: "check", to: [2]) == [1], "and goes on standing")
        try expect(try await engine.setting("check") == [1], "and is read")
    }
}
