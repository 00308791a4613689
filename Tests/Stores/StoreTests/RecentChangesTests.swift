import PushModel
import PushTesting
import Testing

@testable import SQLiteStore

@Suite("Registrations that were changed lately", .timeLimit(.minutes(30)))
struct RecentChangesTests {
    private static let now = UnixTime(milliseconds: 1_800_000_000_000)

    private static func digest(_ number: UInt64) -> Digest16 { Digest16(high: number, low: number) }

    /// A registration that names an address, and none stood before.
    private static func new(_ key: UInt64, at address: UInt64) -> ChangedRegistration {
        ChangedRegistration(key: digest(key), address: digest(address), mayOwe: false)
    }

    private static func mayHaveEnded(
        _ changes: inout RecentChanges, _ key: UInt64, at address: UInt64, after span: Duration = .zero
    ) -> Bool {
        changes.mayHaveEnded(digest(key), digest(address), at: now + span)
    }

    @Test("New registrations are not remembered, however many come")
    func new() {
        var changes = RecentChanges()
        for key in 1...200_000 {
            changes.note([Self.new(UInt64(key), at: 7)], at: Self.now)
        }
        #expect(changes.count == 0)
        #expect(!Self.mayHaveEnded(&changes, 1, at: 7))
    }

    @Test("One that comes after another of its key has ended is told from that one")
    func again() {
        var changes = RecentChanges()
        changes.note([ChangedRegistration(key: Self.digest(1))], at: Self.now)
        #expect(Self.mayHaveEnded(&changes, 1, at: 7) && Self.mayHaveEnded(&changes, 1, at: 8))
        // What ended may have been turned to the older half meanwhile.
        for span in [Duration.zero, .seconds(130)] {
            changes.note([Self.new(1, at: 8)], at: Self.now + span)
            #expect(Self.mayHaveEnded(&changes, 1, at: 7, after: span))
            #expect(!Self.mayHaveEnded(&changes, 1, at: 8, after: span))
        }
        #expect(!Self.mayHaveEnded(&changes, 1, at: 7, after: .seconds(500)), "remembered for a while")
    }

    @Test("One whose time had passed has ended nothing until another of its key comes")
    func lapsed() {
        var changes = RecentChanges()
        // Something else has changed.
        changes.note([ChangedRegistration(key: Self.digest(2))], at: Self.now)
        changes.noteLapsed(Self.digest(1), Self.digest(7), at: Self.now)
        #expect(!Self.mayHaveEnded(&changes, 1, at: 7))
        changes.note([Self.new(1, at: 8)], at: Self.now)
        #expect(Self.mayHaveEnded(&changes, 1, at: 7) && !Self.mayHaveEnded(&changes, 1, at: 8))
    }

    @Test("One that lapsed after a time without changes is remembered as long as any", arguments: [0, 600])
    func lapsedLate(_ quiet: Int64) {
        var changes = RecentChanges()
        changes.note([ChangedRegistration(key: Self.digest(2))], at: Self.now)
        let then = Self.now + .seconds(quiet)
        changes.noteLapsed(Self.digest(1), Self.digest(7), at: then)
        changes.note([Self.new(1, at: 8)], at: then)
        #expect(Self.mayHaveEnded(&changes, 1, at: 7, after: .seconds(quiet + 119)))
    }

    @Test("When more have changed than are remembered, every push is looked at")
    func many() {
        var changes = RecentChanges()
        for key in 1...60_000 {
            changes.note([ChangedRegistration(key: Self.digest(UInt64(key)))], at: Self.now)
        }
        #expect(changes.count == 50_000)
        #expect(Self.mayHaveEnded(&changes, 70_000, at: 7))
    }

    @Test("A push of a registration that was purged is owed, unless another of its key names another address")
    func purged() async throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        let clock = ManualClock()
        let engine = try SQLiteStore(
            path: folder.path, owner: OwnerID(Self.digest(3)), world: clock.world(seed: 3))
        func register(at address: UInt64, until end: UnixTime) async throws {
            let record = StoredRecord(
                key: Self.digest(1), space: "main/device", owner: nil, address: Self.digest(address),
                version: 0, state: .live, touchedAt: clock.now, expiresAt: end, revision: 0, body: [1])
            _ = try await engine.apply([.put(record, if: .any)], now: clock.now)
        }
        func isOwed(_ number: UInt64, at address: UInt64) async throws -> Bool {
            let push = StoredPush(
                row: 0, id: PushID(Self.digest(100 + number)), lane: "acme/fcm/production",
                pushClass: .normal, origin: Self.digest(5), record: Self.digest(1), touchedAt: clock.now,
                address: Self.digest(address), notBefore: clock.now,
                custodyEnds: clock.now + .seconds(3_600), attempt: 0, epoch: 0, parked: false, mark: nil,
                sealed: [1, 2, 3])
            let accepted = try await engine.accept([push], changes: [], now: clock.now)
            guard case .committed(let admissions) = accepted, case .owed? = admissions.first else {
                return false
            }
            return true
        }
        try await register(at: 7, until: clock.now + .seconds(1))
        clock.advance(by: .seconds(2))
        #expect(try await engine.purge(before: clock.now, limit: 10) == 1)
        #expect(try await isOwed(1, at: 7))
        try await register(at: 8, until: .distantFuture)
        #expect(try await !isOwed(2, at: 7))
        #expect(try await isOwed(3, at: 8))
        try engine.close()
    }
}
