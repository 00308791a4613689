import PushModel

/// What a node says of itself.
package enum WakuHealth: String, Sendable, Hashable, CaseIterable {
    /// It was not asked yet, or says nothing that can be read; go-waku never does.
    case unknown
    /// It has peers.
    case connected
    /// It is connected to too few peers to be sure that messages arrive.
    case partlyConnected = "partly-connected"
    /// It answers us, and hears nobody.
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
    /// Something was missed, and the store has not handed it out yet.
    package var hasGap = false
    /// Gaps since a time without any that no store has filled; 0 an hour after the last.
    package var missed = 0
    /// Messages in a row that the node did not take while it answered polls; 0: too few to tell of.
    package var refused = 0
    /// Since the start: messages that the node has shown, of any topic; of those, what was handed on; what
    /// was published.
    package var heard = 0
    package var received = 0
    package var published = 0

    package init() {}

    /// Whether a message would reach nobody.
    package var hearsNobody: Bool { !isListening || health == .alone }
}
