package import PushModel

/// What follows from a node's words about its own health.
///
/// A node without peers goes on answering polls, with nothing in them. So what was missed meanwhile no poll
/// tells; the store is asked when the peers are back.
package struct HealthState: Sendable {
    package private(set) var health = WakuHealth.unknown
    /// When it was asked last and had peers, or nothing was known of it.
    private var heardAt: UnixTime

    /// - Parameter start: no gap is opened from before then.
    package init(start: UnixTime) { heardAt = start }

    /// - Parameters:
    ///   - now: what the node says.
    ///   - askedAt: when it was asked.
    /// - Returns: a note, and since when something may have been missed.
    package mutating func took(
        _ now: WakuHealth, askedAt: UnixTime
    ) -> (note: WakuNote?, gapSince: UnixTime?) {
        let before = health
        // An answer that did not come says nothing of the peers.
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
