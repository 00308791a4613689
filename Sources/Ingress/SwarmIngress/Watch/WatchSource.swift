import MessageSockets
package import PushModel
package import SessionPush
import WireFormats

/// Where watches are read: the registry's space of subscriptions.
package struct WatchSource: Sendable {
    /// A row's watch; `nil`: none, as for a tombstone.
    package typealias Parse = @Sendable (Record) -> MonitorRequest?

    private let registry: any Registry
    private let space: Space
    private let parse: Parse
    private let limits: SwarmLimits
    private let now: @Sendable () -> UnixTime

    package init(
        registry: any Registry, space: Space, limits: SwarmLimits, now: @escaping @Sendable () -> UnixTime,
        parse: @escaping Parse
    ) {
        self.registry = registry
        self.space = space
        self.limits = limits
        self.now = now
        self.parse = parse
    }

    /// One page of all rows, behind a revision.
    ///
    /// - Returns: their entries, and the last revision that was read; `nil`: there are no more rows.
    package func page(
        after revision: UInt64
    ) async throws(StoreError) -> (entries: [WatchEntry], last: UInt64)? {
        let records = try await registry.page(.space(space), after: revision, limit: limits.rowsPerPage)
        guard let last = records.last?.revision else { return nil }
        let entries = records.compactMap { record in
            watch(record).map { WatchEntry(point: $0.account.swarmPoint, revision: record.revision) }
        }
        return (entries, last)
    }

    /// Reads rows again, and builds the request that shows them.
    ///
    /// A row that has changed since has another revision, and another entry.
    package func read(_ reading: WatchReading) async throws(StoreError) -> WatchBatch {
        var writer = BencodeWriter(reserving: limits.bytesPerBatch + 8_192)
        writer.beginList()
        var batch = WatchBatch(shown: [], ended: [], through: reading.through, body: nil)
        var wanted = reading.revisions[...]
        // How many rows one page asks for: many where most of them are wanted, as in a network of few swarms.
        var stride = 32
        // Ends: each round deals with one wanted row at least.
        while let first = wanted.first {
            let records = try await registry.page(.space(space), after: first - 1, limit: stride)
            let last = records.count < stride ? UInt64.max : records.last?.revision ?? .max
            let here = wanted.prefix { $0 <= last }
            wanted = wanted.dropFirst(here.count)
            let rows = Dictionary(records.map { ($0.revision, $0) }, uniquingKeysWith: { first, _ in first })
            for revision in here {
                guard let watch = rows[revision].flatMap(watch) else {
                    batch.ended.append(revision)
                    continue
                }
                watch.write(into: &writer)
                batch.shown.append(revision)
                if writer.bytes.count >= limits.bytesPerBatch {
                    batch.through = revision
                    return close(&batch, &writer)
                }
            }
            stride =
                here.count * 2 >= stride
                ? min(limits.rowsPerPage, stride * 2) : max(1, min(stride, here.count * 2))
        }
        return close(&batch, &writer)
    }

    /// Ends rows, with the pushes that are owed to them, unless they have changed since.
    package func end(_ revisions: [UInt64]) async throws(StoreError) {
        for revision in revisions {
            let rows = try await registry.page(.space(space), after: revision - 1, limit: 1)
            guard let row = rows.first, row.revision == revision else { continue }
            _ = try await registry.apply([.delete(row.key, if: .revision(revision))])
        }
    }

    private func close(_ batch: inout WatchBatch, _ writer: inout BencodeWriter) -> WatchBatch {
        writer.endList()
        let body = writer.takeSecret()
        if !batch.shown.isEmpty { batch.body = SharedBytes(body) }
        return batch
    }

    /// `nil` for a row that is no longer a subscription, and for one that no storage server would accept.
    private func watch(_ record: Record) -> MonitorRequest? {
        guard record.state == .live, let watch = parse(record), watch.isValid(at: now()) else { return nil }
        return watch
    }
}
