package import PushModel

/// What follows from a node's report about its own health.
///
/// A node without peers goes on answering polls with empty lists, so no poll shows what was missed; the store
/// is asked when the peers are back.
package struct HealthState: Sendable {
    package private(set) var health = WakuHealth.unknown
    /// When it was last asked while it had peers, or nothing was known about it.
    private var heardAt: UnixTime

    /// - Parameter start: no gap is opened from before then.
    package init(start: UnixTime) { heardAt = start }

    /// - Parameters:
    ///   - now: the node's present report.
    ///   - askedAt: when it was asked.
    /// - Returns: a note, and since when something may have been missed.
    package mutating func took(
        _ now: WakuHealth, askedAt: UnixTime
    ) -> (note: WakuNote?, gapSince: UnixTime?) {
        let before = health
        // A missing answer says nothing about the peers.
        if before == .alone, now == .unknown { return (nil, nil) }
        health = now
        switch (before, now) {
        case (.alone, .alone): return (nil, nil)
        case (_, .alone): return (.nodeAlone, nil)
        case (.alone, _):
            defer { heardAt = askedAt }
            return (.nodeConnected, heardAt)
        default:
            heardAt = askedAt
            return (nil, nil)
        }
    }
}
