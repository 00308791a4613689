import PushModel
import PushTesting
import Synchronization

/// A registry whose look-ups fail while they are told to.
final class GatedRegistry: ForwardingRegistry {
    let registry: any Registry
    private let fault = Mutex<StoreError.Code?>(nil)

    init(_ inner: any Registry) { registry = inner }

    /// What every look-up from now on fails with; `nil`: none fails.
    func fail(_ code: StoreError.Code?) { fault.withLock { $0 = code } }

    func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?] {
        if let code = fault.withLock(\.self) { throw StoreError(code) }
        return try await registry.find(keys)
    }
}
