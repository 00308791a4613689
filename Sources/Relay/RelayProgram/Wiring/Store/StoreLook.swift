import AdminIngress
import AtRest
import PushModel
import WireFormats

/// Goes through the rows of a store and opens them.
struct StoreLook {
    /// Faults that are told one by one; more of them say no more.
    private static let told = 20
    /// A sample: so many places, and so many rows behind each. Keys are digests, so places are even.
    private static let places = 32
    private static let rowsPerPlace = 32

    let rows: any StoredRows
    let check: RowCheck
    let keyFile: String

    private var records = 0
    private var pushes = 0
    /// Records that a sample has met: places may lie close together, and each is counted once. At most
    /// `places` × `rowsPerPlace`.
    private var met: Set<Digest16> = []
    /// The same of records that cannot be read.
    private var unreadable: Set<String> = []
    private(set) var faults: [(place: String, sentence: String)] = []
    private var untold = 0
    /// Rows may be left that were not looked at.
    private var isSample = false

    init(rows: any StoredRows, check: RowCheck, keyFile: String) {
        self.rows = rows
        self.check = check
        self.keyFile = keyFile
    }

    /// - Parameter tell: is told how far it is after each page.
    mutating func all(_ tell: (WorkDone) -> Void = { _ in }) async throws(StoreError) {
        var place: StoredPlace? = []
        // Ends: each page begins behind the last.
        while let after = place {
            let page = try await records(after: after, limit: StoreDigest.page)
            for record in page.rows { look(at: record) }
            place = page.next
            if let last = page.rows.last {
                tell(WorkDone(count: records, words: "records opened", whole: .share(last.key.share)))
            }
        }
        place = []
        // Ends: as above.
        while let after = place {
            place = try await pushes(after: after, limit: StoreDigest.page)
            tell(WorkDone(count: pushes, words: "owed pushes opened"))
        }
    }

    /// Those that were looked at.
    var rowCount: Int { records + pushes }

    mutating func sample(_ world: World) async throws(StoreError) {
        // From the beginning first: what fits into a sample as a whole is looked at as a whole.
        let most = Self.places * Self.rowsPerPlace
        let first = try await records(after: [], limit: most)
        let isAllRecords = first.rows.count + first.unreadable.count < most
        for record in isAllRecords ? first.rows : Array(first.rows.prefix(Self.rowsPerPlace)) {
            lookOnce(at: record)
        }
        if !isAllRecords {
            for _ in 1..<Self.places {
                let place = Digest16(high: world.random(), low: world.random()).bytes
                for record in try await records(after: place, limit: Self.rowsPerPlace).rows {
                    lookOnce(at: record)
                }
            }
        }
        let rest = try await pushes(after: [], limit: most)
        isSample = !isAllRecords || rest != nil
    }

    private mutating func lookOnce(at record: StoredRecord) {
        if met.insert(record.key).inserted { look(at: record) }
    }

    // MARK: pages

    /// Rows that cannot be read are noted, once each: places of a sample may lie close together.
    private mutating func records(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> RowPage<StoredRecord> {
        let page = try await rows.records(after: place, limit: limit)
        for row in page.unreadable where unreadable.insert(row).inserted {
            note("records, \(row)", "The row cannot be read. The next registration writes it anew.")
        }
        return page
    }

    /// Looks at a page of pushes; where the next one begins, `nil` behind the last.
    private mutating func pushes(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> StoredPlace? {
        let page = try await rows.pushes(after: place, limit: limit)
        for owed in page.rows { look(at: owed.push) }
        for row in page.unreadable {
            note(
                "outbox, \(row)",
                "The row cannot be read, so it is not sent. It goes when its custody ends; restore a backup "
                    + "if it must be sent.")
        }
        return page.next
    }

    // MARK: one row

    private mutating func look(at record: StoredRecord) {
        records += 1
        guard let fault = check.fault(of: record) else { return }
        let cure = "The next registration writes it anew; else restore a backup."
        note("records, \(record.space), key \(Hex.encode(record.key.bytes))", sentence(fault, cure))
    }

    private mutating func look(at push: StoredPush) {
        pushes += 1
        guard let fault = check.fault(of: push) else { return }
        let cure = "The relay drops it when it is its turn; restore a backup if it must be sent."
        note("outbox, push \(push.id.text)", sentence(fault, cure))
    }

    private func sentence(_ fault: RowCheck.Fault, _ cure: String) -> String {
        switch fault {
        case .unknownKey(let number):
            "It is sealed with key \(number), which \(keyFile) does not have: put it back from an older copy."
        case .doesNotOpen: "The row does not open: its bytes were changed. \(cure)"
        case .doesNotRead: "The row opens and holds what does not belong there. \(cure)"
        }
    }

    private mutating func note(_ place: String, _ sentence: String) {
        guard faults.count < Self.told else {
            untold += 1
            return
        }
        faults.append((place, sentence))
    }

    func findings(_ name: String) -> [Finding] {
        let count = counted(records, "record") + " and " + counted(pushes, "owed push", "owed pushes")
        guard !faults.isEmpty else {
            return [.good(.store, name, isSample ? "A sample of \(count) opens." : "All \(count) open.")]
        }
        var findings: [Finding] = faults.map { .fault(.store, $0.place, $0.sentence) }
        if untold > 0 {
            let sentence = counted(untold, "more row has", "more rows have") + " a fault."
            findings.append(.fault(.store, name, sentence))
        }
        return findings
    }
}
