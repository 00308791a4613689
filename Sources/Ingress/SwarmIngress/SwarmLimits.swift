package import Dialling
import SessionPush

/// Every bound of the link to the swarm, each with its reason. With several processes on one store each has
/// these for itself, for the nodes that fall to it.
package struct SwarmLimits: Sendable {
    /// What both sides of a connection take as one message (deployed nodes and servers): the chain daemon's
    /// answer of 2,000 nodes has 500 KiB.
    package static let messageBytes = 10 << 20
    /// One frame from a storage server: the largest push has 77 KB, the answer to one batch 200 KB. What is
    /// longer ends the connection before it takes memory.
    package static let nodeFrameBytes = 1 << 20
    /// Messages of one connection that wait inside the library. Those beyond them are not read, and wait at
    /// the other side.
    package static let receiveBound = 16
    /// Messages to one node that wait: a greeting and a batch for each of two lanes.
    package static let sendBound = 16
    /// Sockets of the link's one context. A peer has three: its own and both ends of its monitor's; and there
    /// are as many again for those that are just being closed.
    package var sockets = 6 * SwarmFormLimits.nodes + 64
    /// That the process has no room for another connection is told once in so long, however many wait.
    package var noRoomEvery = Duration.seconds(60)
    /// Files that one connected peer takes: the connection, and what wakes the three sockets.
    package static let filesPerPeer = 4

    /// Messages taken from one node before the others have their turn.
    package static let messagesPerTurn = 16

    /// Connections that are being made at once: each costs both sides an exchange of keys, and 2,000 nodes
    /// must not all be dialled in one moment. A node that does not answer takes its place for ten seconds.
    package var dialsAtOnce = 128
    /// From the first packet to the exchanged keys, and from there to the greeting (§10.1).
    package var dialDeadline = Duration.seconds(10)
    /// How the addresses of the chain daemon's name are tried within it, one behind the other.
    package var dialling = DialOptions()
    /// A reply (§10.1).
    package var replyDeadline = Duration.seconds(15)
    /// Replies in a row that a node owes before it is dialled anew.
    package var strikes = 3
    /// A node that owed a reply is shown everything again after so long.
    package var strikeRest = Duration.seconds(60)
    package var heartbeat = Duration.seconds(15)
    package var heartbeatTimeout = Duration.seconds(30)
    /// The ladder of pauses after an attempt that failed (§10.5), or a connection that did not last.
    package var ladder: [Duration] = [.seconds(10), .seconds(30), .seconds(60), .seconds(120)]
    /// The same for the chain daemon. There is one of it, the operator's own and mostly on this machine, so
    /// that an attempt burdens nobody; and before it is there, nothing at all is watched. One that comes up
    /// after the relay is found within half a minute and a quarter.
    package var daemonLadder: [Duration] = [
        .seconds(1), .seconds(2), .seconds(5), .seconds(10), .seconds(30)
    ]
    /// A connection that stood so long has lasted: the next is tried in half of ``eagerRedial`` to the
    /// whole. Whoever drops us sooner climbs the ladder, because each new connection is shown everything.
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
    /// A batch that the store did not give is asked for again after so long.
    package var storeRest = Duration.seconds(2)
    /// Rows that some node refuses for good, and by whom: what is beyond them is shown again with the next
    /// renewal.
    package var votes = 16_384
    /// Watches that nodes refuse are told to an operator for so long: beyond a renewal, with which they are
    /// refused again unless something was mended.
    package var refusedFor = Duration.seconds(90 * 60)
    /// So many are told of, or all where there are fewer; and where there are many, one in so many.
    package var refusedLeast = 3
    package var refusedPart = 100

    /// Watches of which one page of the registry is read: a MiB or so while it is looked through.
    package var rowsPerPage = 1_000
    /// Registrations of this process are shown at once. Those of others on the same store are looked for so
    /// often.
    package var lookEvery = Duration.seconds(1)

    /// The chain daemon's notices of blocks last 30 minutes (§10.2).
    package var noticeRenewal = Duration.seconds(10 * 60)
    /// The list of nodes is asked for without a notice too: one may be lost.
    package var nodesEvery = Duration.seconds(5 * 60)
    /// How long a node may still speak for the part of the ring that it had before: a block takes two
    /// minutes, and a node may be some behind.
    package var formerScope = Duration.seconds(10 * 60)
    /// So many of them: one for each block of that time, and one more.
    package var formerScopes = 6
    /// Between two questions for it.
    package var nodesPause = Duration.seconds(1)
    /// A list that cannot be read is asked for again after so long; one of less than half of the nodes is
    /// believed when it comes again then.
    package var doubtRest = Duration.seconds(30)

    /// Bytes of pushes that wait for a worker, of all nodes. Each node may fill an equal share of it; then
    /// its connection is not read, and nobody else waits.
    package var queuedBytes = 32 << 20
    /// The least share: one push of the largest size.
    package var leastShare = 128 << 10
    /// A node's share of the queue, in bytes.
    package func share(among nodes: Int) -> Int { max(leastShare, queuedBytes / max(1, nodes)) }
    /// Pushes that are relayed at once, and share commits: with 8 each cost three times as much
    /// (Benchmarks/README.md). More were not measured.
    package var workers = 32

    /// A push that the store cannot take now is tried again after so long, behind the time that it was held
    /// for. It keeps its worker, so that the queue fills, and behind it the nodes' connections wait; with all
    /// workers so, 4 MiB.
    package var takeAgain = Duration.seconds(2)
    /// Rows that swarms have refused for good and that wait for the store, 512 KiB. One beyond them ends when
    /// its signature is too old.
    package var endings = 65_536

    /// Grain of all these spans.
    package var tick = Duration.milliseconds(200)
    /// How often nodes are shared out among processes anew.
    package var shareEvery = Duration.seconds(1)
    /// A process that reaches no node for so long leaves its share to others.
    package var deafAfter = Duration.seconds(120)
    /// A process that is told to stop, and is not alone, hears its nodes for so long; and so does any process
    /// those that now fall to another. Others read within a renewal (5 s) that somebody has left, turn to
    /// their nodes within ``shareEvery``, and connect and show in the rest. Longer, and a service manager's
    /// patience would be used up.
    package var handover = Duration.seconds(10)

    package init() {}
}
