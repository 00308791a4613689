/// What a condition looks at: those of the record that stands.
package struct ClearColumns: Sendable {
    package var revision: UInt64
    package var version: UInt64
    package var touchedAt: UnixTime
    package var address: Digest16?

    package init(revision: UInt64, version: UInt64, touchedAt: UnixTime, address: Digest16?) {
        self.revision = revision
        self.version = version
        self.touchedAt = touchedAt
        self.address = address
    }

    package init(_ record: StoredRecord) {
        self.init(
            revision: record.revision, version: record.version, touchedAt: record.touchedAt,
            address: record.address)
    }
}

extension Condition {
    /// One reading of the conditions for every engine. `nil`: no record, or one past its `expiresAt`.
    package func isMet(by columns: ClearColumns?) -> Bool {
        switch self {
        case .any: true
        case .absent: columns == nil
        case .revision(let revision): columns?.revision == revision
        case .versionBelow(let version): columns.map { $0.version < version } ?? true
        case .touchedNotAfter(let time), .besideLive(let time): columns.map { $0.touchedAt <= time } ?? true
        case .madeFrom(let time, let address):
            columns.map { $0.touchedAt <= time && (address == nil || $0.address == address) } ?? true
        }
    }
}
