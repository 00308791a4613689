package import Delivery

/// Every bound of the way to the Waku network, each with its reason. With several processes on one store each
/// has these for itself: all of them hear everything.
package struct WakuLimits: Sendable {
    // MARK: Polling

    /// Between the end of one poll and the next, at random: a node keeps few messages (50, if it was not told
    /// otherwise), and a sender waits three seconds for a report. Deployed servers poll their own node every
    /// 300 ms.
    package var poll = Duration.milliseconds(200)...Duration.milliseconds(300)
    /// One answer to a poll: what a node holds at most if it is told to keep thousands of messages. A longer
    /// one is not read, and its messages are fetched from the store.
    package var answerBytes = 64 << 20
    /// Messages of one answer that are read; the others are fetched from the store.
    package static let answerMessages = 65_536
    /// Any other answer: a word, or a sentence with a reason.
    static let wordBytes = 64 << 10
    /// For one call. A node itself waits five seconds for the network.
    package var callDeadline = Duration.seconds(10)
    /// After a fault the node is asked again within this doubling span: it is on this machine, where a
    /// restart takes seconds.
    package var backoff = Backoff(base: .milliseconds(250), cap: .seconds(5), floorCap: .seconds(60))
    /// The least time between a fault and the next call, whatever the random part.
    package var leastRest = Duration.milliseconds(50)
    /// An answer of this length may come from a full cache: no node keeps fewer messages by default.
    package static let leastCache = 50

    // MARK: The store

    /// How far back the store is asked at the start. The relay does not know when it was last running.
    /// Clients repeat a registration without an answer for longer than this, and waking somebody for an older
    /// notification is of no use.
    package var startReach = Duration.seconds(3_600)
    /// How far back at most after a gap: enough for a node that was away overnight.
    package var gapReach = Duration.seconds(12 * 3_600)
    /// Stores take messages whose timestamp is up to 20 s away from their clock. This much more is asked for
    /// around a gap, with as much again for our own clock.
    package static let timestampSlack = Duration.seconds(40)
    /// Messages of a page: the most that stores give.
    package static let pageMessages = 100
    /// One page: a hundred messages of the largest size in base64, with their JSON.
    package static let pageBytes = 24 << 20
    /// Pages of one gap: twelve hours at ten messages a second. Further pages are given up, which is
    /// reported.
    package var pages = 5_000
    /// How long after no answer a store is asked again, doubling: the node may have to find one first.
    package var storeBackoff = Backoff(base: .seconds(10), cap: .seconds(120), floorCap: .seconds(600))
    /// Attempts in a row that bring nothing, after which a gap is given up, which is reported. Some twenty
    /// minutes.
    package var storeAttempts = 20
    /// Between two gaps that are fetched: the store of a node that fails often must not be asked each time.
    package var storeRest = Duration.seconds(5)
    /// Messages whose hashes are remembered, twice over: those that the store returns again are skipped. Only
    /// messages of followed topics count, so this lasts for hours.
    package static let seenMessages = 65_536

    // MARK: Messages

    /// A payload in base64: what a node relays at most (150 KiB with the envelope around it), with room.
    package static let payloadBytes = 256 << 10
    /// An application's mark, which Status leaves empty (14/WAKU2-MESSAGE: 64 bytes).
    package static let metaBytes = 64
    /// Bytes of messages that wait for a worker. Above it the node is not polled: it keeps what it can, and
    /// the rest comes from the store.
    package var queuedBytes = 16 << 20
    /// Messages that are taken in at once: each is opened, which costs public-key operations, and waits for
    /// the store.
    package var workers = 8

    // MARK: Publishing

    /// Publishing calls at once: a node passes a message to its peers within milliseconds.
    package var publishersAtOnce = 4
    /// Messages that wait to be published; more are refused. Two seconds' worth of reports at a thousand a
    /// second.
    package var publishersWaiting = 2_048
    /// Bytes of those: strangers ask for answers of a hundred kilobytes. When there is less room than that,
    /// the many short ones are still taken.
    package var publishingBytes = 16 << 20
    /// From the request to publish to giving up: by then clients have long asked another server.
    package var publishWithin = Duration.seconds(10)
    /// Between two attempts to publish one message.
    package var publishBackoff = Backoff(
        base: .milliseconds(200), cap: .seconds(2), floorCap: .seconds(2))
    /// A node answers 400 to a message that it will never take, and also while it does not listen on the
    /// topic, which a restarted node is told to within a poll or two. So a message counts as refused after
    /// this many such answers with this time between them.
    package var refusalsBelieved = 3
    package var refusalRest = Duration.milliseconds(500)

    // MARK: Watching

    /// How often the node's health is asked for: a shorter loss of peers goes unnoticed, and beside twenty
    /// polls one more call costs little.
    package var healthEvery = Duration.seconds(5)
    /// The answer to that: a node reports on each of its protocols.
    package static let healthBytes = 64 << 10
    /// When an operator is told that the node takes no messages.
    package var refusals = FaultRunLimits()
    /// How long a gap that was given up is reported: as long as the interval of reminders.
    package var missedFor = Duration.seconds(3_600)
    /// Grain of what is shown.
    package var tick = Duration.seconds(1)

    package init() {}
}
