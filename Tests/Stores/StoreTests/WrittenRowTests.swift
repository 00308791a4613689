import MemoryStore
import PushModel
import PushTesting
import Testing

@testable import AtRest

/// Anyone who can write to the database cannot make a row say what the relay has not written.
@Suite("Rows that somebody else has written to", .timeLimit(.minutes(30)))
struct WrittenRowTests {
    private static let space = Space(core: "written")

    private struct Rig {
        let engine: MemoryStore
        let store: SealedStore
        let journal = LogSpy()
        let key = RecordKey(WrittenRowTests.space, Secret("name".utf8))

        init() async throws {
            let clock = ManualClock()
            let world = clock.world(seed: 5)
            engine = MemoryStore(owner: OwnerID(Digest16(high: 1, low: 1)), clock: world.now)
            store = try await SealedStore(
                engine: engine, keys: AtRestKeys.generate(world), world: world, journal: journal.journal)
            let record = Record(
                key: key, owner: RecordKey(WrittenRowTests.space, Secret("owner".utf8)),
                address: RecordKey(WrittenRowTests.space, Secret("address".utf8)), version: 7,
                touchedAt: clock.now, expiresAt: clock.now + .seconds(3_600), body: Secret("body".utf8))
            #expect(try await store.apply([.put(record, if: .absent)]) == .committed)
        }

        func row() async throws -> StoredRecord {
            try #require(
                try await engine.page(
                    .space(WrittenRowTests.space.text), after: 0, limit: 1, now: UnixTime(milliseconds: 0)
                ).first)
        }

        func write(_ row: StoredRecord) async throws {
            #expect(try await engine.apply([.put(row, if: .any)], now: row.touchedAt) == .committed)
        }
    }

    private static let other = Digest16(high: 4, low: 2)
    private static let edits: [(column: String, edit: @Sendable (inout StoredRecord) -> Void)] = [
        ("owner", { $0.owner = other }), ("owner away", { $0.owner = nil }),
        ("address", { $0.address = other }), ("address away", { $0.address = nil }),
        ("version", { $0.version = 8 }), ("state", { $0.state = .tombstone }),
        ("touched", { $0.touchedAt = $0.touchedAt + .seconds(1) }),
        ("expires", { $0.expiresAt = $0.expiresAt + .seconds(1) })
    ]

    @Test("A column that was changed makes the row none, and the journal says so", arguments: 0..<8)
    func columns(_ number: Int) async throws {
        let bench = try await Rig()
        let row = try await bench.row()
        #expect(try await bench.store.find([bench.key])[0].map { $0.body == Secret("body".utf8) } == true)
        let (column, edit) = Self.edits[number]
        var changed = row
        edit(&changed)
        try await bench.write(changed)
        #expect(try await bench.store.find([bench.key])[0] == nil, "\(column)")
        #expect(try await bench.store.page(.space(Self.space), after: 0, limit: 9).isEmpty, "\(column)")
        #expect(bench.journal.contains("record does not open"))
        // As it was it opens.
        try await bench.write(row)
        #expect(try await bench.store.find([bench.key])[0] != nil, "\(column)")
    }

    @Test("A body does not fit the row of another record, nor of another space")
    func moved() async throws {
        let bench = try await Rig()
        var row = try await bench.row()
        row.key = Self.other
        try await bench.write(row)
        #expect(try await bench.store.page(.space(Self.space), after: 0, limit: 9).count == 1)
        row = try await bench.row()
        row.space = "core/other"
        try await bench.write(row)
        #expect(try await bench.store.page(.space(Space(text: "core/other")), after: 0, limit: 9).isEmpty)
    }
}
