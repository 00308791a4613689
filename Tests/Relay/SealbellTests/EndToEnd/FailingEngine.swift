import PushModel
import PushTesting
import Synchronization

/// An engine that refuses what a test wants refused: all that is asked of it, as a database that is away, or
/// writes alone, as a disk that is full.
final class FailingEngine: ForwardingEngine {
    /// What it refuses with, from now on.
    final class Fault: Sendable {
        private let state = Mutex<(code: StoreError.Code?, reads: Bool)>((nil, true))

        /// - Parameter reads: whether reading fails too.
        func set(_ code: StoreError.Code?, reads: Bool = true) { state.withLock { $0 = (code, reads) } }

        func check(read: Bool) throws(StoreError) {
            let (code, reads) = state.withLock { $0 }
            guard let code, reads || !read else { return }
            throw StoreError(code)
        }
    }

    let base: any Engine
    private let fault: Fault

    init(_ engine: any Engine, _ fault: Fault) {
        base = engine
        self.fault = fault
    }

    func renew(for span: Duration) async throws(StoreError) {
        try fault.check(read: false)
        try await base.renew(for: span)
    }

    func load() async throws(StoreError) -> (rows: Int, bytes: Int, lanes: [String: Int]) {
        try fault.check(read: true)
        return try await base.load()
    }

    func accept(
        _ pushes: [StoredPush], changes: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> StoredAccepted {
        try fault.check(read: false)
        return try await base.accept(pushes, changes: changes, now: now)
    }
}
