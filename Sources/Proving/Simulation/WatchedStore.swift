import AtRest
import Delivery
import PushModel
import Synchronization

/// One request of a peer, as its relay works at it.
final class Call: Sendable {
    @TaskLocal static var current: Call?

    private let committed = Mutex<Duration?>(nil)

    /// When the store had what was to be written.
    var committedAt: Duration? { committed.withLock(\.self) }
    func commit(at: Duration) { committed.withLock { $0 = $0 ?? at } }
}

/// The store as the core has it: tells the book which name each push has, and is where some things are broken
/// on purpose.
final class WatchedStore: Sendable {
    let store: SealedStore
    let book: Book
    let scheduler: Scheduler
    let faults: Faults

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

    init(_ store: SealedStore, _ book: Book, _ scheduler: Scheduler, _ faults: Faults) {
        self.store = store
        self.book = book
        self.scheduler = scheduler
        self.faults = faults
    }
}

extension WatchedStore: Outbox {
    func digest(ofOrigin origin: Secret, at instance: ConfiguredName) -> Digest16 {
        store.digest(ofOrigin: origin, at: instance)
    }

    func accept(_ acceptance: Acceptance) async throws(StoreError) -> Accepted {
        let accepted = try await store.accept(acceptance)
        guard case .committed(let admissions) = accepted else { return accepted }
        Call.current?.commit(at: scheduler.elapsed)
        for (item, admission) in zip(acceptance.items, admissions) {
            guard let (number, _) = Peers.read(item.push.message) else { continue }
            switch admission {
            case .owed(let push):
                book.wrote(number, push.id)
                book.waits(push)
            case .repeated(let id, _): book.wrote(number, id)
            }
        }
        return .committed(
            admissions.map { admission in
                if case .owed(let push) = admission { .owed(faults.estranges(push)) } else { admission }
            })
    }

    func settle(_ settlements: [Settlement], feedback: [Change]) async throws(StoreError) -> [Bool] {
        try await store.settle(settlements, feedback: feedback)
    }

    func claim(
        _ lane: LaneName, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>
    ) async throws(StoreError) -> [OwedPush] {
        guard faults.mayClaim(lane) else { return [] }
        return try await store.claim(lane, due: due, limit: limit, classes: classes).map(faults.estranges)
    }

    func nextDue(_ lane: LaneName) async throws(StoreError) -> UnixTime? { try await store.nextDue(lane) }

    func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [LaneName: Int] {
        try await store.endCustody(before: before, limit: limit)
    }

    func renew(for span: Duration) async throws(StoreError) { try await store.renew(for: span) }

    func takeOver(_ lanes: [LaneName], limit: Int) async throws(StoreError) -> Int {
        try await store.takeOver(lanes, limit: limit)
    }

    func letGo(besides lanes: [LaneName], limit: Int) async throws(StoreError) -> Int {
        try await store.letGo(besides: lanes, limit: limit)
    }

    func enrol(in groups: [GroupName], for span: Duration) async throws(StoreError) -> [Member] {
        try await store.enrol(in: groups, for: span)
    }

    func reclaim(limit: Int) async throws(StoreError) -> Int {
        guard faults.mayReclaim() else { throw StoreError(.unavailable) }
        return try await store.reclaim(limit: limit)
    }

    func load() async throws(StoreError) -> OutboxLoad { try await store.load() }
}

extension WatchedStore: Registry {
    var clock: DoubtedClock? { store.clock }

    func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?] {
        do throws(StoreError) {
            return try await store.find(keys)
        } catch {
            guard faults.knowsOnFault else { throw error }
            return keys.map { Record(key: $0, touchedAt: .distantPast, body: Secret([0])) }
        }
    }

    func page(_ index: RecordIndex, after revision: UInt64, limit: Int) async throws(StoreError) -> [Record] {
        try await store.page(index, after: revision, limit: limit)
    }

    func apply(_ changes: [Change]) async throws(StoreError) -> Applied { try await store.apply(changes) }

    func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int {
        try await store.purge(before: before, limit: limit)
    }

    func tally(_ owners: [RecordKey]) async throws(StoreError) -> [RecordTally] {
        try await store.tally(owners)
    }

    func forget(owner: RecordKey, limit: Int) async throws(StoreError) -> Int {
        try await store.forget(owner: owner, limit: limit)
    }
}
