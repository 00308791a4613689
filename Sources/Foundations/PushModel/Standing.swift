/// What a condition looks at: the clear columns of the record that stands.
package struct Standing: Sendable {
    package var revision: UInt64
    package var version: UInt64
    package var touchedAt: UnixTime

    package init(revision: UInt64, version: UInt64, touchedAt: UnixTime) {
        self.revision = revision
        self.version = version
        self.touchedAt = touchedAt
    }
}

extension Condition {
    /// One reading of the conditions for every engine. `nil`: no record, or one past its `expiresAt`.
    package func isMet(by standing: Standing?) -> Bool {
        switch self {
        case .any: true
        case .absent: standing == nil
        case .revision(let revision): standing?.revision == revision
        case .versionBelow(let version): standing.map { $0.version < version } ?? true
        case .touchedNotAfter(let time), .besideLive(let time): standing.map { $0.touchedAt <= time } ?? true
        }
    }
}
