import PushModel

/// Moves every row of one store into another, page by page, without opening any.
///
/// Both stores are marked before the first row is copied: the source is closed to relays from then on,
/// because the target will owe what it owes, and the target is closed until it is complete. An interrupted
/// copy continues where it ended when the command is given again. At the end both are read once more, and
/// counts and digests are compared (decision 0038).
struct StoreCopier {
    /// Why nothing was copied, or why the copy is not believed.
    enum Refusal: Error, Equatable {
        case store(StoreError, isSource: Bool)
        /// A relay is alive on it.
        case served(isSource: Bool)
        /// The target holds rows, keys or half of another copy.
        case notEmpty
        /// The source was copied into another store.
        case copiedBefore
        /// The source is itself half of a copy.
        case halfOfCopy
        /// What was read back is not what was written.
        case differs
    }

    enum Phase: UInt8, Sendable, Hashable {
        case records = 1
        case pushes, marks, reading, comparing

        var words: String {
            switch self {
            case .records: "records copied"
            case .pushes: "owed pushes copied"
            case .marks: "marks of repeats copied"
            case .reading: "rows of the source read again"
            case .comparing: "rows of the target compared"
            }
        }
    }

    struct Result: Sendable, Hashable {
        var digest: StoreDigest
        /// Rows that this call has moved; fewer than there are when it went on with an older one.
        var moved = 0
        /// True when this copy had ended before.
        var wasWhole = false
    }

    /// How far the copy is: written in the commit of each page.
    private static let at = "copy/at"

    /// What of an engine a copy needs.
    typealias Store = StoredRows & StoreSettings & StoreFilling

    let source: any Store
    let target: any Store
    let world: World
    /// Rows of a phase that this call has gone through.
    let report: (WorkDone) -> Void

    func run() async throws(Refusal) -> Result {
        let cutoff = world.now() - .seconds(600)
        guard try await begin() else {
            let digest = try await ofSource { () throws(StoreError) in
                try await StoreDigest.of(source, cutoff: cutoff)
            }
            return Result(digest: digest, wasWhole: true)
        }
        var moved = 0
        for (name, value) in try await ofSource({ () throws(StoreError) in
            try await StoreDigest.lasting(source)
        }) {
            try await ofTarget { () throws(StoreError) in try await target.put(setting: name, to: value) }
        }
        let revision = try await ofSource { () throws(StoreError) in try await source.lastRevision() }
        let (phase, place) = try await standing()
        if phase == .records {
            try await fill(.lastRevision(revision), .records, place)
            moved += try await copyRecords(after: place)
        }
        if phase == .records || phase == .pushes {
            moved += try await copyPushes(after: phase == .pushes ? place : [])
        }
        try await copyMarks(cutoff)
        let digest = try await compare(cutoff)
        try await finish()
        return Result(digest: digest, moved: moved)
    }

    // MARK: who may be copied into whom

    /// Tells both stores, or finds that they have been told.
    ///
    /// - Returns: false when the copy is whole already.
    private func begin() async throws(Refusal) -> Bool {
        let from = try await ofSource { () throws(StoreError) in try await source.settings("copy/") }
        let to = try await ofTarget { () throws(StoreError) in try await target.settings("copy/") }
        guard from[StoreSetting.filledFrom] == nil else { throw .halfOfCopy }
        let name = from[StoreSetting.copiedTo]
        if let name, to[StoreSetting.filled] == name {
            // It may have been cut off between its last notes.
            try await clearNotes()
            return false
        }
        if let begun = to[StoreSetting.filledFrom] {
            // Between its note and the source's this copy may have been cut off.
            let isFresh = try await isEmpty(target)
            guard name == begun || (name == nil && isFresh) else { throw .notEmpty }
            try await claim(begun)
            return true
        }
        guard try await isEmpty(target), to.isEmpty else { throw .notEmpty }
        guard name == nil else { throw .copiedBefore }
        try await claim(world.randomBytes(16))
        return true
    }

    /// Writes the copy's name and then looks which relays are there: a relay first announces itself and then
    /// looks for such a name, so that one of the two sees the other.
    private func claim(_ name: [UInt8]) async throws(Refusal) {
        try await ofTarget { () throws(StoreError) in
            try await target.put(setting: StoreSetting.filledFrom, to: name)
        }
        guard try await ofTarget({ () throws(StoreError) in try await target.livingOwners().isEmpty }) else {
            try await ofTarget { () throws(StoreError) in
                try await target.put(setting: StoreSetting.filledFrom, to: nil)
            }
            throw .served(isSource: false)
        }
        let before = try await ofSource { () throws(StoreError) in
            try await source.settings(StoreSetting.copiedTo)
        }
        try await ofSource { () throws(StoreError) in
            try await source.put(setting: StoreSetting.copiedTo, to: name)
        }
        let isServed = try await ofSource { () throws(StoreError) in
            try await !source.livingOwners().isEmpty
        }
        guard isServed else {
            // A process that slept through the end of its lease may still wake up.
            return try await ofSource { () throws(StoreError) in try await source.bar(true) }
        }
        // A copy that had not begun leaves nothing behind.
        if before.isEmpty { try await clearNotes() }
        try await ofSource { () throws(StoreError) in
            try await source.put(setting: StoreSetting.copiedTo, to: before[StoreSetting.copiedTo])
        }
        throw .served(isSource: true)
    }

    private func isEmpty(_ store: any StoredRows) async throws(Refusal) -> Bool {
        try await ofTarget { () throws(StoreError) in
            let records = try await store.records(after: [], limit: 1)
            let pushes = try await store.pushes(after: [], limit: 1)
            let marks = try await store.marks(after: [], limit: 1)
            let settings = try await StoreDigest.lasting(store)
            return records.next == nil && pushes.next == nil && marks.next == nil && settings.isEmpty
        }
    }

    private func finish() async throws(Refusal) {
        try await ofTarget { () throws(StoreError) in
            let name = try await target.settings(StoreSetting.filledFrom)[StoreSetting.filledFrom]
            try await target.put(setting: StoreSetting.filled, to: name)
        }
        try await clearNotes()
    }

    /// From the last of these on a relay starts on the target.
    private func clearNotes() async throws(Refusal) {
        try await ofTarget { () throws(StoreError) in
            try await target.put(setting: Self.at, to: nil)
            try await target.put(setting: StoreSetting.filledFrom, to: nil)
        }
    }

    // MARK: rows

    /// How far an earlier call came: a phase, and the key of the last row of it.
    private func standing() async throws(Refusal) -> (Phase, [UInt8]) {
        let note = try await ofTarget { () throws(StoreError) in try await target.settings(Self.at)[Self.at] }
        guard let note, let first = note.first, let phase = Phase(rawValue: first) else {
            return (.records, [])
        }
        return (phase, Array(note.dropFirst()))
    }

    /// Rows and how far they bring the copy, in one commit: none goes twice.
    private func fill(_ page: StoredPage, _ phase: Phase, _ place: [UInt8]) async throws(Refusal) {
        try await ofTarget { () throws(StoreError) in
            try await target.fill(page, noting: Self.at, [phase.rawValue] + place)
        }
    }

    private func copyRecords(after place: [UInt8]) async throws(Refusal) -> Int {
        var place = place
        var moved = 0
        // Ends: each page begins behind the last.
        while true {
            let page = try await ofSource { [place] () throws(StoreError) in
                try await source.records(after: place, limit: StoreDigest.page)
            }
            guard let next = page.next else { return moved }
            try await fill(.records(page.rows), .records, next)
            place = next
            moved += page.rows.count
            if let last = page.rows.last { report(.records, moved, .share(last.key.share)) }
        }
    }

    private func copyPushes(after place: [UInt8]) async throws(Refusal) -> Int {
        var place = place
        var moved = 0
        // Ends: as above.
        while true {
            let page = try await ofSource { [place] () throws(StoreError) in
                try await source.pushes(after: place, limit: StoreDigest.page)
            }
            guard let next = page.next else { return moved }
            try await fill(.pushes(page.rows), .pushes, next)
            place = next
            moved += page.rows.count
            report(.pushes, moved, .unknown)
        }
    }

    /// Begun anew by each call: marks live for ten minutes, and of two equal ones the later holds.
    private func copyMarks(_ cutoff: UnixTime) async throws(Refusal) {
        let marks = try await ofSource { () throws(StoreError) in
            try await StoreDigest.heldMarks(source, cutoff)
        }.sorted { ($0.endedAt, $0.mark) < ($1.endedAt, $1.mark) }
        var rest = marks[...]
        while !rest.isEmpty {
            let page = Array(rest.prefix(StoreDigest.page))
            try await fill(.marks(page), .marks, [])
            rest = rest.dropFirst(page.count)
            report(.marks, marks.count - rest.count, .rows(marks.count))
        }
    }

    private func compare(_ cutoff: UnixTime) async throws(Refusal) -> StoreDigest {
        let before = try await ofSource { () throws(StoreError) in
            try await StoreDigest.of(source, cutoff: cutoff) { report(.reading, $0, $1) }
        }
        let rows = before.records.count + before.pushes.count
        let after = try await ofTarget { () throws(StoreError) in
            try await StoreDigest.of(target, cutoff: cutoff) { count, _ in
                report(.comparing, count, .rows(rows))
            }
        }
        // What cannot be read was left where it was.
        var readable = before
        readable.unreadable = after.unreadable
        guard readable == after else { throw .differs }
        return before
    }

    private func report(_ phase: Phase, _ count: Int, _ whole: WorkDone.Whole) {
        report(WorkDone(count: count, words: phase.words, whole: whole))
    }

    // MARK: whose fault

    private func ofSource<Value: Sendable>(
        _ body: () async throws(StoreError) -> Value
    ) async throws(Refusal) -> Value {
        do throws(StoreError) { return try await body() } catch { throw .store(error, isSource: true) }
    }

    private func ofTarget<Value: Sendable>(
        _ body: () async throws(StoreError) -> Value
    ) async throws(Refusal) -> Value {
        do throws(StoreError) { return try await body() } catch { throw .store(error, isSource: false) }
    }
}
