import HTTPIngress
import PushModel
import PushTesting
import ServiceLifecycle
import Synchronization

/// An engine that writes down what is asked of it and what it finds, and changes nothing.
///
/// A record that is found is opened above it, and one that is put is sealed, so that the list tells the
/// at-rest ciphers' calls too. The process's own clockwork (leases, sweeps, settling) is not noted, whatever it
/// asks for: it runs anyone who asks, and at times of its own.
final class WatchedEngine: ForwardingEngine {
    let base: any Engine
    private let watch: Watch

    /// Whether the task that asks belongs to a service of the process rather than to a request. Children inherit
    /// it, so that it need not be told by what is asked.
    @TaskLocal static var isClockwork = false

    /// The list, for the test to read.
    final class Watch: Sendable {
        private let held = Mutex<[String]>([])
        func note(_ line: String) {
            guard !isClockwork else { return }
            held.withLock { $0.append(line) }
        }
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

    func find(_ keys: [Digest16], often: Int, now: UnixTime) async throws(StoreError) -> [StoredRecord?] {
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

/// A service of the process whose calls a ``WatchedEngine`` does not note.
struct Clockwork: Service {
    let service: any Service

    /// - Returns: the services as they are, but for those that no request comes through.
    static func marked(_ services: [any Service]) -> [any Service] {
        services.map { $0 is HTTPListener ? $0 : Clockwork(service: $0) }
    }

    func run() async throws {
        try await WatchedEngine.$isClockwork.withValue(true) { try await service.run() }
    }
}
