package import PushModel
import Synchronization

/// The engine that forgets when the process ends: for volatile custody and for tests.
///
/// Every call is one critical section, so "commit" means that the lock was held. Several engines may share
/// one store, each as an owner of its own.
package final class MemoryStore: Engine {
    let shared: Shared
    package let owner: OwnerID
    let clock: @Sendable () -> UnixTime
    /// What leases end by.
    let spans: @Sendable () -> UnixTime

    package typealias Image = Shared.Image

    /// What engines share.
    package final class Shared: Sendable {
        let state: Mutex<MemoryState>

        /// All rows as they stand, for a simulated log that can go back to them.
        package struct Image: Sendable {
            fileprivate let state: MemoryState
        }

        package var image: Image {
            get { Image(state: state.withLock { $0 }) }
            set { state.withLock { $0 = newValue.state } }
        }

        /// What is owed, a line for each push without anything that speaks: for whoever reads a simulated
        /// run.
        package var standing: [String] {
            state.withLock { state in
                state.rows.values.sorted { $0.push.row < $1.push.row }.map { row in
                    let push = row.push
                    let alive = state.aliveUntil[row.owner].map { "\($0.milliseconds)" } ?? "never"
                    return "row \(push.row) epoch \(push.epoch) \(push.parked ? "parked" : "in memory")"
                        + " not before \(push.notBefore.milliseconds) attempt \(push.attempt)"
                        + " owner \(row.owner.value.low % 1_000) alive until \(alive)"
                }
            }
        }

        /// Whose a row is now; `nil` when it is gone.
        package func holder(ofRow row: Int64) -> (id: PushID, owner: OwnerID, epoch: Int64)? {
            state.withLock { state in
                state.rows[row].map { ($0.push.id, $0.owner, $0.push.epoch) }
            }
        }

        /// - Parameter rows: bound of owed pushes. `bytes`: bound of their sealed bytes. `share`: of one app.
        package init(rows: Int = 2_000_000, bytes: Int = 4 << 30, share: AppShare = AppShare()) {
            state = Mutex(MemoryState(rowLimit: rows, byteLimit: bytes, share: share))
        }
    }

    /// - Parameter clock: the engine's own wall clock.
    /// - Parameter spans: one that nobody sets, by which owners live and die, the same for all who share;
    ///   the wall clock unless it is given.
    package init(
        owner: OwnerID, sharing shared: Shared = Shared(), clock: @escaping @Sendable () -> UnixTime,
        spans: (@Sendable () -> UnixTime)? = nil
    ) {
        self.spans = spans ?? clock
        self.owner = owner
        self.shared = shared
        self.clock = clock
    }

    package func find(_ keys: [Digest16], now: UnixTime) async throws(StoreError) -> [StoredRecord?] {
        shared.state.withLock { state in keys.map { state.record($0, now) } }
    }

    package func page(
        _ index: StoredIndex, after: UInt64, limit: Int, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord] {
        shared.state.withLock { $0.page(index, after, limit, now) }
    }

    package func apply(_ changes: [StoredChange], now: UnixTime) async throws(StoreError) -> Applied {
        shared.state.withLock { $0.apply(changes, now) }
    }

    package func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int {
        shared.state.withLock { $0.purge(before, limit) }
    }

    package func tally(_ owners: [Digest16]) async throws(StoreError) -> [RecordTally] {
        shared.state.withLock { $0.tally(owners) }
    }

    package func forget(owner: Digest16, limit: Int) async throws(StoreError) -> Int {
        shared.state.withLock { $0.forget(owner, limit) }
    }

    package func accept(
        _ pushes: [StoredPush], changes: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> StoredAccepted {
        let result = shared.state.withLock { $0.accept(pushes, changes, owner, now, clock: clock()) }
        guard let result else { throw StoreError(.full) }
        return result
    }

    package func settle(
        _ steps: [StoredSettlement], feedback: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> [Bool] {
        shared.state.withLock { state in
            let results = steps.map { state.settle($0, owner, now: clock()) }
            for change in feedback { _ = state.apply([change], now) }
            return results
        }
    }

    package func claim(
        _ lane: String, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>
    ) async throws(StoreError) -> [StoredPush] {
        shared.state.withLock { $0.claim(lane, due, limit, classes, owner, spans()) }
    }

    package func nextDue(_ lane: String) async throws(StoreError) -> UnixTime? {
        shared.state.withLock { $0.nextDue(lane, owner, spans()) }
    }

    package func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [String: Int] {
        shared.state.withLock { $0.endCustody(before, limit, owner, spans()) }
    }

    package func renew(for span: Duration) async throws(StoreError) {
        let until = spans() + span
        shared.state.withLock { $0.aliveUntil[owner] = until }
    }

    package func reclaim(limit: Int) async throws(StoreError) -> Int {
        shared.state.withLock { $0.reclaim(limit, owner) }
    }

    package func takeOver(_ lanes: [String], limit: Int) async throws(StoreError) -> Int {
        shared.state.withLock { $0.takeOver(lanes, limit, owner, spans()) }
    }

    package func letGo(besides lanes: [String], limit: Int) async throws(StoreError) -> Int {
        shared.state.withLock { $0.letGo(besides: lanes, limit, owner) }
    }

    package func enrol(in groups: [GroupName], for span: Duration) async throws(StoreError) -> [Member] {
        shared.state.withLock { $0.members.enrol(owner, in: groups, until: spans() + span, now: spans()) }
    }

    package func load() async throws(StoreError) -> (rows: Int, bytes: Int, lanes: [String: Int]) {
        shared.state.withLock { state in
            (state.rows.count, state.bytes, state.claimable(owner, spans()))
        }
    }

    package func setAside(_ pushes: [StoredSettlement]) async throws(StoreError) -> [Bool] {
        shared.state.withLock { state in pushes.map { state.setAside($0, owner) } }
    }

    package func lastTime(_ step: LastTime) async throws(StoreError) -> UnixTime? {
        shared.state.withLock { state in
            let standing = state.settings[LastTime.setting].flatMap(LastTime.time)
            switch step {
            case .look: break
            case .raise(let time) where standing.map({ $0 >= time }) ?? false: break
            case .raise(let time), .set(let time): state.settings[LastTime.setting] = LastTime.bytes(time)
            }
            return state.settings[LastTime.setting].flatMap(LastTime.time)
        }
    }

    package func setting(_ name: String) async throws(StoreError) -> [UInt8]? {
        shared.state.withLock { $0.settings[name] }
    }

    package func settle(setting name: String, to value: [UInt8]) async throws(StoreError) -> [UInt8] {
        shared.state.withLock { state in
            if let standing = state.settings[name] { return standing }
            state.settings[name] = value
            return value
        }
    }
}
