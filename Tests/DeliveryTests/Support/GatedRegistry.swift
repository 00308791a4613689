import PushModel
import PushTesting
import Synchronization

/// A registry whose look-ups fail while they are told to, and the next deletion.
final class GatedRegistry: ForwardingRegistry {
    let registry: any Registry
    private let fault = Mutex<StoreError.Code?>(nil)
    private let deletion = Mutex<StoreError.Code?>(nil)
    /// Deletions that have failed.
    let refusals = AwaitedCount()

    init(_ inner: any Registry) { registry = inner }

    /// What every look-up from now on fails with; `nil`: none fails.
    func fail(_ code: StoreError.Code?) { fault.withLock { $0 = code } }

    /// What the next deletion fails with, before it is made.
    func failDeletion(_ code: StoreError.Code) { deletion.withLock { $0 = code } }

    func apply(_ changes: [Change]) async throws(StoreError) -> Applied {
        let deletes = changes.contains { if case .delete = $0 { true } else { false } }
        let code = deletes ? deletion.withLock { $0.take() } : nil
        if let code {
            refusals.add()
            throw StoreError(code)
        }
        return try await registry.apply(changes)
    }

    func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?] {
        if let code = fault.withLock(\.self) { throw StoreError(code) }
        return try await registry.find(keys)
    }
}
