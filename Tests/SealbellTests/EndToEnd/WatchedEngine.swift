import PushModel
import PushTesting
import Synchronization

/// An engine that writes down what is asked of it and what it finds, and changes nothing.
///
/// A record that is found is opened above it, and one that is put is sealed, so that the list tells the
/// at-rest ciphers' calls too. The process's own clockwork is not noted: it runs whoever asks.
final class WatchedEngine: ForwardingEngine {
    let base: any Engine
    private let watch: Watch

    /// The list, for the test to read.
    final class Watch: Sendable {
        private let held = Mutex<[String]>([])
        func note(_ line: String) { held.withLock { $0.append(line) } }
        /// What was noted since the last look.
        func take() -> [String] {
            held.withLock { lines in
                defer { lines = [] }
                return lines
            }
        }
    }

    init(_ engine: any Engine, _ watch: Watch) {
        base = engine
        self.watch = watch
    }

    func find(_ keys: [Digest16], now: UnixTime) async throws(StoreError) -> [StoredRecord?] {
        let found = try await base.find(keys, now: now)
        watch.note("find \(keys.count), found \(found.map { $0 == nil ? "-" : "+" }.joined())")
        return found
    }

    func page(
        _ index: StoredIndex, after: UInt64, limit: Int, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord] {
        let found = try await base.page(index, after: after, limit: limit, now: now)
        watch.note("page \(limit), found \(found.count)")
        return found
    }

    func apply(_ changes: [StoredChange], now: UnixTime) async throws(StoreError) -> Applied {
        watch.note("apply \(changes.count)")
        return try await base.apply(changes, now: now)
    }

    func accept(
        _ pushes: [StoredPush], changes: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> StoredAccepted {
        watch.note("accept \(pushes.count) pushes, \(changes.count) changes")
        return try await base.accept(pushes, changes: changes, now: now)
    }

    func settle(
        _ steps: [StoredSettlement], feedback: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> [Bool] {
        watch.note("settle \(steps.count), \(feedback.count) changes")
        return try await base.settle(steps, feedback: feedback, now: now)
    }
}
