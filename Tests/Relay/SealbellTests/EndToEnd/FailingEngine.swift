import PushModel
import PushTesting
import Synchronization

/// An engine that refuses what a test wants refused: all that is asked of it, as a database that is away,
/// writes alone, as a disk that is full, or outcomes alone, as a trigger against deletes.
final class FailingEngine: ForwardingEngine {
    /// What it refuses with, from now on.
    final class Fault: Sendable {
        private let state = Mutex<(code: StoreError.Code?, reads: Bool)>((nil, true))
        private let settling = Mutex<StoreError.Code?>(nil)

        /// - Parameter reads: whether reading fails too.
        func set(_ code: StoreError.Code?, reads: Bool = true) { state.withLock { $0 = (code, reads) } }

        func set(settling code: StoreError.Code?) { settling.withLock { $0 = code } }

        func checkSettling() throws(StoreError) {
            if let code = settling.withLock(\.self) { throw StoreError(code) }
        }

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

    func settle(
        _ steps: [StoredSettlement], feedback: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> [Bool] {
        try fault.checkSettling()
        return try await base.settle(steps, feedback: feedback, now: now)
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
