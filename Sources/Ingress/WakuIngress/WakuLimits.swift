package import Delivery

/// Every bound of the way to the Waku network, each with its reason. With several processes on one store each
/// has these for itself: all of them hear everything.
package struct WakuLimits: Sendable {
    // MARK: Polling

    /// Between the end of one poll and the next, at random: a node keeps few messages (50, if it was not told
    /// otherwise), and a sender waits three seconds for a report. Deployed servers poll their own node every
    /// 300 ms.
    package var poll = Duration.milliseconds(200)...Duration.milliseconds(300)
    /// One answer to a poll: a node holds at most so much where it is told to keep thousands of messages. A
    /// longer one is not read, and what it held is fetched from the store.
    package var answerBytes = 64 << 20
    /// Messages of one answer that are read; the others are fetched from the store.
    package static let answerMessages = 65_536
    /// Any other answer: a word, or a sentence of why not.
    static let wordBytes = 64 << 10
    /// For one call. A node waits five seconds for the network itself.
    package var callDeadline = Duration.seconds(10)
    /// After a fault the node is asked again within this doubling span: it stands on this machine, where a
    /// restart takes seconds.
    package var backoff = Backoff(base: .milliseconds(250), cap: .seconds(5), floorCap: .seconds(60))
    /// The least time between a fault and the next call, whatever chance says.
    package var leastRest = Duration.milliseconds(50)
    /// A node's cache of which an answer is as long as this may have been full: no node keeps fewer messages,
    /// if it was not told so.
    package static let leastCache = 50

    // MARK: The store

    /// How far back the store is asked at the start. The relay does not know when it was last there; clients
    /// repeat a registration that nobody has answered for longer than this, and a notification older than
    /// this wakes nobody for good.
    package var startReach = Duration.seconds(3_600)
    /// How far back at most after a gap: the same, with a long night's absence of the node in view.
    package var gapReach = Duration.seconds(12 * 3_600)
    /// Stores take messages whose timestamp is up to 20 s away from their clock. So much is asked for around
    /// a gap, with as much again for our own clock.
    package static let timestampSlack = Duration.seconds(40)
    /// Messages of a page: the most that stores give.
    package static let pageMessages = 100
    /// One page: a hundred messages of the largest size in base64, and what stands around them.
    package static let pageBytes = 24 << 20
    /// Pages of one gap: twelve hours at ten messages a second. What is behind them is given up, and said.
    package var pages = 5_000
    /// A store that did not answer is asked again after so long, doubling: the node may have to find one
    /// first.
    package var storeBackoff = Backoff(base: .seconds(10), cap: .seconds(120), floorCap: .seconds(600))
    /// Attempts in a row at one gap that bring nothing; then it is given up, and said. Some twenty minutes.
    package var storeAttempts = 20
    /// Between two gaps that are fetched: a node that fails often is not to be asked for its store each time.
    package var storeRest = Duration.seconds(5)
    /// Messages whose hashes are remembered, twice over: what the store hands out again is passed over. Only
    /// those of followed topics count, so that this is hours.
    package static let seenMessages = 65_536

    // MARK: Messages

    /// A payload in base64: what a node relays at most (150 KiB with the envelope around it), with room.
    package static let payloadBytes = 256 << 10
    /// An application's mark, which Status leaves empty (14/WAKU2-MESSAGE: 64 bytes).
    package static let metaBytes = 64
    /// Bytes of messages that wait for a worker. When they are exceeded the node is not polled: it keeps what
    /// it can, and the rest comes from the store.
    package var queuedBytes = 16 << 20
    /// Messages that are taken in at once: each is opened, which costs public-key operations, and waits for
    /// the store.
    package var workers = 8

    // MARK: Publishing

    /// Calls at once that publish: a node hands a message to its peers within milliseconds.
    package var publishersAtOnce = 4
    /// Messages that wait for their turn to be published; more is refused. Two seconds' worth of reports at a
    /// thousand a second.
    package var publishersWaiting = 2_048
    /// Bytes of those: strangers ask for answers of a hundred kilobytes. What has less room than that left
    /// still takes the many that are short.
    package var publishingBytes = 16 << 20
    /// From the wish to publish to giving up: clients have long asked another server by then.
    package var publishWithin = Duration.seconds(10)
    /// Between two attempts to publish one message.
    package var publishBackoff = Backoff(
        base: .milliseconds(200), cap: .seconds(2), floorCap: .seconds(2))
    /// A node says 400 to what it will never take, and also while it does not listen on the topic: one that
    /// was restarted is told to within a poll or two. So a message is refused when it was so often, with so
    /// long in between.
    package var refusalsBelieved = 3
    package var refusalRest = Duration.milliseconds(500)

    // MARK: Watching

    /// How often the node is asked how it is: peers that were gone for a shorter time nobody notices, and
    /// beside twenty polls one more call is little.
    package var healthEvery = Duration.seconds(5)
    /// The answer to that: a node tells of each of its protocols.
    package static let healthBytes = 64 << 10
    /// When an operator is told that the node takes no messages.
    package var refusals = FaultRunLimits()
    /// How long an operator is told of a gap that was given up: as long as what lasts is repeated.
    package var missedFor = Duration.seconds(3_600)
    /// Grain of what is shown.
    package var tick = Duration.seconds(1)

    package init() {}
}
