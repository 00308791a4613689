package import PushModel
import Synchronization

/// A store whose process ends after a number of commits: each further commit of the same kinds is refused as
/// `unavailable`.
package final class CutUpkeep: StoreUpkeep {
    package enum Write: Hashable { case put, fill, reseal, bar }

    private let base: any StoreUpkeep
    private let counted: Set<Write>
    private let left: Mutex<Int>

    /// - Parameter counted: what counts as a commit; everything else always passes.
    package init(_ base: any StoreUpkeep, commits: Int, of counted: Set<Write>) {
        self.base = base
        self.counted = counted
        left = Mutex(commits)
    }

    private func commit(_ write: Write) throws(StoreError) {
        guard counted.contains(write) else { return }
        let may = left.withLock { left in
            left -= 1
            return left >= 0
        }
        guard may else { throw StoreError(.unavailable) }
    }

    package var owner: OwnerID { base.owner }

    package func put(setting name: String, to value: [UInt8]?) async throws(StoreError) {
        try commit(.put)
        try await base.put(setting: name, to: value)
    }

    package func bar(_ isBarred: Bool) async throws(StoreError) {
        try commit(.bar)
        try await base.bar(isBarred)
    }

    package func fill(_ page: StoredPage, noting name: String, _ value: [UInt8]) async throws(StoreError) {
        try commit(.fill)
        try await base.fill(page, noting: name, value)
    }

    package func reseal(_ rows: [Resealed]) async throws(StoreError) -> Int {
        try commit(.reseal)
        return try await base.reseal(rows)
    }

    package func records(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> RowPage<StoredRecord> {
        try await base.records(after: place, limit: limit)
    }

    package func pushes(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> RowPage<StoredOwed> {
        try await base.pushes(after: place, limit: limit)
    }

    package func marks(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> RowPage<StoredMark> {
        try await base.marks(after: place, limit: limit)
    }

    package func settings(_ prefix: String) async throws(StoreError) -> [String: [UInt8]] {
        try await base.settings(prefix)
    }

    package func lastRevision() async throws(StoreError) -> UInt64 { try await base.lastRevision() }
    package func livingOwners() async throws(StoreError) -> [OwnerID] { try await base.livingOwners() }
}
