import PushModel
import SessionPush

/// What an earlier version kept of ended subscriptions: tombstones among the subscriptions, whose names have
/// account and device token.
enum FormerEnds {
    /// Rows that are read at once: a MiB or so.
    private static let rowsPerPage = 1_000

    /// Moves them under hashes of their names, once at each start: it is one walk over the subscriptions, as
    /// the link to the swarm makes one too. A row that changes meanwhile is left as it is; whoever changed it
    /// has moved it.
    static func move(in registry: any Registry, _ keys: SessionKeys) async throws(StoreError) {
        var last: UInt64 = 0
        // Ends: each page is of later rows than the one before.
        while true {
            let rows = try await registry.page(.space(keys.subscriptions), after: last, limit: rowsPerPage)
            guard let end = rows.last?.revision else { return }
            last = end
            for row in rows where row.state == .tombstone {
                guard let name = keys.end(former: row.key) else { continue }
                let moved = Record(
                    key: name, version: row.version, state: .tombstone, touchedAt: row.touchedAt,
                    expiresAt: row.expiresAt, body: Secret([]))
                let gone = Change.delete(row.key, if: .revision(row.revision))
                let done = try await registry.apply([gone, .put(moved, if: .versionBelow(row.version))])
                // A later end stands there already.
                if done == .refused(index: 1) { _ = try await registry.apply([gone]) }
            }
            if rows.count < rowsPerPage { return }
        }
    }
}
