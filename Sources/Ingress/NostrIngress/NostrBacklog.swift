/// How an event came: out of a relay's store, or as the relay heard it.
package enum EventSource: Sendable, Hashable {
    case stored, live
    /// Out of the store of a relay at which we had been listening until so long ago.
    case missed(Duration)
}

/// What becomes of stored events (docs/conformance/marmot.md).
package enum NostrBacklog: String, Sendable, Hashable, CaseIterable {
    /// What was there before this process listened is left alone: a hint that came while the server was
    /// away is lost on purpose. What came while the connection of a running server was away is taken.
    case live
    /// They are taken, and the role drops what is older than its grace.
    case grace
}
