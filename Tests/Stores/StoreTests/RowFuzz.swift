import PushModel
import PushTesting
import Synchronization
import Testing

/// A store of some records and pushes, and everything that can be asked of it: what was left alone must be
/// as it was, and whatever is new must be taken, however the rest was changed.
enum RowFuzz {
    typealias AnyStore = Engine & StoreUpkeep & OwedLookup

    static let lane = "acme-chat/apns/production"
    private static let space = "main/device"
    static let count: UInt64 = 48
    /// Those that are changed; the others are left alone.
    static let spoiled = 0..<36 as Range<UInt64>
    /// Rows of each smaller table that are changed.
    static let few = 12
    /// How the names of processes begin that have the store one after the other.
    static let relays: UInt64 = 5
    /// Numbers of pushes that have not been.
    private static let fresh = Atomic<UInt64>(5_000)

    static func digest(_ number: UInt64) -> Digest16 {
        var random = SeededRandom(seed: number &+ 31)
        return Digest16(high: random.next(), low: random.next())
    }

    private static let keys = (0..<count).map(digest)

    static func push(_ number: UInt64, _ now: UnixTime, parked: Bool = true) -> StoredPush {
        let random = digest(number + 700)
        return StoredPush(
            row: 0, id: PushID(at: now, random: random.high, random.low), lane: lane, pushClass: .normal,
            origin: digest(number + 900),
            // Those that are changed are owed to nobody, or they would go with the registrations that are.
            record: number < count && !spoiled.contains(number) ? digest(number) : nil, touchedAt: now,
            notBefore: now,
            custodyEnds: now + .seconds(86_400), attempt: 0, epoch: 0, parked: parked,
            mark: digest(number + 1_100), sealed: [UInt8](repeating: 7, count: 100))
    }

    private static func record(_ key: Digest16, _ version: UInt64, _ now: UnixTime) -> StoredRecord {
        StoredRecord(
            key: key, space: space, owner: digest(version % 3 + 300), address: digest(version % 4 + 400),
            version: version, state: .live, touchedAt: now, expiresAt: .distantFuture, revision: 0,
            body: [UInt8](repeating: 3, count: 40))
    }

    /// Records and parked pushes, marks of pushes that have ended, and settings.
    static func fill(_ store: any AnyStore, _ now: UnixTime) async throws {
        let puts = (0..<count).map { StoredChange.put(record(digest($0), $0, now), if: .any) }
        _ = try await store.apply(puts, now: now)
        try await store.renew(for: .seconds(3_600))
        _ = try await store.accept((0..<count).map { push($0, now) }, changes: [], now: now)
        for number in 50..<(50 + UInt64(few)) {
            let push = push(number, now, parked: false)
            let accepted = try await store.accept([push], changes: [], now: now)
            guard case .committed(let admissions) = accepted, case .owed(let row, let epoch) = admissions[0]
            else { throw StoreError(.corrupt) }
            let step = StoredSettlement(
                row: row, id: push.id, epoch: epoch, mark: push.mark, step: .settle, first: .rejected)
            _ = try await store.settle([step], feedback: [], now: now)
            try await store.put(setting: "fuzz/\(number)", to: [1, 2, 3])
        }
        _ = try await store.lastTime(.raise(now))
    }

    /// What one reading finds.
    struct Sight {
        var records: [StoredRecord?] = []
        var page: Set<Digest16> = []
        /// Pushes that could be claimed, and those that an operator finds.
        var claimed: Set<PushID> = []
        var known: Set<PushID> = []
    }

    /// Asks everything that can be asked; nothing may trap or throw.
    static func read(
        _ store: any AnyStore, but spoiled: some Sequence<UInt64>, _ now: UnixTime
    ) async throws -> Sight {
        var sight = Sight()
        sight.records = try await store.find(keys, now: now)
        sight.page = Set(
            try await store.page(.space(space), after: 0, limit: 100, now: now).map(\.key))
        for index in [
            StoredIndex.space(space), .owner(digest(300)), .address(digest(401)),
            .expired(owner: digest(300), by: now)
        ] {
            _ = try await store.page(index, after: 0, limit: 3, now: now)
        }
        try await change(store, Set(spoiled), now)
        try await own(store)
        for number in 0..<count {
            let id = push(number, now).id
            if try await store.owed(id) != nil { sight.known.insert(id) }
        }
        try await walk(store)
        try await settings(store, now)
        sight.claimed = try await send(store, now)
        return sight
    }

    private static func change(_ store: any AnyStore, _ spoiled: Set<UInt64>, _ now: UnixTime) async throws {
        let found = try await store.find(keys, now: now)
        for number in 0..<count where found[Int(number)]?.state != .live || number % 8 == 0 {
            var beside = record(digest(number + 2_000), 1, now)
            beside.address = digest(number)
            _ = try await store.apply(
                [.put(beside, if: .besideLive(touchedNotAfter: now)), .delete(beside.key, if: .any)],
                now: now)
        }
        let ends = spoiled.sorted().map { StoredChange.expire(digest($0), at: now, if: .any) }
        _ = try await store.settle([], feedback: ends, now: now)
        _ = try await store.tally([digest(300), digest(301)], weighing: true)
        _ = try await store.purge(before: UnixTime(milliseconds: 1), limit: 10)
        _ = try await store.setRecordsAside([])
        // Whoever signs up now is found.
        let new = record(digest(3_000), 9, now)
        #expect(try await store.apply([.put(new, if: .absent)], now: now) == .committed)
        #expect(try await store.find([new.key], now: now)[0]?.version == 9)
        _ = try await store.apply([.delete(new.key, if: .any)], now: now)
    }

    private static func own(_ store: any AnyStore) async throws {
        let lanes = [lane, Aside.text(lane)]
        _ = try await store.takeOver(lanes, limit: 100)
        _ = try await store.reclaim(limit: 100)
        _ = try await store.letGo(besides: lanes, limit: 100)
        _ = try await store.takeOver(lanes, limit: 100)
        try await store.renew(for: .seconds(3_600))
        let members = try await store.enrol(in: [.relays], for: .seconds(20))
        let living = members.filter { $0.aliveFor > .zero && !$0.hasLeft }
        #expect(living.allSatisfy { $0.isUs || $0.owner.value.high == relays }, "nobody was made up")
        #expect(try await store.livingOwners().isEmpty)
        _ = try await store.load()
        _ = try await store.oldest()
    }

    private static func settings(_ store: any AnyStore, _ now: UnixTime) async throws {
        _ = try await store.settings("")
        _ = try await store.setting("fuzz/a")
        _ = try await store.lastRevision()
        _ = try await store.lastTime(.look)
        #expect(try await store.lastTime(.raise(now)) != nil)
    }

    /// What can be claimed; it is put back for the next reading.
    private static func send(_ store: any AnyStore, _ now: UnixTime) async throws -> Set<PushID> {
        // A repeat of each, which must not fail for the mark of a row that holds something else.
        for number in Array(0..<count) + Array(50..<(50 + UInt64(few))) {
            var again = push(fresh.wrappingAdd(1, ordering: .relaxed).newValue, now)
            again.mark = push(number, now).mark
            _ = try await store.accept([again], changes: [], now: now)
        }
        let new = push(fresh.wrappingAdd(1, ordering: .relaxed).newValue, now)
        let accepted = try await store.accept([new], changes: [], now: now)
        if case .committed(let admissions) = accepted, case .owed = admissions.first {
        } else {
            Issue.record("a new push is not taken: \(accepted)")
        }
        _ = try await store.endCustody(before: UnixTime(milliseconds: 1), limit: 10)
        _ = try await store.nextDue(lane)
        let claimed = try await store.claim(lane, due: now, limit: 1_000)
        #expect(claimed.contains { $0.id == new.id }, "what is new is sent")
        let steps = claimed.compactMap { push in
            LaneName(push.lane).map { lane in
                StoredSettlement(
                    row: push.row, id: push.id, epoch: push.epoch, mark: push.mark,
                    step: push.id == new.id
                        ? .settle : .retry(notBefore: now, attempt: push.attempt, lane: lane, parked: true),
                    first: nil)
            }
        }
        #expect(try await store.settle(steps, feedback: [], now: now).allSatisfy { $0 })
        let next = try await store.nextDue(lane)
        #expect(claimed.count < 2 || next.map { $0 <= now } == true)
        return Set(claimed.map(\.id))
    }

    static func walk(_ rows: any StoredRows) async throws {
        func end<Row>(_ page: (StoredPlace) async throws -> RowPage<Row>) async throws {
            var place: StoredPlace? = []
            for _ in 0..<100 {
                guard let after = place else { return }
                place = try await page(after).next
            }
            Issue.record("a walk did not end")
        }
        try await end { try await rows.records(after: $0, limit: 5) }
        try await end { try await rows.pushes(after: $0, limit: 5) }
        try await end { try await rows.marks(after: $0, limit: 5) }
        _ = try await rows.settings("")
        _ = try await rows.lastRevision()
    }

    /// Looks that all but the spoiled are as they were.
    static func judge(_ sight: Sight, _ now: UnixTime, _ label: String) {
        for number in 0..<count where !spoiled.contains(number) {
            let record = sight.records[Int(number)]
            let id = push(number, now).id
            #expect(record?.version == number && record?.body.count == 40, "record \(number), \(label)")
            #expect(sight.page.contains(digest(number)), "record \(number) in its page, \(label)")
            #expect(sight.claimed.contains(id), "push \(number), \(label)")
            #expect(sight.known.contains(id), "push \(number) is known, \(label)")
        }
    }
}
