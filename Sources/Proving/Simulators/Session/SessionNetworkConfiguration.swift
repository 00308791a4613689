/// How a simulated network is set up.
package struct SessionNetworkConfiguration: Sendable {
    package var host: String
    /// 0: any free one.
    package var daemonPort: Int
    /// The swarm of each storage server.
    package var swarms: [UInt64]
    /// How long a watch lasts (§10.3).
    package var watchLife: Duration

    package init(
        host: String = "127.0.0.1", daemonPort: Int = 0, swarms: [UInt64] = [1 << 62, 1 << 62, 1 << 62],
        watchLife: Duration = .seconds(65 * 60)
    ) {
        self.host = host
        self.daemonPort = daemonPort
        self.swarms = swarms
        self.watchLife = watchLife
    }
}

/// How one storage server behaves.
package struct StorageNodeKnobs: Sendable, Hashable {
    package enum Answers: Sendable, Hashable {
        case asItShould
        /// Requests are read, but not answered.
        case never
        /// Bytes that are not bencode.
        case garbage
        /// A list of too few answers, or too many.
        case tooFew, tooMany
        /// Every watch is refused with this number.
        case refusal(Int)
        /// `UNKNOWNCOMMAND`, or `FORBIDDEN` with the tag.
        case unknownCommand, forbidden
    }

    package var answers = Answers.asItShould
    /// Whether it answers a greeting.
    package var greets = true
    /// Whether it reads anything at all.
    package var reads = true
    /// Whether it reports messages.
    package var notifies = true
    package init() {}
}

/// How the chain daemon behaves.
package struct ChainDaemonKnobs: Sendable, Hashable {
    package enum Answers: Sendable, Hashable {
        case asItShould
        case never, garbage
        /// The text breaks off in the middle.
        case brokenOff
        /// A list of half of the nodes, well formed.
        case halfOfThem
        case failure
    }

    package var answers = Answers.asItShould
    package var greets = true
    package init() {}
}

/// An event in a simulated network.
package enum SessionNote: Sendable, Hashable {
    /// A client greeted; nodes are numbered in the order of the configuration.
    case greeted(node: Int)
    /// How many watches of one request were accepted, and how many refused.
    case watched(node: Int, taken: Int, refused: Int)
    /// A request that is malformed or unknown to this server.
    case unreadable(node: Int), unknownCommand(node: Int)
    /// The keys and the connection's name do not match.
    case strangeName(node: Int)
    case daemonGreeted, nodesTold, noticesAsked
    /// A client's connection to the chain daemon has ended.
    case daemonLeft
}
