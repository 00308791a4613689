import PushModel

/// Where the marks of the last ten minutes are: a fingerprint in memory for each, in generations that are
/// dropped whole (decision 0003).
///
/// Marks are made in order of time and looked up at random. An index on disk would write a page for each of
/// them; here a mark stands in its push's row while the push is owed, and in a blob of the batch that settled
/// it afterwards, both written in sequence; only this index is accessed at random.
struct MarkIndex: Sendable {
    /// Where a mark is.
    enum Place: Sendable, Equatable {
        /// In the outbox row.
        case owed(row: Int64)
        /// In that blob of `marks`.
        case settled(blob: Int64)

        fileprivate var isOwed: Bool { if case .owed = self { true } else { false } }
    }

    /// Forty bits of fingerprint above what stands for the place; 0: empty.
    private struct Slot: Sendable {
        static let placeBits: UInt64 = 24
        private static let placeMask: UInt64 = 0xFF_FFFF

        private var bits: UInt64 = 0

        init() {}

        init(_ fingerprint: UInt64, place: UInt32) { bits = fingerprint << Self.placeBits | UInt64(place) }

        /// 0: empty.
        var fingerprint: UInt64 { bits >> Self.placeBits }
        var place: UInt32 { UInt32(truncatingIfNeeded: bits & Self.placeMask) }
    }

    private struct Generation: Sendable {
        let began: UnixTime
        var ended: UnixTime?
        private(set) var count = 0
        /// Open addressing. Grows by doubling.
        private var slots = Array(repeating: Slot(), count: 1_024)
        private var rows = Window()
        private var blobs = Window()
        /// By fingerprint, entries that do not fit into a slot: rows and blobs whose numbers are far from the
        /// others'.
        private var far: [UInt64: Place] = [:]

        /// In a slot's place. One that is owed has the highest bit clear, one that is settled has it set.
        private static let elsewhere: UInt32 = 0
        /// The fingerprint stays until its generation goes.
        private static let released: UInt32 = 0xFF_FFFF
        private static let settled: UInt32 = 0x80_0000

        /// - Parameter row: rows near it fit into slots; `nil`: near the first one that comes. Marks that are
        ///   carried over come first, and their rows may be old.
        init(began: UnixTime, near row: Int64?) {
            self.began = began
            if let row { rows.open(near: row) }
        }

        /// Places that stand beside the slots.
        var outlying: Int { far.count }

        func find(_ fingerprint: UInt64) -> Int? {
            var at = Int(truncatingIfNeeded: fingerprint) & (slots.count - 1)
            while true {
                let found = slots[at].fingerprint
                if found == fingerprint { return at }
                // Ends: a quarter of the slots is empty.
                if found == 0 { return nil }
                at = (at + 1) & (slots.count - 1)
            }
        }

        /// `nil`: released.
        func place(at index: Int) -> Place? {
            let slot = slots[index]
            switch slot.place {
            case Self.elsewhere: return far[slot.fingerprint]
            case Self.released: return nil
            case Self.settled...: return .settled(blob: blobs.number(slot.place & ~Self.settled))
            default: return .owed(row: rows.number(slot.place))
            }
        }

        mutating func set(_ place: Place?, at index: Int) {
            let code = code(place)
            let slot = slots[index]
            if slot.place == Self.elsewhere { far[slot.fingerprint] = nil }
            if code == Self.elsewhere { far[slot.fingerprint] = place }
            slots[index] = Slot(slot.fingerprint, place: code)
        }

        mutating func insert(_ fingerprint: UInt64, _ place: Place) {
            if count * 4 >= slots.count * 3 { grow() }
            let code = code(place)
            if code == Self.elsewhere { far[fingerprint] = place }
            put(Slot(fingerprint, place: code))
            count += 1
        }

        /// The rows of marks whose pushes were owed at the last change.
        func forEachOwed(_ body: (UInt64, Place) -> Bool) {
            for index in slots.indices where slots[index].fingerprint != 0 {
                guard let place = place(at: index), place.isOwed else { continue }
                guard body(slots[index].fingerprint, place) else { return }
            }
        }

        private mutating func code(_ place: Place?) -> UInt32 {
            switch place {
            case nil: return Self.released
            case .owed(let row)?: return rows.offset(row) ?? Self.elsewhere
            case .settled(let blob)?:
                guard let offset = blobs.offset(blob) else { return Self.elsewhere }
                let code = Self.settled | offset
                return code == Self.released ? Self.elsewhere : code
            }
        }

        private mutating func put(_ slot: Slot) {
            var at = Int(truncatingIfNeeded: slot.fingerprint) & (slots.count - 1)
            while slots[at].fingerprint != 0 { at = (at + 1) & (slots.count - 1) }
            slots[at] = slot
        }

        private mutating func grow() {
            let old = slots
            slots = Array(repeating: Slot(), count: old.count * 2)
            for slot in old where slot.fingerprint != 0 { put(slot) }
        }
    }

    /// Numbers near the first one, as offsets; 0 is none.
    ///
    /// Four millions lie on each side: more than the rows, with marks or without, that two minutes bring, and
    /// many times the blobs.
    private struct Window: Sendable {
        /// A slot's place has 23 bits beside the one that tells rows from blobs.
        private static let room: UInt64 = 0x80_0000

        /// The number whose offset would be 0; `nil` before the first number.
        private var base: Int64?

        mutating func open(near number: Int64) { base = number &- Int64(Self.room / 2) }

        /// The first number stands in the middle, for others come on both sides: at a start the latest are
        /// read first.
        ///
        /// - Returns: `nil` for a number that lies outside.
        mutating func offset(_ number: Int64) -> UInt32? {
            if base == nil { open(near: number) }
            let offset = UInt64(bitPattern: number &- (base ?? 0))
            return offset > 0 && offset < Self.room ? UInt32(offset) : nil
        }

        func number(_ offset: UInt32) -> Int64 { (base ?? 0) &+ Int64(offset) }
    }

    /// The highest number of a blob.
    static let lastBlob: Int64 = 1 << 48 - 1

    private var generations: [Generation] = []
    private let span: Duration
    private let perGeneration: Int
    private let limit: Int

    init(limits: SQLiteLimits) {
        span = limits.markSpan
        perGeneration = limits.marksPerGeneration
        limit = limits.markGenerations
    }

    /// Places that do not fit into slots.
    var outlying: Int { generations.reduce(0) { $0 + $1.outlying } }

    /// `nil` when the mark is not held. Another mark may have the same fingerprint: whoever reads the place
    /// looks there for the mark.
    func place(of mark: Digest16, now: UnixTime) -> Place? {
        let fingerprint = Self.fingerprint(mark)
        for index in generations.indices.reversed() {
            guard let slot = generations[index].find(fingerprint) else { continue }
            // The mark of an owed push is held for as long as the push is owed.
            guard let place = generations[index].place(at: slot),
                place.isOwed || isHeld(generations[index], now: now)
            else { return nil }
            return place
        }
        return nil
    }

    mutating func insert(_ mark: Digest16, _ place: Place, now: UnixTime) {
        rotate(now: now, to: place)
        let fingerprint = Self.fingerprint(mark)
        let last = generations.count - 1
        if let slot = generations[last].find(fingerprint) {
            generations[last].set(place, at: slot)
        } else {
            generations[last].insert(fingerprint, place)
        }
    }

    /// Moves a mark from its row to a blob, or releases it (`nil`).
    mutating func move(_ mark: Digest16, to place: Place?) {
        let fingerprint = Self.fingerprint(mark)
        for index in generations.indices.reversed() {
            if let slot = generations[index].find(fingerprint) {
                generations[index].set(place, at: slot)
                return
            }
        }
    }

    /// Blobs made before then hold no mark that counts.
    func oldest(now: UnixTime) -> UnixTime { now - span - span }

    private func isHeld(_ generation: Generation, now: UnixTime) -> Bool {
        // An open generation ends by time alone, because nothing closes it while nothing is accepted.
        let ended = generation.ended ?? generation.began + .milliseconds(span.wholeMilliseconds / 5)
        return ended + span > now
    }

    /// A generation lasts a fifth of the span, so a mark is held for one span to one span and a fifth.
    ///
    /// - Parameter place: of the mark that comes next.
    private mutating func rotate(now: UnixTime, to place: Place) {
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
        let row: Int64? = if case .owed(let row) = place { row } else { nil }
        generations.append(Generation(began: now, near: row))
        carryOver(gone)
    }

    /// Marks of pushes still owed go on into the newest generation, as far as it has room.
    private mutating func carryOver(_ gone: [Generation]) {
        let last = generations.count - 1
        for generation in gone {
            generation.forEachOwed { fingerprint, place in
                guard generations[last].count < perGeneration / 2 else { return false }
                generations[last].insert(fingerprint, place)
                return true
            }
        }
    }

    /// Keyed digests are uniform, so forty bits of one are a fingerprint: of 800,000 marks one in a million
    /// new ones meets another with the same, which it then replaces. 0 is kept for empty slots.
    private static func fingerprint(_ mark: Digest16) -> UInt64 { max(mark.low & 0xFF_FFFF_FFFF, 1) }
}
