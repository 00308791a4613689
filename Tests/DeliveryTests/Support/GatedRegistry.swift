import PushModel
import Synchronization

/// A registry whose look-ups fail while they are told to.
final class GatedRegistry: Registry {
    private let inner: any Registry
    private let fault = Mutex<StoreError.Code?>(nil)

    init(_ inner: any Registry) { self.inner = inner }

    /// What every look-up from now on fails with; `nil`: none fails.
    func fail(_ code: StoreError.Code?) { fault.withLock { $0 = code } }

    var clock: DoubtedClock? { inner.clock }

    func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?] {
        if let code = fault.withLock(\.self) { throw StoreError(code) }
        return try await inner.find(keys)
    }

    func page(_ index: RecordIndex, after revision: UInt64, limit: Int) async throws(StoreError) -> [Record] {
        try await inner.page(index, after: revision, limit: limit)
    }

    func apply(_ changes: [Change]) async throws(StoreError) -> Applied { try await inner.apply(changes) }

    func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int {
        try await inner.purge(before: before, limit: limit)
    }

    func tally(_ owners: [RecordKey]) async throws(StoreError) -> [RecordTally] {
        try await inner.tally(owners)
    }

    func forget(owner: RecordKey, limit: Int) async throws(StoreError) -> Int {
        try await inner.forget(owner: owner, limit: limit)
    }
}
