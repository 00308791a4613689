package import Dialling
import SessionPush

/// Every bound of the link to the swarm, each with its reason. With several processes on one store each has
/// these for itself, for the nodes that fall to it.
package struct SwarmLimits: Sendable {
    /// What both sides of a connection take as one message (deployed nodes and servers): the chain daemon's
    /// answer of 2,000 nodes has 500 KiB.
    package static let messageBytes = 10 << 20
    /// One frame from a storage server: the largest notice has 77 KB, the answer to one batch 200 KB. A
    /// longer one ends the connection before it takes memory.
    package static let nodeFrameBytes = 1 << 20
    /// Messages of one connection that wait inside the library. Further ones are not read, and wait at the
    /// other side.
    package static let receiveBound = 16
    /// Messages to one node that wait: a greeting and a batch for each of two lanes.
    package static let sendBound = 16
    /// Sockets of the link's one context. A peer has three: its own and both ends of its monitor's; and there
    /// are as many again for those that are just being closed.
    package var sockets = 6 * SwarmFormLimits.nodes + 64
    /// How often it is logged, at most, that the process has no room for another connection.
    package var noRoomEvery = Duration.seconds(60)
    /// Files that one connected peer takes: the connection, and what wakes the three sockets.
    package static let filesPerPeer = 4

    /// Messages taken from one node before the others have their turn.
    package static let messagesPerTurn = 16

    /// Connections that are being made at once: each costs both sides a key exchange, and 2,000 nodes must
    /// not all be dialled at the same moment. A node that does not answer occupies its place for ten seconds.
    package var dialsAtOnce = 128
    /// From the first packet to the exchanged keys, and from there to the greeting (§10.1).
    package var dialDeadline = Duration.seconds(10)
    /// How the addresses of the chain daemon's name are tried within it, one after the other.
    package var dialling = DialOptions()
    /// A reply (§10.1).
    package var replyDeadline = Duration.seconds(15)
    /// Missing replies in a row after which a node is dialled again.
    package var strikes = 3
    /// How long after a missing reply a node is shown everything again.
    package var strikeRest = Duration.seconds(60)
    package var heartbeat = Duration.seconds(15)
    package var heartbeatTimeout = Duration.seconds(30)
    /// The ladder of pauses after an attempt that failed (§10.5), or a connection that did not last.
    package var ladder: [Duration] = [.seconds(10), .seconds(30), .seconds(60), .seconds(120)]
    /// The same for the chain daemon. There is only one, the operator's own and mostly on this machine, so
    /// attempts are cheap; and without it nothing is watched. One that starts after the relay is found within
    /// 38 s.
    package var daemonLadder: [Duration] = [
        .seconds(1), .seconds(2), .seconds(5), .seconds(10), .seconds(30)
    ]
    /// A connection of this age has lasted: the next is tried within half of ``eagerRedial`` to the whole. A
    /// node that drops us sooner is redialled more and more slowly, because each new connection is shown
    /// everything.
    package var steady = Duration.seconds(60)
    package var eagerRedial = Duration.seconds(1)
    /// Messages of one connection that nobody asked for, before it is ended.
    package var strays = 1_000

    /// Watches of one request, and the bytes of it: the deployed server fills five million bytes, which keeps
    /// a node verifying for two seconds. A watch has 180 to 300 bytes.
    package var rowsPerBatch = 1_000
    package var bytesPerBatch = 256 << 10
    /// Batches that are being read, or wait for replies: 16 MiB of requests. Nodes of one swarm that are
    /// shown the same share one.
    package var batchesAtOnce = 64
    /// How long a batch is good for other nodes of the swarm.
    package var batchLife = Duration.seconds(5)
    /// Readers of batches: stores answer several at once.
    package var readers = 4
    /// Storage servers forget a watch after 65 minutes (§10.3). It is shown again after a span between these.
    package var renewal = Duration.seconds(45 * 60)...Duration.seconds(55 * 60)
    /// How long after a failed reading a batch is asked for again.
    package var storeRest = Duration.seconds(2)
    /// Rows that some node refuses for good, with the nodes: further ones are shown again with the next
    /// renewal.
    package var votes = 16_384
    /// How long refused watches are reported to an operator: longer than a renewal, with which they are
    /// refused again unless the cause was fixed.
    package var refusedFor = Duration.seconds(90 * 60)
    /// The number of refused watches that is reported, or all if there are fewer; if there are many, one in
    /// this many.
    package var refusedLeast = 3
    package var refusedPart = 100

    /// Watches of which one page of the registry is read: a MiB or so while it is looked through.
    package var rowsPerPage = 1_000
    /// Registrations of this process are shown at once. How often those of other processes on the store are
    /// looked for.
    package var lookEvery = Duration.seconds(1)

    /// The chain daemon's notices of blocks last 30 minutes (§10.2).
    package var noticeRenewal = Duration.seconds(10 * 60)
    /// The list of nodes is asked for without a notice too: one may be lost.
    package var nodesEvery = Duration.seconds(5 * 60)
    /// How long a node may still speak for the part of the ring that it had before: a block takes two
    /// minutes, and a node may be some behind.
    package var formerScope = Duration.seconds(10 * 60)
    /// The number of such parts: one for each block of that time, and one more.
    package var formerScopes = 6
    /// Between two requests for it.
    package var nodesPause = Duration.seconds(1)
    /// How long after an unreadable list it is asked for again; a list with less than half of the nodes is
    /// believed if it comes again then.
    package var doubtRest = Duration.seconds(30)

    /// Bytes of notices that wait for a worker, of all nodes. Each node may fill an equal share of it; then
    /// its connection is not read, and only this node waits.
    package var queuedBytes = 32 << 20
    /// The least share: one notice of the largest size.
    package var leastShare = 128 << 10
    /// A node's share of the queue, in bytes.
    package func share(among nodes: Int) -> Int { max(leastShare, queuedBytes / max(1, nodes)) }
    /// Notices that are relayed at once, and share commits: with 8 each cost three times as much
    /// (Benchmarks/README.md). More were not measured.
    package var workers = 32

    /// How long after it was held a notice that the store cannot take is tried again. It keeps its worker, so
    /// the queue fills and the nodes' connections wait; with all workers busy, 4 MiB.
    package var takeAgain = Duration.seconds(2)
    /// Rows that swarms have refused for good and that wait for the store, 512 KiB. Further ones end when
    /// their signatures are too old.
    package var endings = 65_536

    /// Grain of all these spans.
    package var tick = Duration.milliseconds(200)
    /// How often nodes are divided among processes again.
    package var shareEvery = Duration.seconds(1)
    /// After this time without reaching any node, a process leaves its share to others.
    package var deafAfter = Duration.seconds(120)
    /// How long a process that is told to stop, and is not alone, still listens to its nodes; any process
    /// also listens this long to nodes that now fall to another. The others read within a renewal (5 s) that
    /// a process has left, turn to its nodes within ``shareEvery``, and connect and show their watches in the
    /// rest. A longer time would exceed a service manager's limit.
    package var handover = Duration.seconds(10)

    package init() {}
}
