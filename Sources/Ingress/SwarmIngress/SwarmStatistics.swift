import PushModel

/// What is known of the link at one moment.
package struct SwarmStatistics: Sendable, Hashable {
    /// Subscriptions in the rotation.
    package var watches = 0
    /// Storage servers that the chain daemon has listed, and those that fall to this process.
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
    /// Notices that wait for a worker.
    package var queued = 0
    /// Messages that nodes have reported since the start.
    package var received = 0
    /// Watches that nodes have refused lately; 0: too few to report.
    package var refused = 0

    package init() {}

    /// Whether no node would report a message: no nodes are known, or none of those that fall to this process
    /// is connected. A process without nodes leaves them to others.
    ///
    /// A chain daemon that is silent changes nothing as long as the nodes that it told of are there.
    package var hearsNobody: Bool { !hasNodes || ours > 0 && connected == 0 }
}
