import PushModel
import Synchronization

/// An engine that writes down what is asked of it and what it finds, and changes nothing.
///
/// A record that is found is opened above it, and one that is put is sealed, so that the list tells the
/// at-rest ciphers' calls too.
final class WatchedEngine: Engine {
    private let engine: any Engine
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
        self.engine = engine
        self.watch = watch
    }

    func find(_ keys: [Digest16], now: UnixTime) async throws(StoreError) -> [StoredRecord?] {
        let found = try await engine.find(keys, now: now)
        watch.note("find \(keys.count), found \(found.map { $0 == nil ? "-" : "+" }.joined())")
        return found
    }

    func page(
        _ index: StoredIndex, after: UInt64, limit: Int, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord] {
        let found = try await engine.page(index, after: after, limit: limit, now: now)
        watch.note("page \(limit), found \(found.count)")
        return found
    }

    func apply(_ changes: [StoredChange], now: UnixTime) async throws(StoreError) -> Applied {
        watch.note("apply \(changes.count)")
        return try await engine.apply(changes, now: now)
    }

    func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int {
        try await engine.purge(before: before, limit: limit)
    }

    func forget(owner: Digest16, limit: Int) async throws(StoreError) -> Int {
        try await engine.forget(owner: owner, limit: limit)
    }

    func accept(
        _ pushes: [StoredPush], changes: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> StoredAccepted {
        watch.note("accept \(pushes.count) pushes, \(changes.count) changes")
        return try await engine.accept(pushes, changes: changes, now: now)
    }

    func settle(
        _ steps: [StoredSettlement], feedback: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> [Bool] {
        watch.note("settle \(steps.count), \(feedback.count) changes")
        return try await engine.settle(steps, feedback: feedback, now: now)
    }

    func claim(_ lane: String, due: UnixTime, limit: Int) async throws(StoreError) -> [StoredPush] {
        try await engine.claim(lane, due: due, limit: limit)
    }

    func nextDue(_ lane: String) async throws(StoreError) -> UnixTime? { try await engine.nextDue(lane) }

    func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [String: Int] {
        try await engine.endCustody(before: before, limit: limit)
    }

    // The process's own clockwork is not noted: it runs whoever asks.
    func renew(for span: Duration) async throws(StoreError) { try await engine.renew(for: span) }
    func takeOver(limit: Int) async throws(StoreError) -> Int { try await engine.takeOver(limit: limit) }
    func reclaim(limit: Int) async throws(StoreError) -> Int { try await engine.reclaim(limit: limit) }
    func load() async throws(StoreError) -> (rows: Int, bytes: Int, lanes: [String: Int]) {
        try await engine.load()
    }
    func setting(_ name: String) async throws(StoreError) -> [UInt8]? { try await engine.setting(name) }
    func settle(setting name: String, to value: [UInt8]) async throws(StoreError) -> [UInt8] {
        try await engine.settle(setting: name, to: value)
    }
}
