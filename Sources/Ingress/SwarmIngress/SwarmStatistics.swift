import PushModel

/// What is known of the link at one moment.
package struct SwarmStatistics: Sendable, Hashable {
    /// Subscriptions in the rotation.
    package var watches = 0
    /// Storage servers that the chain daemon told of, and those that fall to this process.
    package var nodes = 0
    package var ours = 0
    package var connected = 0
    package var dialling = 0
    package var swarms = 0
    /// Of the list in force.
    package var blockHash = ""
    package var height: UInt64 = 0
    package var hasNodes = false
    package var isDaemonConnected = false
    /// Pushes that wait for a worker.
    package var queued = 0
    /// Pushes that nodes have told of since the start.
    package var received = 0
    /// Watches that nodes have refused of late; 0: too few to tell an operator of.
    package var refused = 0

    package init() {}

    /// Whether nobody would tell of a message: no nodes are known, or none of those that fall to this process
    /// is connected. One to which none falls leaves them to others.
    ///
    /// A chain daemon that is silent changes nothing as long as the nodes that it told of are there.
    package var hearsNobody: Bool { !hasNodes || ours > 0 && connected == 0 }
}
