import AtRest
import Delivery
import PushModel
import PushTesting
import Synchronization

/// One request of a peer, as its relay works at it.
final class Call: Sendable {
    @TaskLocal static var current: Call?

    private let committed = Mutex<Duration?>(nil)

    /// When the store had what was to be written.
    var committedAt: Duration? { committed.withLock(\.self) }
    func commit(at: Duration) { committed.withLock { $0 = $0 ?? at } }
}

/// The store as the core has it: tells the ledger which name each push has, and is where some things are
/// broken on purpose.
final class WatchedStore: Sendable {
    let store: SealedStore
    let ledger: PushLedger
    let scheduler: Scheduler
    let faults: Faults
    private let process: Int

    /// What is broken on purpose.
    struct Faults: Sendable {
        /// A look-up that fails counts as one that finds.
        var knowsOnFault = false
        /// Asked before each claim, and whether it may bring anything.
        var mayClaim: @Sendable (LaneName) -> Bool = { _ in true }
        /// Changes pushes on their way to the lanes.
        var estranges: @Sendable (OwedPush) -> OwedPush = { $0 }
        /// Whether rows may be taken back now.
        var mayReclaim: @Sendable () -> Bool = { true }
    }

    init(_ store: SealedStore, _ ledger: PushLedger, _ scheduler: Scheduler, process: Int, _ faults: Faults) {
        self.store = store
        self.ledger = ledger
        self.scheduler = scheduler
        self.faults = faults
        self.process = process
    }
}

extension WatchedStore: ForwardingOutbox {
    var outbox: any Outbox { store }

    func accept(_ acceptance: Acceptance) async throws(StoreError) -> Accepted {
        let accepted = try await store.accept(acceptance)
        guard case .committed(let admissions) = accepted else { return accepted }
        Call.current?.commit(at: scheduler.elapsed)
        for (item, admission) in zip(acceptance.items, admissions) {
            guard let number = Peers.read(item.push.message)?.number else { continue }
            switch admission {
            case .owed(let push):
                ledger.wrote(number, push.id)
                ledger.waits(push)
            case .repeated(let id, _): ledger.wrote(number, id)
            case .gone: break
            }
        }
        return .committed(
            admissions.map { admission in
                if case .owed(let push) = admission { .owed(faults.estranges(push)) } else { admission }
            })
    }

    func settle(_ settlements: [Settlement], feedback: [Change]) async throws(StoreError) -> [Bool] {
        let devices = devices(of: settlements, endedBy: feedback)
        for device in devices { ledger.ends(device, by: process) }
        let changed = try await store.settle(settlements, feedback: feedback)
        for device in devices { ledger.ended(device) }
        return changed
    }

    /// Whose registrations may end by a word about these pushes.
    private func devices(of settlements: [Settlement], endedBy feedback: [Change]) -> Set<Int> {
        var records: Set<Digest16> = []
        for case .expireStored(let record, _, _) in feedback { records.insert(record) }
        guard !records.isEmpty else { return [] }
        return Set(
            settlements.lazy.filter { $0.push.record.map(records.contains) ?? false }
                .compactMap { Peers.read($0.push.message)?.device })
    }

    func claim(
        _ lane: LaneName, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>
    ) async throws(StoreError) -> [OwedPush] {
        guard faults.mayClaim(lane) else { return [] }
        return try await store.claim(lane, due: due, limit: limit, classes: classes).map(faults.estranges)
    }

    func reclaim(limit: Int) async throws(StoreError) -> Int {
        guard faults.mayReclaim() else { throw StoreError(.unavailable) }
        return try await store.reclaim(limit: limit)
    }
}

extension WatchedStore: ForwardingRegistry {
    var registry: any Registry { store }

    func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?] {
        do throws(StoreError) {
            return try await store.find(keys)
        } catch {
            guard faults.knowsOnFault else { throw error }
            return keys.map { Record(key: $0, touchedAt: .distantPast, body: Secret([0])) }
        }
    }
}
