import PushModel

/// Where the marks of the last ten minutes are: a fingerprint in memory for each, in generations that are
/// dropped whole (decision 0003).
///
/// Marks are made in the order of time and looked up in no order. An index on disk would write a page for
/// each of them; here a mark stands in its push's row while the push is owed, and in a blob of the batch that
/// settled it afterwards, both written in sequence, and only this index is met at random.
struct MarkIndex: Sendable {
    /// Where a mark is.
    enum Place: Sendable, Equatable {
        /// In the outbox row.
        case owed(row: Int64)
        /// In that blob of `marks`, at that entry.
        case settled(blob: Int64, entry: Int)
    }

    private struct Generation: Sendable {
        let began: UnixTime
        var ended: UnixTime?
        var count = 0
        /// Fingerprint and place, open addressing; 0 is empty. Grows by doubling.
        var slots: [(fingerprint: UInt64, place: UInt64)]

        init(began: UnixTime) {
            self.began = began
            slots = Array(repeating: (0, 0), count: 1_024)
        }

        func find(_ fingerprint: UInt64) -> Int? {
            var at = Int(truncatingIfNeeded: fingerprint) & (slots.count - 1)
            while slots[at].fingerprint != 0 {
                if slots[at].fingerprint == fingerprint { return at }
                at = (at + 1) & (slots.count - 1)
            }
            return nil
        }

        mutating func insert(_ fingerprint: UInt64, _ place: UInt64) {
            if count * 4 >= slots.count * 3 { grow() }
            put(fingerprint, place)
            count += 1
        }

        private mutating func put(_ fingerprint: UInt64, _ place: UInt64) {
            var at = Int(truncatingIfNeeded: fingerprint) & (slots.count - 1)
            while slots[at].fingerprint != 0 { at = (at + 1) & (slots.count - 1) }
            slots[at] = (fingerprint, place)
        }

        private mutating func grow() {
            let old = slots
            slots = Array(repeating: (0, 0), count: old.count * 2)
            for slot in old where slot.fingerprint != 0 { put(slot.fingerprint, slot.place) }
        }
    }

    /// The highest number of a blob that ``write(_:)`` can hold.
    static let lastBlob: Int64 = 1 << 48 - 1

    /// A place that says "released": the fingerprint stays until its generation goes.
    private static let released = UInt64.max

    private var generations: [Generation] = []
    private let span: Duration
    private let perGeneration: Int
    private let limit: Int

    init(limits: SQLiteLimits) {
        span = limits.markSpan
        perGeneration = limits.marksPerGeneration
        limit = limits.markGenerations
    }

    /// `nil` when the mark is not held.
    func place(of mark: Digest16, now: UnixTime) -> Place? {
        let fingerprint = Self.fingerprint(mark)
        for generation in generations.reversed() {
            guard let slot = generation.find(fingerprint) else { continue }
            let place = generation.slots[slot].place
            // The mark of an owed push is held for as long as the push is owed.
            guard place != Self.released, isHeld(generation, now: now) || Self.isOwed(place) else {
                return nil
            }
            return Self.read(place)
        }
        return nil
    }

    mutating func insert(_ mark: Digest16, _ place: Place, now: UnixTime) {
        rotate(now: now)
        let fingerprint = Self.fingerprint(mark)
        let last = generations.count - 1
        if let slot = generations[last].find(fingerprint) {
            generations[last].slots[slot].place = Self.write(place)
        } else {
            generations[last].insert(fingerprint, Self.write(place))
        }
    }

    /// Moves a mark from its row to a blob, or releases it (`nil`).
    mutating func move(_ mark: Digest16, to place: Place?) {
        let fingerprint = Self.fingerprint(mark)
        for index in generations.indices.reversed() {
            if let slot = generations[index].find(fingerprint) {
                generations[index].slots[slot].place = place.map(Self.write) ?? Self.released
                return
            }
        }
    }

    /// Blobs made before then hold no mark that counts.
    func oldest(now: UnixTime) -> UnixTime { now - span - span }

    private func isHeld(_ generation: Generation, now: UnixTime) -> Bool {
        // One that is still open ends by time alone, because nobody closes it while nothing is accepted.
        let ended = generation.ended ?? generation.began + .milliseconds(span.wholeMilliseconds / 5)
        return ended + span > now
    }

    /// A generation lasts a fifth of the span, so a mark is held for one span to one span and a fifth.
    private mutating func rotate(now: UnixTime) {
        if let last = generations.last, last.count < perGeneration,
            last.began + .milliseconds(span.wholeMilliseconds / 5) > now
        {
            return
        }
        if !generations.isEmpty { generations[generations.count - 1].ended = now }
        var gone = generations.filter { !isHeld($0, now: now) }
        generations = generations.filter { isHeld($0, now: now) }
        var held = generations.reduce(0) { $0 + $1.count }
        while held > perGeneration * (limit - 1), let first = generations.first {
            held -= first.count
            gone.append(first)
            generations.removeFirst()
        }
        generations.append(Generation(began: now))
        carryOver(gone)
    }

    /// Marks of pushes still owed go on into the newest generation, as far as it has room.
    private mutating func carryOver(_ gone: [Generation]) {
        let last = generations.count - 1
        for generation in gone {
            for slot in generation.slots where slot.fingerprint != 0 && Self.isOwed(slot.place) {
                guard generations[last].count < perGeneration / 2 else { return }
                generations[last].insert(slot.fingerprint, slot.place)
            }
        }
    }

    private static func isOwed(_ place: UInt64) -> Bool { place != released && place & 1 << 62 == 0 }

    /// Keyed digests are uniform, so half of one is a fingerprint; 0 is kept for empty slots.
    private static func fingerprint(_ mark: Digest16) -> UInt64 { mark.low == 0 ? 1 : mark.low }

    /// Bit 62 tells a blob from a row; 48 bits of number, 12 of entry.
    private static func write(_ place: Place) -> UInt64 {
        switch place {
        case .owed(let row): UInt64(row)
        case .settled(let blob, let entry): 1 << 62 | UInt64(entry) << 48 | UInt64(blob)
        }
    }

    private static func read(_ place: UInt64) -> Place {
        guard place & 1 << 62 != 0 else { return .owed(row: Int64(place)) }
        return .settled(blob: Int64(place & 0xFFFF_FFFF_FFFF), entry: Int(place >> 48 & 0x3FFF))
    }
}
