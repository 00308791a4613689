package import PushModel
import Synchronization

/// Tells whoever keeps the log which records were written and deleted, once their commit stands.
package final class RegistrationNews: Sendable {
    package enum Kind: Sendable, Hashable {
        /// Made, or made again.
        case made
        case removed
    }

    /// What it is told of a record: its room and, if it asks, the store's digest of its name.
    package typealias Hear = @Sendable (Kind, Space, () -> Digest16) -> Void

    /// A closure stands behind a lock in a structure alone (tidy tests).
    private struct Hearer { var hear: Hear? }
    private let hearer = Mutex(Hearer())

    init() {}

    /// Sets the listener, replacing the former one.
    package func hear(_ hearer: @escaping Hear) { self.hearer.withLock { $0.hear = hearer } }

    /// - Parameter changes: all of them made. The delivery core has a word of its own for those that expire,
    ///   and what stands beside a registration needs none.
    func tell(_ changes: [Change], _ digest: (RecordKey) -> Digest16) {
        guard !changes.isEmpty, let hear = hearer.withLock(\.hear) else { return }
        for change in changes {
            switch change {
            case .put(let record, _):
                hear(record.state == .live ? .made : .removed, record.key.space) { digest(record.key) }
            case .delete(let key, _): hear(.removed, key.space) { digest(key) }
            case .putBeside, .expire, .expireStored: break
            }
        }
    }

    func tell(removed rows: [StoredRecord]) {
        guard !rows.isEmpty, let hear = hearer.withLock(\.hear) else { return }
        for row in rows { hear(.removed, Space(text: row.space)) { row.key } }
    }
}
