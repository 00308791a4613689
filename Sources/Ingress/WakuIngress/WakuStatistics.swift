import PushModel

/// What a node reports about itself.
package enum WakuHealth: String, Sendable, Hashable, CaseIterable {
    /// It was not asked yet, or its answer cannot be read; go-waku never gives one.
    case unknown
    /// It has peers.
    case connected
    /// It is connected to too few peers to be sure that messages arrive.
    case partlyConnected = "partly-connected"
    /// It answers us, but receives nothing.
    case alone
}

/// What is known of the way to the network at one moment.
package struct WakuStatistics: Sendable, Hashable {
    /// The node has answered the latest poll, and listens on our topic.
    package var isListening = false
    package var health = WakuHealth.unknown
    /// Content topics that are followed.
    package var topics = 0
    /// Messages that wait for a worker, and the bytes of them.
    package var queued = 0
    package var queuedBytes = 0
    /// Messages that wait to be published.
    package var publishing = 0
    /// Whether messages were missed that the store has not returned yet.
    package var hasGap = false
    /// Gaps since a time without any that no store has filled; 0 an hour after the last.
    package var missed = 0
    /// Messages in a row that the node did not take while it answered polls; 0: too few to report.
    package var refused = 0
    /// Since the start: messages that the node has returned, of any topic; those that were passed on; those
    /// that were published.
    package var heard = 0
    package var received = 0
    package var published = 0

    package init() {}

    /// Whether a published message would reach nobody.
    package var hearsNobody: Bool { !isListening || health == .alone }
}
