import PushModel
import PushTesting
@testable import SQLiteStore
import Testing

/// The table in memory that says where a mark is.
@Suite("Where the marks are", .timeLimit(.minutes(30)))
struct MarkIndexTests {
    private static let start = UnixTime(milliseconds: 1_700_000_000_000)

    private static func index(_ change: (inout SQLiteLimits) -> Void = { _ in }) -> MarkIndex {
        var limits = SQLiteLimits()
        change(&limits)
        return MarkIndex(limits: limits)
    }

    private static func mark(_ number: UInt64, _ random: inout SeededRandom) -> Digest16 {
        Digest16(high: number, low: random.next())
    }

    /// Numbers near each other, and the ends of what a file may hold.
    private static func number(below most: Int64, _ random: inout SeededRandom) -> Int64 {
        switch random.next() % 8 {
        case 0: most
        case 1: 1 + Int64(random.next() % 3)
        case 2: most / 2 + Int64(random.next() % 1_000)
        case 3: 1 + Int64(random.next() % UInt64(most))
        default: 1_000_000 + Int64(random.next() % 4_000_000_000)
        }
    }

    private static func place(_ random: inout SeededRandom) -> MarkIndex.Place {
        guard random.next() % 2 == 0 else { return .owed(row: number(below: .max, &random)) }
        return .settled(blob: number(below: MarkIndex.lastBlob, &random))
    }

    @Test("A mark is found where it was put last, whatever the numbers of rows and blobs", arguments: 1...8)
    func model(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var index = Self.index()
        var model: [(mark: Digest16, place: MarkIndex.Place?)] = []
        for step in 0..<20_000 {
            switch random.next() % 4 {
            case 0, 1:
                let made = (Self.mark(UInt64(step), &random), Self.place(&random))
                index.insert(made.0, made.1, now: Self.start)
                model.append(made)
            case 2 where !model.isEmpty:
                let chosen = Int(random.next() % UInt64(model.count))
                let place = random.next() % 5 == 0 ? nil : Self.place(&random)
                index.move(model[chosen].mark, to: place)
                model[chosen].place = place
            case 3 where !model.isEmpty:
                let chosen = Int(random.next() % UInt64(model.count))
                let place = Self.place(&random)
                index.insert(model[chosen].mark, place, now: Self.start)
                model[chosen].place = place
            default: break
            }
        }
        let wrong = model.filter { index.place(of: $0.mark, now: Self.start) != $0.place }
        #expect(wrong.isEmpty, "of \(model.count)")
        #expect(index.place(of: Digest16(high: 1, low: 1), now: Self.start) == nil)
    }

    @Test("Blobs that are read latest first, as at a start, are found")
    func backwards() {
        var random = SeededRandom(seed: 1)
        var index = Self.index()
        let last: Int64 = 5_000_000
        let marks = (0..<1_000).map { Self.mark(UInt64($0), &random) }
        for (number, mark) in marks.enumerated() {
            index.insert(mark, .settled(blob: last - Int64(number) * 1_000), now: Self.start)
        }
        for (number, mark) in marks.enumerated() {
            let place = index.place(of: mark, now: Self.start)
            #expect(place == .settled(blob: last - Int64(number) * 1_000))
        }
        #expect(index.outlying == 0)
    }

    @Test("Settled marks go with their span, and marks of owed pushes stay with them, near or far")
    func rotation() {
        var random = SeededRandom(seed: 2)
        var index = Self.index { $0.marksPerGeneration = 64 }
        let owed: [(Digest16, MarkIndex.Place)] = [7, 8, 1 << 40, .max].map {
            (Self.mark(1, &random), .owed(row: $0))
        }
        let settled = (Self.mark(2, &random), MarkIndex.Place.settled(blob: 3))
        for (mark, place) in owed + [settled] { index.insert(mark, place, now: Self.start) }
        let span = SQLiteLimits().markSpan
        #expect(index.place(of: settled.0, now: Self.start + span) == settled.1)
        // A mark that comes later closes the first generation, and one that comes behind its span drops it.
        for round in 1...3 {
            index.insert(Self.mark(3, &random), .owed(row: 9), now: Self.start + span * round)
        }
        let now = Self.start + span * 3
        #expect(index.place(of: settled.0, now: now) == nil)
        for (mark, place) in owed { #expect(index.place(of: mark, now: now) == place) }
    }
    @Test("The marks of old rows that are carried over leave the slots to those of new rows")
    func carriedOver() {
        var random = SeededRandom(seed: 3)
        var index = Self.index { $0.marksPerGeneration = 64 }
        let old = (0..<8).map { (Self.mark(1, &random), MarkIndex.Place.owed(row: $0 + 1)) }
        for (mark, place) in old { index.insert(mark, place, now: Self.start) }
        #expect(index.outlying == 0)
        // Closes their generation, which goes one span later.
        let span = SQLiteLimits().markSpan
        index.insert(Self.mark(1, &random), .settled(blob: 1), now: Self.start + span)
        let now = Self.start + span * 2
        let new = (0..<32).map { (Self.mark(2, &random), MarkIndex.Place.owed(row: 1 << 40 + $0)) }
        for (mark, place) in new { index.insert(mark, place, now: now) }
        for (mark, place) in old + new { #expect(index.place(of: mark, now: now) == place) }
        #expect(index.outlying == old.count)
    }

    @Test("In a blob a mark is found by its sixteen bytes, and nothing for another that is like it")
    func blob() {
        let mark = { Digest16(high: $0, low: 7) }
        let ids = (1...3).map { PushID(Digest16(high: $0, low: 9)) }
        var blob: [UInt8] = []
        MarkBlob.append(mark(1), ids[0], .accepted, to: &blob)
        MarkBlob.append(mark(2), ids[1], nil, to: &blob)
        MarkBlob.append(mark(1), ids[2], nil, to: &blob)
        blob.withUnsafeBytes { bytes in
            #expect(MarkBlob.read(mark(1), of: bytes)?.id == ids[2])
            #expect(MarkBlob.read(mark(2), of: bytes)?.id == ids[1])
            #expect(MarkBlob.read(mark(3), of: bytes) == nil)
        }
    }
}
