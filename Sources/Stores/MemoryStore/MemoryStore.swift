package import PushModel
import Synchronization

/// The engine that forgets when the process ends: for volatile custody and for tests.
///
/// Every call is one critical section, so "commit" means that the lock was held. Several engines may share
/// one store, each as an owner of its own.
package final class MemoryStore: Sendable {
    let shared: Shared
    package let owner: OwnerID
    package let ended = EndedPushes()
    let clock: @Sendable () -> UnixTime
    /// The clock by which leases end.
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

        /// What is owed, one line for each push without content: for reading a simulated run.
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

        /// The owner of a row; `nil` when it is gone.
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
    /// - Parameter spans: a clock that nobody sets, by which leases end, the same for all who share the
    ///   store; by default the wall clock.
    package init(
        owner: OwnerID, sharing shared: Shared = Shared(), clock: @escaping @Sendable () -> UnixTime,
        spans: (@Sendable () -> UnixTime)? = nil
    ) {
        self.spans = spans ?? clock
        self.owner = owner
        self.shared = shared
        self.clock = clock
    }
}
