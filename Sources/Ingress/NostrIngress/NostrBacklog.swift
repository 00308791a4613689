/// How an event came: out of a relay's store, or as the relay heard it.
package enum EventSource: Sendable, Hashable {
    case stored, live
    /// Out of the store of a relay at which we had been listening until so long ago.
    case missed(Duration)
}

/// What becomes of stored events (docs/conformance/marmot.md).
package enum NostrBacklog: String, Sendable, Hashable, CaseIterable {
    /// Events from before this process listened are ignored: hints that came while the server was away are
    /// dropped on purpose. Events that came while the connection of a running server was down are taken.
    case live
    /// They are taken, and the role drops those that are older than its grace.
    case grace
}
