import PushModel

/// The rows and the operations on them. It has no lock and no clock.
struct MemoryState {
    struct Row {
        var push: StoredPush
        var owner: OwnerID
        var first: OutcomeKind?
    }

    struct Mark {
        var id: PushID
        var row: Int64
        var first: OutcomeKind?
        /// When the push ended; `nil` while it is owed.
        var endedAt: UnixTime?
    }

    struct ParkedOwner: Hashable {
        var lane: String
        var owner: OwnerID
    }

    struct ParkedName: Hashable {
        var lane: String
        var pushClass: PushClass
    }

    /// How long a mark is held after its push has ended (decision 0003).
    static let markSpan = Duration.seconds(600)
    /// Marks of ended pushes in memory: ten minutes at 1,700 a second, in some 100 MB at worst.
    static let markLimit = 1_000_000

    let rowLimit: Int
    let byteLimit: Int
    let share: AppShare
    var owedByApp = OwedByApp()
    var records: [Digest16: StoredRecord] = [:]
    /// Keys of records that are set aside.
    var aside: Set<Digest16> = []
    var revision: UInt64 = 0
    var rows: [Int64: Row] = [:]
    var nextRow: Int64 = 1
    var bytes = 0
    var parked: [ParkedName: MemoryParkedRows] = [:]
    var parkedCounts: [ParkedOwner: Int] = [:]
    /// When custody of each row ends; rows that have gone meanwhile are skipped.
    var custody = MomentHeap()
    var marks: [Digest16: Mark] = [:]
    /// Ended marks, oldest first; consumed up to `endedHead`.
    var ended: [(mark: Digest16, at: UnixTime)] = []
    var endedHead = 0
    var aliveUntil: [OwnerID: UnixTime] = [:]
    var members = MemberTable()
    var settings: [String: [UInt8]] = [:]
    /// Pushes that ended with their registrations, by owner, until the owner has been told.
    var notices: [OwnerID: [PushID]] = [:]

    init(rowLimit: Int, byteLimit: Int, share: AppShare) {
        self.share = share
        self.rowLimit = rowLimit
        self.byteLimit = byteLimit
    }
}
